"""Reach: whether other machines reach the gateway, and whether it can tell who comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.access.settings import AuthSettings, Required

# So many tokens are named in a message.
_NAMED = 5
_NOBODY_KNOWN = (
    "other machines can reach this address, and there is no way to tell who comes: %s, and auth.issuers names nobody."
)
_EVERYBODY = (
    "other machines can reach this address, and auth.required is false: whoever comes could call every tool. Take it "
    "out of the config."
)


class UnprotectedError(RuntimeError):
    """A gateway does not start, since it could not tell who comes."""

    def __init__(self, reason: str, *, expired: str = "", is_config: bool = False) -> None:
        super().__init__(reason)
        # The name of a token that would do if it were good for longer.
        self.expired = expired
        # Whether it is the config that has to change.
        self.is_config = is_config


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a gateway can be reached from, and what whoever started it said about that."""

    # Whether other machines reach it.
    beyond_loopback: bool = False
    # Whether everybody may come in, for this run.
    insecure: bool = False

    def requirement(self, auth: AuthSettings) -> Required:
        """Who has to say who they are. A config that changes while the gateway runs does not open it to others."""
        if self.insecure and auth.required is not True:
            return False
        return "remote" if auth.required is False and self.beyond_loopback else auth.required

    def check(self, auth: AuthSettings, live_tokens: int, expired: Sequence[str] = ()) -> None:
        """Refuse to start where nobody could tell who comes. `expired`: the names of tokens that were good once."""
        if self.insecure or not self.beyond_loopback:
            return
        if auth.required is False:
            raise UnprotectedError(_EVERYBODY, is_config=True)
        if not auth.issuers and not live_tokens:
            there = f"all tokens have expired ({', '.join(expired[:_NAMED])})" if expired else "there are no tokens"
            raise UnprotectedError(_NOBODY_KNOWN % there, expired=expired[0] if expired else "")
