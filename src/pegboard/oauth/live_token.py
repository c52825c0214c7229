"""A live token: the credentials of one server for one principal, as its requests use them.

A token is renewed ahead, in the background, while it is used; until then a call looks at an attribute, and no more. One
that is over, or that its server refused, is renewed once, and all calls wait for that (single flight).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Literal

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import MACHINE_FLOWS
from pegboard.log import logger
from pegboard.oauth.back_off import BackOff
from pegboard.oauth.grant import KeptGrant, OAuthGrant
from pegboard.oauth.renewal import Postponed, Renewal, RenewalWish
from pegboard.oauth.vault import Vault
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.authorization import Challenge, SignInNeed
from pegboard.storage.oauth import GrantRow

# A token is renewed ahead when so much of its life is left, and at most so many seconds before it is over.
_AHEAD, _LONGEST_AHEAD = 0.2, 300.0
# It counts as over a little before it is: a request is under way for a while.
_MARGIN, _LONGEST_MARGIN = 0.05, 5.0
# Seconds that a token has to have lived before it is renewed because its server refuses it; they double each time up to
# the last, so that a server that refuses every token does not have us ask for one at each call.
_FIRST_AGE, _LONGEST_AGE = 0.5, 60.0
# A timer may come a little early.
_TICK = 0.01

# What became of a sign-in: there is one now, it is another one, it was taken back, it can be used no longer.
GrantChange = Literal["signed_in", "changed", "signed_out", "ended"]
ChangeListener = Callable[[str, str, GrantChange], None]
SignInReason = Literal["never", "expired", "revoked", "scope", "client"]
_REASONS: dict[str, SignInReason] = {"expired": "expired", "client": "client"}


class LiveToken:
    """An `Authorization`."""

    def __init__(
        self, spec: ServerSpec, principal: str, vault: Vault, renewal: Renewal, on_change: Callable[[LiveToken], None]
    ) -> None:
        """`on_change` is told when there is something to follow, or `change` says so."""
        self.spec = spec
        self.principal = principal
        self.kept: KeptGrant | None = None
        # What the server last said when it refused a request.
        self.challenge: Challenge | None = None
        # What became of the sign-in, until somebody takes note of it.
        self.change: GrantChange | None = None
        self.is_loaded = False
        self._vault = vault
        self._renewal = renewal
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._header: str | None = None
        self._version = 0
        self._is_fresh = False
        # Nobody has asked for it since it was given; it is to be renewed when somebody does.
        self._is_idle, self._is_due = True, False
        self._timers: list[asyncio.TimerHandle] = []
        self._work: asyncio.Task[ToolFailure | None] | None = None
        self._back_off = BackOff(self._loop.time)
        self._trouble: ToolFailure | None = None
        # When the token was given, and how young the last ones were when they were refused.
        self._given_at = self._loop.time()
        # The first one may be of any age: nobody knows how long others have had it.
        self._least_age = 0.0
        # Its server refuses it however new it is.
        self._is_refused = False
        self._is_stale = False
        self._wanted_scopes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<LiveToken of {self.spec.name}>"

    @property
    def header(self) -> str | None:
        """The value of `Authorization` for the next request."""
        return self._header

    @property
    def version(self) -> int:
        """Changes whenever `header` does."""
        return self._version

    @property
    def is_fresh(self) -> bool:
        """Whether `header` can be used at once. Whoever asks uses it."""
        if self._is_idle:
            self._wake()
        return self._is_fresh

    @property
    def is_followed(self) -> bool:
        """Whether it matters what others do with this grant: there is one, or one is needed."""
        return self.kept is not None or self.challenge is not None

    async def prepare(self) -> None:
        """Load the grant, and renew it if it is over; `ToolFailure` where it cannot be renewed now."""
        if self.is_fresh:
            return
        trouble = await self._run(None)
        # A server that needs no sign-in is not to suffer from a storage that is away.
        if trouble is not None and self.kept is not None:
            raise self._failure(trouble)

    async def renew(self, challenge: Challenge, used: str | None) -> bool:
        """A request that was sent with `used` was refused: whether it is worth sending once more; `ToolFailure` where
        nobody can say now."""
        if challenge.status == 403 and not challenge.wants_scopes:
            return False
        self._note(challenge)
        trouble = None if self.is_loaded else await self._run(None)
        if challenge.wants_scopes:
            return await self._widen(challenge, used)
        # Twice: what was under way already may have been something else.
        for _ in range(2):
            if self._header is not None and self._header != used:
                return True
            trouble = await self._replace() or trouble
        if self._header is not None and self._header != used:
            return True
        if trouble is not None and not _needs_client(trouble) and self._has_hope:
            raise self._failure(trouble)
        return False

    def needs_sign_in(self) -> SignInNeed | None:
        """Why somebody has to sign in, or `None`."""
        if self._wanted_scopes:
            return SignInNeed("scope", self._wanted_scopes)
        if _needs_client(self._trouble):
            return SignInNeed("client", self._list_scopes())
        kept = self.kept
        if self._is_refused or (kept is not None and kept.fits(self.spec) and not kept.is_live):
            return SignInNeed(_REASONS.get("" if kept is None else kept.row.state, "revoked"), self._list_scopes())
        if self._header is not None or self.challenge is None:
            return None
        return SignInNeed("never" if kept is None or kept.grant is not None else "revoked", self._list_scopes())

    def adopt(self, kept: KeptGrant | None, age: float | None = None) -> None:
        """Use a grant from now on; `age`: its tokens were given so many seconds ago at most."""
        before = self.kept if self._header is not None else None
        was_loaded, self.kept, self.is_loaded = self.is_loaded, kept, True
        grant = self._grant
        header = None if grant is None else grant.header
        if header != self._header:
            self._header = header
            self._version += 1
            self._given_at = self._loop.time() - (age or 0.0)
            self._is_refused = False
        self._trouble = None
        self._back_off.clear()
        if grant is not None and set(self._wanted_scopes) <= set(grant.requested):
            self._wanted_scopes = ()
        self._set_timers(age)
        if was_loaded:
            self.change = _change(before, self.kept, is_usable=header is not None) or self.change
        self._on_change(self)

    def replace_spec(self, spec: ServerSpec) -> None:
        """Take over a changed config: the grant may not fit any more."""
        self.spec = spec
        if self.is_loaded:
            self.adopt(self.kept)

    async def follow(self, row: GrantRow | None, age: float) -> None:
        """Take over what somebody did to the grant within so many seconds."""
        if not self.is_loaded or (row is None and self.kept is None):
            return
        if row is not None and self.kept is not None and row.version == self.kept.version:
            return
        if self._work is not None:
            # It is looked at again when that has ended.
            self._is_stale = True
            return
        kept = None if row is None else await self._vault.open_grant(row)
        # The clock of whoever had it renewed may differ from ours.
        self.adopt(kept, age if _is_just_given(kept, self.kept, age) else None)

    async def close(self, patience: float) -> None:
        """Let a renewal end that is under way: what it gets would be lost."""
        if self._work is not None:
            await asyncio.wait([self._work], timeout=patience)
        if self._work is not None:
            self._work.cancel()
        self._clear_timers()

    @property
    def _grant(self) -> OAuthGrant | None:
        """The grant, if it can be used."""
        kept = self.kept
        return kept.grant if kept is not None and kept.is_live and kept.fits(self.spec) else None

    @property
    def _is_machine(self) -> bool:
        return self.spec.sign_in.flow in MACHINE_FLOWS

    @property
    def _has_hope(self) -> bool:
        """Whether a token may be had later without a person."""
        return not self.is_loaded or self._is_machine or self._grant is not None

    def _list_scopes(self) -> tuple[str, ...]:
        grant = None if self.kept is None else self.kept.grant
        asked = () if self.challenge is None else self.challenge.scopes
        return tuple(dict.fromkeys([*(() if grant is None else grant.requested), *asked]))

    def _note(self, challenge: Challenge) -> None:
        self.challenge = challenge
        self._on_change(self)

    async def _replace(self) -> ToolFailure | None:
        """Have another token than the one that was refused."""
        grant = self._grant
        if grant is None or not grant.is_renewable:
            # Somebody may have signed in elsewhere a moment ago.
            trouble = await self._load()
            if trouble is not None or (self._grant is not None and self._grant is not grant):
                return trouble
        if grant is None:
            return await self._run(None) if self._is_machine else None
        if not grant.is_renewable:
            return await self._expire()
        # Whoever comes while a renewal is under way waits for that one, however young the token is.
        if self._work is None and not self._may_replace(grant):
            self._is_refused = True
            return None
        return await self._run(grant.access_token)

    def _may_replace(self, grant: OAuthGrant) -> bool:
        longest = min(_LONGEST_AGE, (grant.lifetime or _LONGEST_AGE) / 4)
        age = self._loop.time() - self._given_at
        if age < min(self._least_age, longest):
            return False
        self._least_age = _FIRST_AGE if age >= longest else max(_FIRST_AGE, 2 * self._least_age)
        return True

    async def _expire(self) -> ToolFailure | None:
        """A token is over that cannot be renewed."""
        assert self.kept is not None
        try:
            await self._vault.end_grant(self.kept, "expired", "its token is over, and there is none to renew it with")
        except ToolFailure as exc:
            return exc
        return await self._load()

    async def _widen(self, challenge: Challenge, used: str | None) -> bool:
        """The token is good, but not for this (step-up). A refresh cannot widen it; a machine asks for more."""
        grant, wanted = self._grant, set(challenge.scopes)
        if grant is not None and self._is_machine and not wanted <= set(grant.requested):
            await self._run(grant.access_token)
        else:
            await self._load()
        grant = self._grant
        if grant is None:
            return False
        if self._header != used and wanted <= set(grant.requested) | set(grant.scopes):
            return True
        # What was asked for and is not enough is not asked for again: such a server would never be content.
        if not self._is_machine and not wanted <= set(grant.requested):
            self._wanted_scopes = tuple(dict.fromkeys([*grant.requested, *grant.scopes, *challenge.scopes]))
        return False

    async def _load(self) -> ToolFailure | None:
        """Look what is kept now."""
        try:
            kept = await self._vault.load_grant(self.spec.name, self.principal)
        except ToolFailure as exc:
            return exc
        if not self.is_loaded or _version(kept) != _version(self.kept):
            self.adopt(kept)
        return None

    async def _run(self, refused: str | None) -> ToolFailure | None:
        """Load the grant or renew it, once for all who wait; why that cannot be now."""
        if self._work is None:
            if self._back_off.remaining:
                return self._trouble
            self._start(refused)
        work = self._work
        return None if work is None else await asyncio.shield(work)

    def _start(self, refused: str | None = None) -> None:
        self._work = self._loop.create_task(self._do(refused))
        self._work.add_done_callback(self._on_work_end)

    def _on_work_end(self, work: asyncio.Task[ToolFailure | None]) -> None:
        self._work = None
        if self._is_stale and not work.cancelled() and not self._back_off.remaining:
            self._start()

    async def _do(self, refused: str | None) -> ToolFailure | None:
        try:
            if not self.is_loaded or self._is_stale:
                trouble = await self._load()
                if trouble is not None:
                    return self._record(trouble)
                self._is_stale = False
                if refused is None and self._is_fresh:
                    return None
            if self._grant is None and not self._is_machine:
                return None
            version = None if self.kept is None else self.kept.version
            wish = RenewalWish(self.spec, self.principal, version, refused, self.challenge)
            result = await self._renewal.run(wish)
            self.adopt(result.kept, result.age)
        except ToolFailure as exc:
            return self._record(exc)
        except Exception as exc:
            logger().error("oauth.failed", server=self.spec.name, error=type(exc).__name__)
            return self._record(unavailable(f"its sign-in could not be renewed ({type(exc).__name__})"))
        return None

    def _record(self, trouble: ToolFailure) -> ToolFailure:
        log = logger().debug if self._back_off.failures else logger().warning
        pause = self._back_off.record(trouble.error.retry_after)
        self._trouble = trouble
        log("oauth.renewal.failed", server=self.spec.name, reason=trouble.error.message, nextTryIn=round(pause, 1))
        if self._is_due and self._is_fresh:
            self._timers.append(self._loop.call_later(pause + _TICK, self._on_due))
        return trouble

    def _failure(self, trouble: ToolFailure) -> ToolFailure:
        """What a call is told that needs a token now."""
        reason = f"server {self.spec.name}: its sign-in cannot be renewed now: {trouble.error.message}"
        wait = max(self._back_off.remaining, 0.0)
        return ToolFailure(ToolErrorCode.UNAVAILABLE, reason, retryable=True, retry_after=wait)

    def _set_timers(self, age: float | None) -> None:
        self._clear_timers()
        self._is_idle, self._is_due, self._is_fresh = True, False, True
        grant = self._grant
        if grant is None or not grant.is_renewable or grant.lifetime is None:
            return
        remaining = _remaining(grant, grant.lifetime, age)
        lapse = remaining - min(_MARGIN * grant.lifetime, _LONGEST_MARGIN)
        due = remaining - min(_AHEAD * grant.lifetime, _LONGEST_AHEAD)
        self._is_fresh, self._is_due = lapse > 0, due <= 0
        if self._is_fresh:
            self._timers.append(self._loop.call_later(lapse, self._on_lapse))
        if not self._is_due:
            # Processes that share a grant need not all come at the same moment.
            due *= random.uniform(0.97, 1.0)  # noqa: S311  it spreads load
            self._timers.append(self._loop.call_later(due, self._on_due))

    def _clear_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _wake(self) -> None:
        self._is_idle = False
        if self._is_due:
            self._on_due()

    def _on_due(self) -> None:
        self._is_due = True
        if self._is_idle or self._work is not None:
            return
        if pause := self._back_off.remaining:
            self._timers.append(self._loop.call_later(pause + _TICK, self._on_due))
            return
        self._least_age = _FIRST_AGE
        self._start()

    def _on_lapse(self) -> None:
        self._is_fresh = False


def _remaining(grant: OAuthGrant, lifetime: float, age: float | None) -> float:
    """Seconds that a token is good for."""
    if age is None:
        return min(grant.remaining(time.time()) or 0.0, lifetime)
    # It was given just now, whatever the clock says; the least is for one that took as long as it lasts.
    return max(lifetime - age, min(lifetime, 1.0))


def _is_just_given(kept: KeptGrant | None, before: KeptGrant | None, age: float) -> bool:
    new, old = (None if each is None else each.grant for each in (kept, before))
    if new is None or old is None or new.access_token == old.access_token:
        return False
    return new.lifetime is not None and age < new.lifetime / 2


def _version(kept: KeptGrant | None) -> int | None:
    return None if kept is None else kept.version


def _needs_client(trouble: ToolFailure | None) -> bool:
    return isinstance(trouble, Postponed) and trouble.needs_client


def _change(before: KeptGrant | None, after: KeptGrant | None, *, is_usable: bool) -> GrantChange | None:
    if after is None or not is_usable:
        if before is None:
            return None
        return "signed_out" if after is None else "ended"
    if before is None:
        return "signed_in"
    return None if before.row.created_at == after.row.created_at else "changed"
