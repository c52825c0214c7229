"""The pace of news: a server that says something else each time is written about, told of and recorded now and then."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

# So much is told at once, and then once in so many seconds.
_MOST, _PAUSE = 20, 60.0


@dataclass(slots=True)
class NewsPace:
    """Of one server as somebody is shown it."""

    _left: float = field(default_factory=lambda: float(_MOST))
    _at: float = field(default_factory=monotonic)

    def wait(self) -> float:
        """How many seconds it is too early for news; 0: it is told now, and counts."""
        now = monotonic()
        self._left = min(float(_MOST), self._left + (now - self._at) / _PAUSE)
        self._at = now
        if self._left < 1:
            return (1 - self._left) * _PAUSE
        self._left -= 1
        return 0.0
