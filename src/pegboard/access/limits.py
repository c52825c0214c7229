"""Limits: how many calls each principal makes in a time, and how many at once; in all, and at each server.

A rate is a token bucket: so many calls at once as it says, and then as they come back. Whoever is over a limit is
told so before anything is sent to a server.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from pegboard.access.access import Access
from pegboard.access.principal import Principal
from pegboard.access.quota import Quota, Rate
from pegboard.result import ToolErrorCode, ToolFailure

Scope = Literal["principal", "server"]
# So many are kept at least; of more, those that have used up nothing are forgotten.
_MOST_METERS = 4096
# How many of the oldest are looked at whenever a new one comes.
_LOOKS = 4
# When a place will be free nobody knows.
_RETRY_FOR_PLACE = 1.0
# What is lost of a token by the arithmetic of floats.
_ALMOST = 1.0 - 1e-9


class RateLimited(ToolFailure):
    """A principal has reached one of its limits."""

    def __init__(self, scope: Scope, message: str, retry_after: float) -> None:
        # To the millisecond, and never too early.
        seconds = math.ceil(retry_after * 1000) / 1000
        words = f"{message}; try again in {max(math.ceil(seconds), 1)} s"
        super().__init__(ToolErrorCode.RATE_LIMITED, words, retryable=True, retry_after=seconds)
        self.scope: Scope = scope


class _Bucket:
    """The tokens that are left of a rate."""

    __slots__ = ("at", "tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        self.tokens = float(rate.calls)
        self.at = now

    def refill(self, rate: Rate, now: float) -> float:
        """How many tokens there are now."""
        back = (now - self.at) * rate.calls / rate.seconds
        self.tokens, self.at = min(float(rate.calls), self.tokens + back), now
        return self.tokens


class _Meter:
    """What one principal uses now, in all or of one server."""

    __slots__ = ("buckets", "in_flight")

    def __init__(self) -> None:
        self.in_flight = 0
        # By the rate: a principal may come with other rules than a moment ago, and has still used what it used.
        self.buckets: dict[Rate, _Bucket] = {}

    def refusal(self, quota: Quota, now: float) -> tuple[str, float] | None:
        """Why it may not call now, and when it may; `None` if it may."""
        if quota.in_flight is not None and self.in_flight >= quota.in_flight:
            return f"{self.in_flight} are under way, and the limit is {quota.in_flight}", _RETRY_FOR_PLACE
        if quota.rate is None:
            return None
        bucket = self.buckets.get(quota.rate)
        if bucket is None:
            bucket = self.buckets[quota.rate] = _Bucket(quota.rate, now)
        tokens = bucket.refill(quota.rate, now)
        if tokens >= _ALMOST:
            return None
        return f"the limit is {quota.rate}", (1.0 - tokens) * quota.rate.seconds / quota.rate.calls

    def take(self, quotas: list[Quota], count: int = 1) -> None:
        """Use up a call; `-1` gives one back that was not made."""
        for bucket in {self.buckets[quota.rate] for quota in quotas if quota.rate is not None}:
            bucket.tokens -= count

    def report(self, quota: Quota, now: float) -> Iterator[tuple[str, int]]:
        """Each limit of a quota as people write it, and how many calls are left of it."""
        if quota.rate is not None:
            bucket = self.buckets.get(quota.rate)
            tokens = quota.rate.calls if bucket is None else bucket.refill(quota.rate, now)
            yield str(quota.rate), int(tokens + 1 - _ALMOST)
        if quota.in_flight is not None:
            yield f"{quota.in_flight} at once", max(quota.in_flight - self.in_flight, 0)

    def is_idle(self, now: float) -> bool:
        """Whether it has used up nothing, so that a new one would be the same."""
        return not self.in_flight and all(
            bucket.refill(rate, now) >= rate.calls * _ALMOST for rate, bucket in self.buckets.items()
        )


class Slot:
    """The place of one call that was admitted, until it is over."""

    __slots__ = ("_used",)

    def __init__(self, used: list[tuple[_Meter, list[Quota]]]) -> None:
        self._used = used
        for meter, quotas in used:
            meter.in_flight += 1
            meter.take(quotas)

    def release(self) -> None:
        """The call is over, however it ended. A second time changes nothing."""
        used, self._used = self._used, []
        for meter, _ in used:
            meter.in_flight -= 1

    def give_back(self) -> None:
        """The call was not made here after all."""
        for meter, quotas in self._used:
            meter.take(quotas, -1)
        self.release()


@dataclass(frozen=True, slots=True)
class LimitLeft:
    """A limit as people write it, and how many calls are left of it now: in all, or at a server."""

    limit: str
    left: int
    server: str | None = None


class Limits:
    """What principals with limits use now."""

    def __init__(
        self, on_refusal: Callable[[Scope], None] = lambda _: None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._on_refusal = on_refusal
        self._clock = clock
        # By the principal's id, and the server's name, in the order in which they were last used.
        self._meters: OrderedDict[tuple[str, str | None], _Meter] = OrderedDict()

    def __len__(self) -> int:
        return len(self._meters)

    def admit(self, principal: Principal, server: str | None) -> Slot | None:
        """A place for a call to a server, or to a tool of Pegboard's own; `None` for whoever has no limits.

        Raises `RateLimited`.
        """
        access = principal.access
        if access is None or not access.limits_calls:
            return None
        return self._admit(principal.id, access, server)

    def in_flight(self, principal: Principal, server: str | None = None) -> int:
        """How many calls of a principal with limits are under way, in all or at a server that has limits for it."""
        meter = self._meters.get((principal.id, server))
        return 0 if meter is None else meter.in_flight

    def report(self, principal: Principal, servers: Iterable[str]) -> list[LimitLeft]:
        """What is left of the limits of a principal: in all, and at those of these servers that have limits for it."""
        access, now, unused = principal.access, self._clock(), _Meter()
        if access is None or not access.limits_calls:
            return []
        return [
            LimitLeft(limit, left, server)
            for server in (None, *servers)
            for quota in access.quotas(server)
            for limit, left in self._meters.get((principal.id, server), unused).report(quota, now)
        ]

    def _admit(self, principal: str, access: Access, server: str | None) -> Slot:
        now = self._clock()
        used: list[tuple[_Meter, list[Quota]]] = []
        # All are asked before anything is used up.
        for at in (None,) if server is None else (None, server):
            quotas = access.quotas(at)
            if not quotas:
                continue
            meter = self._meter((principal, at), now)
            refusals = [refusal for quota in quotas if (refusal := meter.refusal(quota, now)) is not None]
            if refusals:
                scope: Scope = "principal" if at is None else "server"
                self._on_refusal(scope)
                reason, wait = max(refusals, key=lambda each: each[1])
                raise RateLimited(scope, f"too many calls{'' if at is None else f' to server {at}'}: {reason}", wait)
            used.append((meter, quotas))
        return Slot(used)

    def _meter(self, key: tuple[str, str | None], now: float) -> _Meter:
        meter = self._meters.get(key)
        if meter is None:
            if len(self._meters) >= _MOST_METERS:
                self._forget_idle(now)
            meter = self._meters[key] = _Meter()
        else:
            self._meters.move_to_end(key)
        return meter

    def _forget_idle(self, now: float) -> None:
        """Make room. Whoever is in debt is not forgotten: else it would be enough to come in the company of many."""
        for key in [key for key, _ in zip(self._meters, range(_LOOKS), strict=False)]:
            if self._meters[key].is_idle(now):
                del self._meters[key]
            else:
                self._meters.move_to_end(key)
