"""Grants: every live token of this process, and what other processes do to the same grants."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from pegboard.access.principal import LOCAL
from pegboard.config import ServerSpec
from pegboard.log import logger
from pegboard.lru_dict import LruDict
from pegboard.oauth.listing_token import ListingToken
from pegboard.oauth.live_token import ChangeListener, LiveToken
from pegboard.oauth.renewal import OutcomeRecorder, Renewal
from pegboard.oauth.vault import Vault
from pegboard.result import ToolFailure
from pegboard.servers.authorization import Authorization, Challenge
from pegboard.storage.oauth import GrantRow
from pegboard.task_set import TaskSet

# Seconds between looks at what others did, while anybody is signed in or is to be.
_LOOK_EVERY = 0.5
_MOST_TOKENS = 4096
# Seconds that a renewal which is under way has when the gateway ends.
_GRACE = 12.0


class Grants:
    """Gives each server its credentials. Nothing is read before somebody needs it."""

    def __init__(
        self,
        vault: Vault,
        on_change: ChangeListener,
        record: OutcomeRecorder,
        count: Callable[[Counter[str]], None],
        is_removed: Callable[[str], bool],
    ) -> None:
        """`count` is told how many grants there are in each state; `is_removed` knows who is let in no longer."""
        self._vault = vault
        self._renewal = Renewal(vault, record)
        self._on_change = on_change
        self._count = count
        self._is_removed = is_removed
        self._live: LruDict[tuple[str, str], LiveToken] = LruDict(_MOST_TOKENS)
        self._version: int | None = None
        # When it was last known what is kept.
        self._known_at = time.monotonic()
        self._is_closed = False
        self._looking = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._is_away = False
        self._tasks = TaskSet()

    def authorization(self, spec: ServerSpec, principal_id: str | None) -> Authorization | None:
        """The credentials of a server for a principal; `None` where it has none. Where everybody has their own, the
        gateway itself asks with those of the local user, or with the oldest ones."""
        if not spec.signs_in:
            return None
        if spec.sign_in.per != "user":
            return self._token(spec, "")
        if principal_id is not None:
            return self._token(spec, principal_id)
        return ListingToken(lambda: self._find_oldest(spec))

    def challenge_of(self, spec: ServerSpec, principal: str) -> Challenge | None:
        """What a server said when it last refused a request of a principal."""
        token = self._live.get((spec.name, principal))
        return None if token is None or token.spec.url != spec.url else token.challenge

    def missing_scopes(self, spec: ServerSpec, principal: str) -> tuple[str, ...]:
        """What a server wants beyond what was granted."""
        token = self._live.get((spec.name, principal))
        need = None if token is None else token.needs_sign_in()
        return need.scopes if need is not None and need.reason == "scope" else ()

    async def look(self) -> list[GrantRow]:
        """Take over what was changed, here or elsewhere; every grant there is."""
        async with self._looking:
            began, age = time.monotonic(), time.monotonic() - self._known_at
            # Before the rows: what changes meanwhile is looked at the next time.
            version = await self._vault.store.grants_version()
            rows = await self._vault.store.list_grants()
            self._version, self._known_at = version, began
            age += time.monotonic() - began
        self._count(Counter(row.state for row in rows))
        by_key = {(row.server, row.principal): row for row in rows}
        for key, token in list(self._live.items()):
            await token.follow(by_key.get(key), age)
        return rows

    async def take_over(self, spec: ServerSpec, principal: str) -> None:
        """Somebody signed in here."""
        token = self._token(spec, principal)
        was_followed = token.is_loaded
        await self.look()
        if not was_followed:
            self._on_change(spec.name, principal, "signed_in")

    async def close(self) -> None:
        """End everything; renewals that are under way come to their end."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await asyncio.gather(*(token.close(_GRACE) for token in self._live.values()))
        await self._renewal.close()
        await self._tasks.close()

    def _token(self, spec: ServerSpec, principal: str) -> LiveToken:
        token = self._live.use((spec.name, principal))
        if token is None:
            token = LiveToken(spec, principal, self._vault, self._renewal, self._note)
            self._live[spec.name, principal] = token
        elif token.spec is not spec:
            token.replace_spec(spec)
        return token

    async def _find_oldest(self, spec: ServerSpec) -> LiveToken | None:
        rows = [row for row in await self._vault.store.list_grants() if row.server == spec.name]
        usable = [row for row in rows if row.state == "live" and row.url == spec.url and row.principal]
        usable = [row for row in usable if not self._is_removed(row.principal)]
        if not usable:
            return None
        # A program without a gateway is the local user's.
        return self._token(spec, min(usable, key=lambda row: (row.principal != LOCAL.id, row.created_at)).principal)

    def _note(self, token: LiveToken) -> None:
        change, token.change = token.change, None
        if change is not None:
            self._on_change(token.spec.name, token.principal, change)
        if self._watching is None and token.is_followed and not self._is_closed:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            try:
                asked_at = time.monotonic()
                if await self._vault.store.grants_version() != self._version:
                    await self.look()
                else:
                    self._known_at = asked_at
                self._is_away = False
            except ToolFailure as exc:
                if not self._is_away:
                    logger().warning("oauth.storage.away", reason=exc.error.message)
                self._is_away = True
            except Exception as exc:
                # Whatever it is: who signs out elsewhere must be heard of here.
                logger().error("oauth.watch.failed", error=type(exc).__name__)
            await asyncio.sleep(_LOOK_EVERY)
