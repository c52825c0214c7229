"""Lets in only what was meant for us: right Host, own Origin, no more bytes than allowed."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.protocol.client import MAX_BODY
from pegboard.result import ToolError, ToolErrorCode, ToolResult

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Guard:
    """Stands before every route. A page of another site must not reach a gateway that runs commands."""

    def __init__(self, app: ASGIApp, *, host: str) -> None:
        self._app = app
        # Behind another host name than loopback only the user knows which names are right.
        self._loopback_only = host in _LOOPBACK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # httptools keeps blanks around a header's value, which are not part of it.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        refusal = self.refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _Limited(receive) if scope["path"].startswith("/api/") else receive, send)

    def refusal(self, scope: Scope) -> JSONResponse | None:
        """Why a request may not come in, or `None`."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin")
        if self._loopback_only and _hostname(host) not in _LOOPBACK:
            return refused(421, f"Host {host!r} is not this gateway")
        if origin is not None and not self._own_origin(origin.decode("latin-1"), host):
            return refused(403, "requests from other sites' pages are refused (Origin)")
        # A picture or a link on another site's page sends no Origin, but the browser still says where it comes from.
        if headers.get(b"sec-fetch-site") == b"cross-site":
            return refused(403, "requests from other sites' pages are refused (Sec-Fetch-Site)")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            return refused(413, f"a request may have {MAX_BODY:,} bytes at most")
        return None

    def _own_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in {"http", "https"}:
            return False
        return parts.hostname in _LOOPBACK if self._loopback_only else parts.netloc == host


class TooLarge(Exception):  # noqa: N818  it says what the body is
    """The body goes on beyond its limit."""


class _Limited:
    """Counts a body that did not say how long it is."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._size = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > MAX_BODY:
            raise TooLarge
        return message


def refused(status: int, reason: str) -> JSONResponse:
    """The one shape of a refusal."""
    error = ToolError(ToolErrorCode.INVALID_INPUT, reason)
    return JSONResponse(ToolResult[None].failed(error).to_dict(), status_code=status)


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
