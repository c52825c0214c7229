"""The guard lets in only what was meant for us: our own Host, our own Origin, JSON, and no more bytes than allowed.

The user of this machine needs no token, and a browser of theirs reaches the gateway for any page that asks. Two attacks
follow:
DNS rebinding (a page lets its own name point here; `AllowedHosts` refuses the name) and CSRF (a page sends a request
whose answer it cannot read; it is known by `Origin`, `Sec-Fetch-Site` and a content type that needs no preflight).
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.gateway.hosts import AllowedHosts
from pegboard.host_names import is_loopback_name, split_host
from pegboard.protocol.message import MAX_BODY
from pegboard.result import ToolError, ToolErrorCode, ToolResult

# A page of another site may lead here by a link, to be looked at and nothing else.
_PAGES = frozenset({"/", "/docs", "/oauth/callback", "/callback"})
_PAGES_BELOW = ("/connect/", "/oauth/callback/", "/callback/")
# Of two values one reader takes the first and another the last: whoever sends two is refused.
_SINGLE = frozenset({b"host", b"origin", b"content-type", b"content-length"})
_SEC_FETCH = b"sec-fetch-"
_DEFAULT_PORTS = {"http": 80, "https": 443}

_Headers = Mapping[bytes, bytes]


class Guard:
    """Stands before every route."""

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts, pages: frozenset[str] = _PAGES) -> None:
        self._app = app
        self._hosts = hosts
        self._pages = pages

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
        await self._app(scope, receive, send)

    def refusal(self, scope: Scope) -> JSONResponse | None:
        """Why a request may not come in, or `None`."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in headers and (name in _SINGLE or name.startswith(_SEC_FETCH)):
                return refusal_response(400, f"the header {name.decode('latin-1')} was sent twice")
            headers[name] = value
        csrf = _csrf_refusal(scope, headers, self._pages)
        return self._host_refusal(scope, headers) or csrf or _body_refusal(headers)

    def _host_refusal(self, scope: Scope, headers: _Headers) -> JSONResponse | None:
        """The answer to DNS rebinding: no name but our own, whatever address we listen on."""
        host = headers.get(b"host")
        if host is None:
            # Every browser names the host; HTTP/1.0, as health checks of load balancers speak it, need not.
            return None if scope["http_version"] == "1.0" else refusal_response(400, "the header Host is missing")
        parts, server = split_host(host.decode("latin-1")), scope.get("server")
        if parts is not None and self._hosts.admits(parts[0], server[0] if server else None):
            return None
        advice = "`serve --allow-host NAME` and pegboard.hosts allow other names"
        if parts is not None and is_loopback_name(parts[0]):
            advice = "another program has its port at the other address of localhost; `pegboard status` has the address"
        return refusal_response(421, f"Host {host.decode('latin-1')[:200]!r} is not this gateway; {advice}")


def _csrf_refusal(scope: Scope, headers: _Headers, pages: frozenset[str]) -> JSONResponse | None:
    """The answer to CSRF: what a browser sends for a page must be sent for a page of ours."""
    origin = headers.get(b"origin")
    if origin is not None and not _is_own_origin(origin, scope["scheme"], headers.get(b"host", b"")):
        return refusal_response(403, "requests from other sites' pages are refused (Origin)")
    # A picture or a form on another site's page may send no Origin, but the browser still says where it comes from.
    # `none` is the user's own doing: an address typed in, a bookmark.
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if site not in {b"none", b"same-origin"} and not _is_visit(scope, headers, pages):
        return refusal_response(403, "requests from other sites' pages are refused (Sec-Fetch-Site)")
    return None


def _is_own_origin(origin: bytes, scheme: str, host: bytes) -> bool:
    """Whether an Origin is the one that this request went to: scheme, host and port."""
    their_scheme, separator, authority = origin.decode("latin-1").lower().partition("://")
    theirs, ours = split_host(authority), split_host(host.decode("latin-1"))
    if not separator or theirs is None or ours is None or their_scheme != scheme:
        return False
    default = _DEFAULT_PORTS.get(scheme)
    return (theirs[0], theirs[1] or default) == (ours[0], ours[1] or default)


def _is_visit(scope: Scope, headers: _Headers, pages: frozenset[str]) -> bool:
    """Whether somebody follows a link to a page, which then stands in a window of its own."""
    return (
        scope["method"] == "GET"
        and (scope["path"] in pages or scope["path"].startswith(_PAGES_BELOW))
        and headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


def _body_refusal(headers: _Headers) -> JSONResponse | None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MAX_BODY:
        return refusal_response(413, f"a request may have {MAX_BODY:,} bytes at most")
    if int(length) == 0 and b"transfer-encoding" not in headers:
        return None
    # A form or a beacon of any page can send text/plain; JSON takes a preflight, which nobody else's page passes.
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        return refusal_response(415, "a body must be JSON, and say so: Content-Type: application/json")
    return None


def refusal_response(status: int, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The one shape of a refusal."""
    code = ToolErrorCode.NOT_FOUND if status == 404 else ToolErrorCode.INVALID_INPUT
    return JSONResponse(ToolResult[None].failed(ToolError(code, reason)).to_dict(), status, headers)
