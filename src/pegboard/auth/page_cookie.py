"""The page's cookie: a bearer token that somebody gave the page once, sealed so that only a gateway on the same storage
can use it, and only for the page and REST.

A browser sends a cookie to every port of a host. Another server there that is given it has a text that opens nothing
elsewhere, and whoever reads the database has a key and nothing to open with it. Whether the token still lets somebody
in is asked at every request, as if it were sent as a header.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from pegboard.auth.bearer import MAX_TOKEN

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_CONTEXT = b"pegboard page cookie 1"
_NONCE = 12
_DAYS_30 = 30 * 86_400
_LONGEST = 2 * MAX_TOKEN
# What a cookie is good for: the page itself has nothing secret, and MCP clients send headers.
_PATHS = ("/api/", "/docs", "/openapi.json", "/metrics")


class PageCookie:
    """Seals and opens cookies. Its key is read when the first of them comes."""

    def __init__(self, load_key: Callable[[], Awaitable[bytes]]) -> None:
        self._load_key = load_key
        self._cipher: AESGCM | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its key is there."""
        return self._cipher is not None

    async def prepare(self) -> None:
        """Have the key."""
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(await self._load_key())

    def seal(self, bearer: str) -> str:
        """A cookie's value for this token."""
        assert self._cipher is not None
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, bearer.encode(), _CONTEXT)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, value: str) -> str | None:
        """The token in a cookie's value, if it is one of ours."""
        from cryptography.exceptions import InvalidTag

        assert self._cipher is not None
        try:
            sealed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _CONTEXT).decode()
        except (binascii.Error, InvalidTag, ValueError):
            return None


def cookie_name(scope: Mapping[str, Any]) -> str:
    """The name of the cookie at this gateway: those of several ports of a host stand side by side."""
    server = scope.get("server")
    return f"pegboard_{server[1] if server else 0}"


def cookie_of(scope: MutableMapping[str, Any]) -> str | None:
    """The value of the page's cookie in a request that it is good for."""
    if not scope["path"].startswith(_PATHS):
        return None
    name = cookie_name(scope).encode()
    parts = (part for header, value in scope["headers"] if header == b"cookie" for part in value.split(b";"))
    found = [value for given, _, value in (part.strip().partition(b"=") for part in parts) if given == name]
    # Of two, one is from somebody else on this host, who would have us act for them.
    return found[0].decode("latin-1") if len(found) == 1 and len(found[0]) <= _LONGEST else None


def set_cookie(scope: Mapping[str, Any], value: str, seconds: float) -> str:
    """The header that has a browser keep a cookie, or with nothing forget it. No page can read it, and it comes with
    requests of our own pages alone."""
    age = max(int(min(seconds, _DAYS_30)), 0) if value else 0
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{cookie_name(scope)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
