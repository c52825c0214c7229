"""The HTTP client of one server, and what its failures mean."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from pegboard.config import ServerSpec
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.errors import unusable_answer
from pegboard.servers.gathered_bytes import GatheredBytes
from pegboard.servers.http.cookies import Cookies
from pegboard.servers.http.happy_eyeballs import Admit
from pegboard.servers.http.origin import Origin
from pegboard.servers.http.pool import ConnectionFailed, ConnectionPool, Exchange, ResponseHandler
from pegboard.servers.http.refusal import REFUSALS, AccessRefused, refusal_of
from pegboard.servers.http.response import Response
from pegboard.servers.message import MAX_MESSAGE_BYTES

_MAX_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Those after which the same request is sent once more, whatever it is.
SAME_METHOD = frozenset({307, 308})
# However long a pause a server asks for, it is tried once an hour.
_LONGEST_PAUSE = 3600.0


class SessionExpired(ToolFailure):
    """The server no longer knows our session; a new one will do."""

    def __init__(self, label: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, f"{label} ended the session", retryable=True)


class Redirected(ToolFailure):
    """The server is at another address of its own, and has not acted on the request."""

    def __init__(self, label: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, f"{label} redirects", retryable=True)


class Unreachable(ToolFailure):
    """No connection could be made (`refused`), or it broke."""

    def __init__(self, label: str, reason: str, *, refused: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, f"{label} cannot be reached: {reason}", retryable=True)
        self.refused = refused


def is_unacted(failure: ToolFailure) -> bool:
    """Whether a request failed before the server could act on it, so that it can be sent again without harm; one whose
    credentials were refused, only with others."""
    if isinstance(failure, AccessRefused):
        return failure.is_renewed
    return isinstance(failure, (SessionExpired, Redirected)) or (isinstance(failure, Unreachable) and failure.refused)


class WrongStatus(ToolFailure):
    """An HTTP status that is no answer, and how long a pause the server asks for."""

    def __init__(self, label: str, status: int, headers: Mapping[str, str] | None = None, words: str = "") -> None:
        code = ToolErrorCode.RATE_LIMITED if status == 429 else ToolErrorCode.UNAVAILABLE
        retryable = status in {408, 425, 429} or status >= 500
        pause = _retry_after((headers or {}).get("retry-after", "").strip()) if retryable else 0.0
        asks = f" and asks for a pause of {pause:.0f} s" if pause else ""
        said = f"{label} answered HTTP {status}{asks}{f': {words}' if words else ''}"
        super().__init__(code, said, retryable=retryable, retry_after=pause)
        self.status = status


def _retry_after(value: str) -> float:
    """The seconds that `Retry-After` names, as a number or as a date; 0 if it is neither."""
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_PAUSE)
    try:
        pause = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(pause, 0.0), _LONGEST_PAUSE)


class HttpResponse(Protocol):
    """A response, whichever client it comes from."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


class HttpClient(Protocol):
    """Carries requests to one server."""

    def stream(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, principal_id: str = ""
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a request of this principal's; its response, the body still to be read. Raises `ConnectionFailed`."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...


class DirectClient:
    """Our own: HTTP/1.1 on connections that are kept."""

    def __init__(self, spec: ServerSpec, admit: Admit | None = None) -> None:
        assert spec.url is not None
        self.origin = Origin.of(spec.url)
        self._own_headers = dict(spec.headers)
        self._cookies = Cookies()
        self._pool = ConnectionPool(
            self.origin.host,
            self.origin.port,
            tls=_tls if self.origin.scheme == "https" else None,
            connect_timeout=spec.connect_timeout,
            admit=admit,
        )
        # Counts whatever changes the head of a request, for those who keep one.
        self.changes = 0

    def head(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        """The head of a request, but for the length of its body and the empty line."""
        cookies = {"cookie": self._cookies.header} if self._cookies.header else {}
        return self.origin.head(method, url, {**cookies, **self._own_headers, **headers})

    def send(self, head: bytes, body: bytes, handler: ResponseHandler) -> Exchange:
        """Send a request whose head is ready; the answer goes to the handler."""
        return self._pool.send(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body), handler)

    def remember(self, headers: Mapping[str, str]) -> None:
        """Keep what an answer wants to hear again."""
        if self._cookies.take(headers.get("set-cookie")):
            self.changes += 1

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, principal_id: str = ""
    ) -> AsyncGenerator[Response]:
        """Send a request; its response, the body still to be read."""
        response = Response(principal_id)
        head = self.head(method, url, headers)
        length = b"" if body is None else b"content-length: %d\r\n" % len(body)
        response.exchange = self._pool.send(b"%b%b\r\n%b" % (head, length, body or b""), response)
        try:
            await response.wait_for_head()
            self.remember(response.headers)
            yield response
        finally:
            response.exchange.abandon()

    async def close(self) -> None:
        """End all connections."""
        await self._pool.close()


def make_client(spec: ServerSpec, admit: Admit | None = None) -> HttpClient:
    """The client for a server; time limits are the caller's business, except for connecting.

    Behind a proxy nobody but the proxy sees the addresses that `admit` would be asked about.
    """
    if is_behind_proxy(Origin.of(spec.url or "")):
        from pegboard.servers.http.proxied import ProxiedClient

        return ProxiedClient(spec, _tls)
    return DirectClient(spec, admit)


def is_behind_proxy(origin: Origin) -> bool:
    """Whether the environment names a proxy for this origin."""
    proxies = getproxies()
    if not (proxies.get(origin.scheme) or proxies.get("all")):
        return False
    # An exception may be made for all of a host, or for one of its ports.
    return not proxy_bypass(origin.host) and not proxy_bypass(f"{origin.host}:{origin.port}")


@cache
def _tls() -> ssl.SSLContext:
    # Loading the certificates takes 27 ms: once for all servers.
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def exchange(
    client: HttpClient,
    label: str,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    principal_id: str = "",
    follow: Collection[int] = SAME_METHOD,
) -> AsyncGenerator[HttpResponse]:
    """One HTTP exchange, its body still to be read; redirects are followed only within the server's own origin."""
    for _ in range(_MAX_REDIRECTS + 1):
        try:
            async with client.stream(method, url, headers, body, principal_id) as response:
                target = _redirect(response, url, label, follow)
                if target is None:
                    yield response
                    return
                url = target
        except ConnectionFailed as exc:
            raise Unreachable(label, str(exc), refused=exc.refused) from exc
    raise unavailable(f"{label} redirects in a circle", retryable=False)


def _redirect(response: HttpResponse, url: str, label: str, follow: Collection[int]) -> str | None:
    if response.status_code not in REDIRECTS:
        return None
    target = within_origin(url, response.headers.get("location", ""))
    # Following further would carry the server's credentials to somebody else.
    if target is None or response.status_code not in follow:
        raise unavailable(
            f"{label} redirects to {_describe_redirect(url, response.headers.get('location', ''))}: "
            "use that address if it is the right one",
            retryable=False,
        )
    return target


def within_origin(url: str, location: str) -> str | None:
    """The address that a location means, seen from another; `None` if it is not of the same origin."""
    try:
        target = urljoin(url, location)
    except ValueError:
        return None
    if not Origin.of(url).holds(target):
        return None
    # Whoever we are at the one address, we are at the other.
    found = urlsplit(target)
    return urlunsplit((found.scheme, urlsplit(url).netloc, found.path, found.query, ""))


def _describe_redirect(url: str, location: str) -> str:
    try:
        new = urlsplit(urljoin(url, location))
    except ValueError:
        return repr(location[:200])
    return f"{new.scheme}://{new.netloc.rpartition('@')[2]}{new.path}"


def check_status(response: HttpResponse, label: str) -> None:
    """Raise what a status that is no success means."""
    status = response.status_code
    if status in REFUSALS:
        raise refusal_of(label, status, response.headers)
    if status >= 400:
        raise WrongStatus(label, status, response.headers)


async def read_body(response: HttpResponse, label: str) -> bytes:
    """The whole body, if it is not too large."""
    body = GatheredBytes()
    async for part in response.aiter_bytes():
        if body.size + len(part) > MAX_MESSAGE_BYTES:
            raise unusable_answer(label, f"larger than {MAX_MESSAGE_BYTES:,} bytes")
        body.add(part)
    return body.take()


async def read_start(response: HttpResponse, most: int) -> bytes:
    """The body as far as a little more than so many bytes: enough to see that it is longer."""
    body = GatheredBytes()
    async for part in response.aiter_bytes():
        body.add(part)
        if body.size > most:
            break
    return body.take()


def media_type(headers: Mapping[str, str]) -> str:
    """The body's media type, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
