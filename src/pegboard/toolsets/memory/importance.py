"""How much a memory matters now, from 0 to 100: worked out from stored facts whenever it is read."""

from __future__ import annotations

import math

START = 50.0
_QUARTER_HOUR = 15 * 60.0
_DAY = 24 * 60 * 60.0
_ACTIVE, _COLD = 70.0, 30.0


def score(base: float, accesses: int, degree: int, elapsed: float) -> float:
    """The score of a memory that was last looked at so many seconds ago.

    It fades a little with time, and rises with use and with links.
    """
    ago = max(elapsed, 0.0) / _QUARTER_HOUR
    freshness = 1 - 0.05 * (1 - math.exp(-ago))
    use = accesses / (1 + ago)
    return min(max(base * freshness + 10 * use / (use + 1) + 5 * degree / (degree + 5), 0.0), 100.0)


def status_of(value: float, age: float) -> str:
    """The state that a score stands for; what was written within a day counts as active, read or not."""
    if value >= _ACTIVE or age < _DAY:
        return "active"
    return "cold" if value >= _COLD else "deprecated"
