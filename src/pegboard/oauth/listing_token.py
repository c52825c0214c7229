"""The credentials for a server's list for everybody where each signs in for themselves: the local user's, or those of
whoever was first.

No call of anybody is ever sent with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pegboard.oauth.live_token import LiveToken
from pegboard.result import ToolFailure
from pegboard.servers.authorization import Challenge, SignInNeed


class ListingToken:
    """An `Authorization` that borrows somebody's; without anybody it has none."""

    def __init__(self, choose: Callable[[], Awaitable[LiveToken | None]]) -> None:
        self._choose = choose
        self._chosen: LiveToken | None = None
        self._has_looked = False

    @property
    def header(self) -> str | None:
        """The value of `Authorization`."""
        return None if self._chosen is None else self._chosen.header

    @property
    def is_fresh(self) -> bool:
        """Whether `header` can be used at once."""
        return self._has_looked if self._chosen is None else self._chosen.is_fresh

    @property
    def version(self) -> int:
        """Changes whenever `header` does."""
        return -1 if self._chosen is None else self._chosen.version

    async def prepare(self) -> None:
        """Look who is signed in."""
        if self._chosen is None:
            try:
                self._chosen = await self._choose()
            except ToolFailure:
                # Lists come from the catalog until the storage is back.
                return
            self._has_looked = True
        if self._chosen is not None:
            await self._chosen.prepare()

    async def renew(self, challenge: Challenge, used: str | None) -> bool:
        """Whether a request is worth sending once more."""
        if self._chosen is not None:
            return await self._chosen.renew(challenge, used)
        await self.prepare()
        return self.header is not None and self.header != used

    def needs_sign_in(self) -> SignInNeed | None:
        """Why somebody has to sign in."""
        return SignInNeed("never") if self._chosen is None else self._chosen.needs_sign_in()
