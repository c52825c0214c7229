"""Cookies of one origin: load balancers keep a session on one machine with them."""

from __future__ import annotations

import time
from email.utils import mktime_tz, parsedate_tz

_MAX_COOKIES = 50
_MAX_SIZE = 4096


class Cookies:
    """What the origin wants to hear again, for as long as the conversation lasts."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def take(self, said: str | None) -> bool:
        """Take over what one answer set, one line a cookie; whether that changed anything."""
        before = dict(self._values)
        for line in (said or "").split("\n"):
            # As RFC 6265 reads it: the standard library gives up on attributes that are younger than it.
            pair, *attributes = line.split(";")
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not equals or not name or len(pair) > _MAX_SIZE:
                continue
            if not value or _is_over(attributes):
                self._values.pop(name, None)
            elif name in self._values or len(self._values) < _MAX_COOKIES:
                self._values[name] = value
        return before != self._values

    @property
    def header(self) -> str | None:
        """What goes along with the next request."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items()) or None


def _is_over(attributes: list[str]) -> bool:
    """Whether a cookie is set only to be forgotten."""
    said: dict[str, str] = {}
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        said[name.strip().lower()] = value.strip()
    if (age := said.get("max-age", "")).removeprefix("-").isdecimal():
        return age.startswith("-") or not age.strip("0")
    try:
        until = parsedate_tz(said.get("expires", ""))
        return until is not None and mktime_tz(until) <= time.time()
    except (ValueError, OverflowError):
        # A date that no clock will ever show.
        return False
