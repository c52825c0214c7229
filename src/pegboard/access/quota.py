"""A quota: how many calls a principal may make in a time, and how many at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RATE = re.compile(r"([1-9][0-9]{0,8})\s*/\s*([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
RATE_HINT = 'must be a rate such as "60/m": a number of calls, then s, m, h or d'


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds."""

    calls: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Rate | None:
        """A rate as people write it, `60/m`; `None` if it is none."""
        match = _RATE.fullmatch(text.strip())
        return None if match is None else cls(int(match[1]), _SECONDS[match[2]])

    def __str__(self) -> str:
        unit = next(unit for unit, seconds in _SECONDS.items() if seconds == self.seconds)
        return f"{self.calls}/{unit}"


@dataclass(frozen=True, slots=True)
class Quota:
    """What a principal may use of the gateway, or of one server. Nothing given means no limit."""

    rate: Rate | None = None
    in_flight: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """Whether it limits nothing."""
        return self.rate is None and self.in_flight is None
