"""Cookies of one origin: load balancers keep a session on one machine with them."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

_MAX_COOKIES = 50


class Cookies:
    """What the origin wants to hear again, for as long as the conversation lasts."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def take(self, said: str | None) -> bool:
        """Take over what one answer set, one line a cookie; whether that changed anything."""
        if not said:
            return False
        before = dict(self._values)
        for line in said.split("\n"):
            try:
                morsels = SimpleCookie(line).items()
            except CookieError:
                continue
            for name, morsel in morsels:
                if morsel["max-age"] == "0" or not morsel.coded_value:
                    self._values.pop(name, None)
                elif name in self._values or len(self._values) < _MAX_COOKIES:
                    self._values[name] = morsel.coded_value
        return before != self._values

    @property
    def header(self) -> str | None:
        """What goes along with the next request."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items()) or None
