"""When to ask an authorization server again that could not answer: pauses that grow, with jitter."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
# Whoever is told to come back next year asks before.
_LONGEST_WISH = 3600.0


@dataclass(slots=True)
class BackOff:
    """Counts failures in a row."""

    clock: Callable[[], float]
    failures: int = 0
    until: float = 0.0

    def record(self, retry_after: float = 0.0) -> float:
        """It failed again, and is not to be asked for so many seconds; how long that is."""
        pause = min(_FIRST_PAUSE * 2**self.failures, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311  it spreads load
        self.failures = min(self.failures + 1, 16)
        pause = max(pause, min(retry_after, _LONGEST_WISH))
        self.until = self.clock() + pause
        return pause

    def clear(self) -> None:
        """It answered."""
        self.failures, self.until = 0, 0.0

    @property
    def remaining(self) -> float:
        """Seconds for which it is left alone."""
        return max(self.until - self.clock(), 0.0)
