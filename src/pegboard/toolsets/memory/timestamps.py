"""Points in time as ISO 8601 texts and back, without losing a digit."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from pegboard.result import invalid

_PARTS = re.compile(r"(.+?)(?:[.,](\d{1,30}))?(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)
# A day less than a calendar has on each end: in another zone, or rounded, a moment must still have a date.
_FIRST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def exact(seconds: float) -> str:
    """With as many digits as it takes to get the same number back."""
    number = Decimal(repr(seconds))
    whole = int(number // 1) - (number < 0 and number % 1 != 0)
    rest = f"{number - whole:f}".partition(".")[2].rstrip("0")
    day = datetime.fromtimestamp(whole, UTC).replace(tzinfo=None).isoformat()
    return f"{day}.{rest}Z" if rest else f"{day}Z"


def seconds_of(text: str, parameter: str) -> float:
    """The seconds since 1970 of a moment; one without a zone is meant in UTC."""
    parts = _PARTS.fullmatch(text.strip())
    try:
        moment = datetime.fromisoformat(parts[1] + (parts[3] or "Z").upper()) if parts else None
    except ValueError:
        moment = None
    if parts is not None and moment is not None:
        seconds = float(int(moment.timestamp()) + Decimal(f"0.{parts[2] or 0}"))
        if _FIRST <= seconds <= _LAST:
            return seconds
    raise invalid(f'{parameter} must be a moment like "2026-01-31T12:00:00Z", found {text[:40]!r}')
