"""Renewal of grants: once for all processes that share a storage.

Authorization servers take a refresh token that is used twice for stolen, and end the grant (RFC 9700, 4.14.2). So
whoever renews a grant holds a lease on its row, by the clock of the database; others wait for what comes of it. A
process that dies holds its lease for half a minute at most.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import MACHINE_FLOWS
from pegboard.log import logger
from pegboard.oauth.grant import KeptGrant, OAuthGrant
from pegboard.oauth.token_answer import ClientRefused, GrantRefused
from pegboard.oauth.token_source import obtain_grant, renew_grant, revoke_grant
from pegboard.oauth.vault import Vault
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.authorization import Challenge
from pegboard.task_set import TaskSet

# Seconds that a lease lasts: longer than any request to a token endpoint.
LEASE = 30.0
# Seconds after which a renewal is given up that others never came to an end with.
_PATIENCE = 50.0
# How often tokens are asked for at most, where somebody else changes the grant each time.
_ATTEMPTS = 3
_FIRST_LOOK, _LONGEST_LOOK = 0.03, 0.3
# Seconds between attempts to keep tokens that the storage did not take.
_KEEP_AGAIN = 1.0

# Told the server and how a request for tokens went.
OutcomeRecorder = Callable[[str, str], None]


class Postponed(ToolFailure):
    """A grant could not be renewed now; it stays as it is. `needs_client`: the client is refused, not the grant."""

    def __init__(self, message: str, *, retry_after: float = 0.0, needs_client: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=True, retry_after=retry_after)
        self.needs_client = needs_client


@dataclass(frozen=True, slots=True)
class RenewalWish:
    """Which grant is to be renewed, and why."""

    spec: ServerSpec
    principal: str
    # What is known of it: another version is one that somebody else renewed.
    version: int | None
    # The access token that its server refused, if that is why.
    refused: str | None = None
    challenge: Challenge | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Whose it is."""
        return self.spec.name, self.principal

    @property
    def is_machine(self) -> bool:
        """Whether no person is needed even for a first grant."""
        return self.spec.sign_in.flow in MACHINE_FLOWS

    def is_met(self, kept: KeptGrant, *, is_new: bool) -> bool:
        """Whether a grant needs no renewal; `is_new`: it is not as it was when it was looked at a moment ago."""
        grant = kept.grant
        if grant is None or not kept.is_live or not kept.fits(self.spec):
            return not self.is_machine
        if not grant.is_renewable:
            return True
        if grant.access_token == self.refused:
            return False
        remaining = grant.remaining(time.time())
        # By whose clock a token is over does not matter where it was given just now.
        if remaining is not None and remaining <= 0 and not is_new:
            return False
        return self.refused is not None or kept.version != self.version


@dataclass(frozen=True, slots=True)
class RenewalResult:
    """The grant after a renewal, if there is one, and the age of its tokens in seconds at most, if anybody knows."""

    kept: KeptGrant | None
    age: float | None = None


class Renewal:
    """Renews grants for a process."""

    def __init__(self, vault: Vault, record: OutcomeRecorder) -> None:
        self._vault = vault
        self._record = record
        self._holder = secrets.token_hex(8)
        # Tokens that the storage did not take, with the row that they are to replace: nobody else has them.
        self._unkept: dict[tuple[str, str], tuple[ServerSpec, KeptGrant, OAuthGrant]] = {}
        self._tasks = TaskSet()

    async def close(self) -> None:
        """Try once more to keep what is not kept yet."""
        await self._tasks.close()
        for server, principal in list(self._unkept):
            try:
                await self._keep(server, principal)
            except ToolFailure as exc:
                logger().error("oauth.grant.unkept", server=server, reason=exc.error.message)

    async def run(self, wish: RenewalWish) -> RenewalResult:
        """The grant after one renewal, whoever did it. `Postponed` or `StorageError` if there can be none now."""
        began = looked = time.monotonic()
        attempts, pause, seen = 0, _FIRST_LOOK, None
        while attempts < _ATTEMPTS and time.monotonic() - began < _PATIENCE:
            age, looked = time.monotonic() - looked, time.monotonic()
            kept = await self._look(wish)
            is_new = seen is not None and kept is not None and kept.version != seen
            if (kept is None and not wish.is_machine) or (kept is not None and wish.is_met(kept, is_new=is_new)):
                return RenewalResult(kept, age if is_new else None)
            seen = None if kept is None else kept.version
            if await self._take(wish, kept):
                attempts += 1
                asked = time.monotonic()
                result = await self._renew(wish, kept)
                if result is not None:
                    return RenewalResult(result, time.monotonic() - asked)
            else:
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311  it spreads load
                pause = min(pause * 1.5, _LONGEST_LOOK)
        raise Postponed("another process renews this sign-in and does not finish")

    async def _look(self, wish: RenewalWish) -> KeptGrant | None:
        if wish.key in self._unkept:
            await self._keep(*wish.key)
        return await self._vault.load_grant(*wish.key)

    async def _take(self, wish: RenewalWish, kept: KeptGrant | None) -> bool:
        """Be the one who asks for tokens."""
        store = self._vault.store
        if kept is not None:
            return await store.take_lease(*wish.key, kept.version, self._holder, LEASE)
        if not await store.take_lock(_lock(wish), self._holder, LEASE):
            return False
        # It may have been made before the lock was free.
        if await store.load_grant(*wish.key) is None:
            return True
        await store.release_lock(_lock(wish), self._holder)
        return False

    async def _release(self, wish: RenewalWish, kept: KeptGrant | None) -> None:
        if kept is not None:
            await self._vault.store.release_lease(*wish.key, self._holder)
        else:
            await self._vault.store.release_lock(_lock(wish), self._holder)

    async def _renew(self, wish: RenewalWish, kept: KeptGrant | None) -> KeptGrant | None:
        """Ask for tokens and keep them; `None` if somebody changed the grant meanwhile."""
        try:
            grant = await self._ask(wish, kept)
        except GrantRefused as exc:
            if exc.ends_grant and kept is not None and not wish.is_machine:
                return await self._end(wish, kept, exc)
            raise await self._postpone(wish, kept, exc, "refused") from None
        except ClientRefused as exc:
            raise await self._postpone(wish, kept, exc, "client") from None
        except ToolFailure as exc:
            raise await self._postpone(wish, kept, exc, "away") from None
        self._record(wish.spec.name, "ok")
        return await self._save(wish, kept, grant)

    async def _ask(self, wish: RenewalWish, kept: KeptGrant | None) -> OAuthGrant:
        check_issuer = self._vault.check_issuer
        if kept is not None and kept.grant is not None and kept.fits(wish.spec):
            await check_issuer(wish.spec, kept.grant.issuer)
            return await renew_grant(wish.spec, kept.grant, wish.challenge)
        if wish.is_machine:
            return await obtain_grant(wish.spec, wish.challenge, check_issuer)
        raise unavailable("there is nothing to renew", retryable=False)

    async def _save(self, wish: RenewalWish, kept: KeptGrant | None, grant: OAuthGrant) -> KeptGrant | None:
        try:
            saved = await self._vault.save_grant(wish.spec, wish.principal, grant, kept)
        except ToolFailure as exc:
            if kept is None:
                raise
            logger().error("oauth.grant.unkept", server=wish.spec.name, reason=exc.error.message)
            self._unkept[wish.key] = wish.spec, kept, grant
            self._tasks.spawn(self._keep_later(*wish.key))
            return KeptGrant(kept.row, grant)
        if kept is None:
            await self._release(wish, None)
        if saved is None:
            await self._give_back(wish, kept, grant)
        return saved

    async def _end(self, wish: RenewalWish, kept: KeptGrant, refusal: GrantRefused) -> KeptGrant | None:
        reason = (
            f"{kept.row.issuer} takes its refresh token no longer ({refusal.oauth_error}):"
            " it was revoked, it expired, or a renewal was interrupted"
        )
        if not await self._vault.end_grant(kept, "revoked", reason):
            return None
        self._record(wish.spec.name, "ended")
        logger().warning("oauth.grant.ended", server=wish.spec.name, reason=reason)
        return replace(kept, row=replace(kept.row, state="revoked", reason=reason, version=kept.version + 1))

    async def _postpone(
        self, wish: RenewalWish, kept: KeptGrant | None, failure: ToolFailure, outcome: str
    ) -> Postponed:
        self._record(wish.spec.name, outcome)
        await self._release(wish, kept)
        if outcome == "client" and kept is not None and kept.grant is not None:
            await self._forget_client(kept.grant)
        message, retry_after = failure.error.message, failure.error.retry_after
        if kept is not None and kept.grant is not None:
            # An error may repeat what was sent.
            message = kept.grant.redactor.clean(message)
        return Postponed(message, retry_after=retry_after, needs_client=outcome == "client")

    async def _forget_client(self, grant: OAuthGrant) -> None:
        """The next sign-in registers anew. The grant stays: it may have been a slip of the authorization server."""
        client = grant.client
        if client.source == "registered" and client.redirect_uri is not None:
            await self._vault.store.delete_client(client.issuer, client.redirect_uri)

    async def _give_back(self, wish: RenewalWish, kept: KeptGrant | None, grant: OAuthGrant) -> None:
        """Somebody signed in or out meanwhile: nobody will use these tokens."""
        now = await self._vault.store.load_grant(*wish.key)
        if kept is None or now is None or now.created_at != kept.row.created_at:
            await revoke_grant(wish.spec, grant)

    async def _keep(self, server: str, principal: str) -> None:
        found = self._unkept.get((server, principal))
        if found is None:
            return
        spec, replaced, grant = found
        if await self._vault.save_grant(spec, principal, grant, replaced) is None:
            logger().warning("oauth.grant.changed", server=server)
        if self._unkept.get((server, principal)) is found:
            del self._unkept[server, principal]

    async def _keep_later(self, server: str, principal: str) -> None:
        while (server, principal) in self._unkept:
            await asyncio.sleep(_KEEP_AGAIN)
            try:
                await self._keep(server, principal)
            except ToolFailure:
                continue


def _lock(wish: RenewalWish) -> str:
    return f"grant {wish.spec.name} {wish.principal}"
