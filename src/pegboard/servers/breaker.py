"""When to try a server again: back-off with jitter, and a breaker that stops trying for a while."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

_FAILURES_TO_OPEN = 3
_FIRST_OPEN = 30.0
_LONGEST_OPEN = 300.0
_FIRST_PAUSE = 1.0
# A server that connects and is lost again costs one start a try, and comes back soon after it is well.
_LONGEST_LOST = 30.0


def _default_random() -> float:
    return random.random()  # noqa: S311  it spreads load, it guards nothing


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. Three open it for 30 s, doubling to 5 min; one success closes it."""

    clock: Callable[[], float]
    chance: Callable[[], float] = _default_random
    failures: int = 0
    retry_at: float = 0.0
    reason: str | None = field(default=None)

    def failed(self, reason: str) -> None:
        """One more failure in a row."""
        self.failures += 1
        self.reason = reason
        self.retry_at = self.clock() + self._pause()

    def reopen(self, reason: str) -> None:
        """A trial failed that was not made for a call: the pause begins anew, and grows no longer by it."""
        self.reason = reason
        self.retry_at = self.clock() + self._pause()

    def half_open(self) -> None:
        """Let the next try through now; whether it succeeds closes or opens the breaker."""
        self.retry_at = 0.0

    def lost(self, reason: str, losses: int) -> None:
        """A live connection was lost, for the n-th time in short order: it is tried again in a while."""
        self.reason = reason
        self.retry_at = self.clock() + self._jitter(min(2.0 ** min(losses, 10) - 0.5, _LONGEST_LOST))

    def succeeded(self) -> None:
        """All is well again."""
        self.failures = 0
        self.retry_at = 0.0
        self.reason = None

    @property
    def tripped(self) -> bool:
        """Whether so much went wrong in a row that the server counts as lost."""
        return self.failures >= _FAILURES_TO_OPEN

    @property
    def open(self) -> bool:
        """Whether a try would be refused right now."""
        return self.tripped and self.clock() < self.retry_at

    @property
    def waiting(self) -> bool:
        """Whether a try in the background should wait; a call that needs the server need not."""
        return self.clock() < self.retry_at

    def remaining(self) -> float:
        """Seconds until the next try."""
        return max(0.0, self.retry_at - self.clock())

    def _pause(self) -> float:
        over = self.failures - _FAILURES_TO_OPEN
        pause = (
            _FIRST_PAUSE * 2 ** (self.failures - 1)
            if over < 0
            else min(_FIRST_OPEN * 2 ** min(over, 10), _LONGEST_OPEN)
        )
        return self._jitter(pause)

    def _jitter(self, pause: float) -> float:
        # Up to a fifth more, so that a hundred clients of one server do not come back in step.
        return pause * (1 + 0.2 * self.chance())
