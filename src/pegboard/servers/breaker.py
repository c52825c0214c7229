"""When to try a server again: back-off with jitter, and a circuit breaker that stops trying for a while."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pegboard.result import ToolErrorCode, ToolFailure

_FAILURES_TO_OPEN = 3
_FIRST_OPEN = 30.0
_LONGEST_OPEN = 300.0
_FIRST_PAUSE = 1.0
# A server that connects and is lost again costs one start a try, and comes back soon after it is well.
_LONGEST_LOST = 30.0
# A connection that lived this long was a good one: its loss does not count with those before.
_STEADY = 30.0


def _default_random() -> float:
    return random.random()  # noqa: S311  it spreads load, it guards nothing


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. Three open it for 30 s, doubling to 5 min; one success closes it."""

    clock: Callable[[], float]
    chance: Callable[[], float] = _default_random
    failures: int = 0
    # Calls in a row that had no answer in time, and when a call last had one.
    timeouts: int = 0
    answered_at: float = float("-inf")
    # How often in a row a connection was lost that had not lived for long.
    flaps: int = 0
    retry_at: float = 0.0
    # Until when the server itself asks not to be tried.
    hold_off_until: float = 0.0
    reason: str | None = field(default=None)

    def record_failure(self, reason: str, *, for_call: bool = True) -> None:
        """One more failure in a row; one that no call waited for counts as none, but an open breaker stays open."""
        if for_call:
            self.failures += 1
        elif not self.is_tripped:
            return
        self.reason = reason
        self.retry_at = self.clock() + self._pause()

    def hold_off(self, seconds: float) -> None:
        """The server itself asks not to be tried for so long: nobody tries, however few failures there were."""
        self.hold_off_until = self.clock() + seconds

    def half_open(self) -> None:
        """Let the next try through now; whether it succeeds closes or opens the breaker."""
        self.retry_at = self.hold_off_until = 0.0

    def record_loss(self, reason: str, lived: float) -> None:
        """A live connection was lost: it is tried again in a while, later where that happens in short order."""
        self.reason = reason
        self.flaps = 0 if lived >= _STEADY else self.flaps + 1
        pause = self._jitter(min(2.0 ** min(self.flaps, 10) - 0.5, _LONGEST_LOST))
        # An open breaker stays open.
        self.retry_at = max(self.clock() + pause, self.retry_at if self.is_tripped else 0.0)

    def record_timeout(self, reason: str, since: float) -> bool:
        """A call that was sent then had no answer in time; whether that was one too many in a row, and it opens."""
        if self.answered_at >= since:
            # Others were answered meanwhile: one slow tool does not make a slow server.
            return False
        self.timeouts += 1
        if self.timeouts < _FAILURES_TO_OPEN:
            return False
        self.failures = self.timeouts - 1
        self.record_failure(reason)
        return True

    def record_answer(self) -> None:
        """A call was answered, which ends the row of those that were not; that a server connects does not."""
        self.timeouts, self.answered_at = 0, self.clock()

    def record_success(self) -> None:
        """All is well again."""
        self.failures = 0
        self.retry_at = self.hold_off_until = 0.0
        self.reason = None

    @property
    def is_tripped(self) -> bool:
        """Whether so much went wrong in a row that the server counts as lost."""
        return self.failures >= _FAILURES_TO_OPEN

    @property
    def is_open(self) -> bool:
        """Whether a try would be refused right now."""
        return self.remaining() > 0 if self.is_tripped else self.retry_after() > 0

    @property
    def is_waiting(self) -> bool:
        """Whether a try in the background should wait; a call that needs the server need not."""
        return self.remaining() > 0

    def refusal(self, who: str, last_error: str | None) -> ToolFailure:
        """What a call is told that may not try now."""
        words = f"{who} is unavailable ({self.reason or last_error}); next try in {self.remaining():.0f} s"
        return ToolFailure(ToolErrorCode.UNAVAILABLE, words, retryable=True, retry_after=self.retry_after())

    def remaining(self) -> float:
        """Seconds until the next try."""
        return max(0.0, self.retry_at - self.clock(), self.retry_after())

    def retry_after(self) -> float:
        """Seconds for which the server itself asks not to be tried."""
        return max(0.0, self.hold_off_until - self.clock())

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
