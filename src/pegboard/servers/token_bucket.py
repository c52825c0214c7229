"""A token bucket: so much at once, and so much a second after that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(slots=True)
class TokenBucket:
    """`burst` tokens to begin with, and `rate` new ones a second."""

    rate: float
    burst: float
    clock: Callable[[], float] = monotonic
    # How often there was none, since it was last asked for.
    refused: int = 0
    _tokens: float = -1.0
    _at: float = 0.0

    def take(self) -> bool:
        """Take a token, if there is one."""
        now = self.clock()
        fresh = self._tokens < 0
        self._tokens = self.burst if fresh else min(self.burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1:
            self.refused += 1
            return False
        self._tokens -= 1
        return True

    def take_refused(self) -> int:
        """How often there was none since this was last asked."""
        refused, self.refused = self.refused, 0
        return refused
