"""When a token expires, as people write it: in some time, `30d`, or on a day, `2027-01-01`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION = re.compile(r"([1-9][0-9]{0,8})\s*([smhdw])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_LONGEST = 100 * 366 * 86400.0
_HINT = "must be a time such as 30d, 12h or 90m, a day such as 2027-01-01, or never"


class ExpiryError(ValueError):
    """What is wrong with a time of expiry."""


def parse_expiry(text: str, now: float) -> float:
    """The moment that is meant, in seconds since 1970. A day begins at midnight UTC, and so does a time without an
    offset."""
    moment = _parse(text.strip(), now)
    if moment is None:
        raise ExpiryError(f"expires {_HINT}, found {text[:40]!r}")
    if moment <= now:
        raise ExpiryError(f"expires must be in the future, found {text[:40]!r}")
    if moment - now > _LONGEST:
        raise ExpiryError(f"expires must be within a hundred years, found {text[:40]!r}; without it a token stays")
    return moment


def _parse(text: str, now: float) -> float | None:
    if (match := _DURATION.fullmatch(text)) is not None:
        return now + int(match[1]) * _SECONDS[match[2]]
    try:
        day = datetime.fromisoformat(text)
        return (day if day.tzinfo is not None else day.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
