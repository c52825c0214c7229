"""Where a server is: its address taken apart for the client, and the head of every request to it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from pegboard.result import ToolFailure, invalid
from pegboard.version import VERSION

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# What may stand in a path or a query as it is; the rest is written in percents.
_PLAIN = "!$%&'()*+,/:;=?@[]~-._"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_HOST = re.compile(r"[a-z0-9._~-]+|[0-9a-f:.]+(%[a-z0-9._~-]+)?")
# Where a request ends is for us alone to say: two words on it are two requests.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of an address, and who we say we are there."""

    scheme: str
    host: str
    port: int
    authorization: str | None = None

    @classmethod
    def of(cls, url: str) -> Origin:
        """The origin of an address; a failure that names what is wrong with it."""
        try:
            parts = urlsplit(url)
            port = _PORTS.get(parts.scheme) if parts.port is None else parts.port
            host = _ascii(parts.hostname or "")
        except ValueError:
            raise invalid(f"{_redact_url(url)!r} is no address that can be used") from None
        if port is None or not host:
            raise invalid(f"{_redact_url(url)!r} is no http or https address")
        if not port or not _HOST.fullmatch(host):
            raise invalid(f"{_redact_url(url)!r} is no address that can be used")
        credentials = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            credentials = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.scheme, host, port, credentials)

    def holds(self, url: str) -> bool:
        """Whether an address is of this origin, whoever it says we are there."""
        try:
            other = Origin.of(url)
        except ToolFailure:
            return False
        return (other.scheme, other.host, other.port) == (self.scheme, self.host, self.port)

    @property
    def authority(self) -> str:
        """The host as a request names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def head(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        """The head of a request, but for the length of its body and the empty line."""
        named = {"host": self.authority, "user-agent": f"pegboard/{VERSION}"}
        # On this machine it would cost more to pack an answer than to carry it.
        named["accept-encoding"] = "identity" if self.host in _LOOPBACK else "gzip, deflate"
        if self.authorization is not None:
            named["authorization"] = self.authorization
        named.update({name.lower(): value for name, value in headers.items()})
        if odd := [name for name in named if name in _FRAMING or not _NAME.fullmatch(name)]:
            raise invalid(f"{odd[0]!r} cannot be set as a header")
        lines = [f"{method} {_target(url)} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        if any("\r" in line or "\n" in line or "\0" in line for line in lines):
            raise invalid("a header must not contain the end of a line")
        return "\r\n".join(lines).encode("utf-8") + b"\r\n"


def _target(url: str) -> str:
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_PLAIN)
    return f"{path}?{quote(parts.query, safe=_PLAIN)}" if parts.query else path


def _ascii(host: str) -> str:
    """A host as requests and certificates name it."""
    if host.isascii():
        return host
    # By today's rules for such names: Python's own codec takes "ß" for "ss", which is somebody else's.
    import httpx2

    try:
        return httpx2.URL(scheme="http", host=host).raw_host.decode("ascii")
    except httpx2.InvalidURL as exc:
        raise ValueError(str(exc)) from None


def _redact_url(url: str) -> str:
    """An address without what may be secret about it."""
    parts = url.partition("?")[0].partition("//")
    return f"{parts[0]}{parts[1]}{parts[2].rpartition('@')[2]}"
