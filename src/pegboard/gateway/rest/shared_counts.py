"""Shared counts: what several ask for at once is counted once, one count at a time, and what takes long to count is
kept for a moment. A page asks for statistics again after every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from pegboard.lru_dict import LruDict
from pegboard.results.turns import Turns

T = TypeVar("T")
# Seconds from which on a count takes long, and for how long its outcome is then good.
_LONG = 0.1
_GOOD_FOR = 2.0
_MOST_KEPT = 100


@dataclass(frozen=True, slots=True)
class _Count(Generic[T]):
    """What was counted, and from when to when that is good enough."""

    outcome: T
    began: float
    good_until: float

    def is_good_for(self, came: float) -> bool:
        """Whether it will do for whoever came then: it misses nothing that was before, or hardly anything."""
        return self.began >= came or monotonic() < self.good_until


class SharedCounts(Generic[T]):
    """Counts what is asked for, for everybody in turn."""

    def __init__(self) -> None:
        # A thread that counts takes half of the time of everybody else.
        self._turns = Turns(each=1, most=1)
        self._known: LruDict[Hashable, _Count[T]] = LruDict(_MOST_KEPT)

    async def take(self, principal: str, question: Hashable, count: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question; what `count` gives has to be the same for everybody who asks it."""
        came = monotonic()
        async with self._turns.take(principal):
            known = self._known.use(question)
            if known is not None and known.is_good_for(came):
                return known.outcome
            began = monotonic()
            outcome = await count()
            now = monotonic()
            self._known[question] = _Count(outcome, began, now + _GOOD_FOR if now - began > _LONG else now)
            return outcome
