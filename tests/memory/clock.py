"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from dataclasses import dataclass

START = 1_800_000_000.0


@dataclass
class Clock:
    """Seconds since 1970."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
