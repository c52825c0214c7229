"""The HTTP client that all servers share, and what its failures mean."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from urllib.parse import urljoin, urlsplit

import httpx2

from pegboard.config import ServerSpec
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.link import MAX_MESSAGE_BYTES, broken_answer

_MAX_REDIRECTS = 3


class NeedsAuth(ToolFailure):
    """The server wants credentials that it was not given."""

    def __init__(self, label: str, status: int) -> None:
        said = "refused the credentials" if status == 403 else "wants credentials"
        super().__init__(
            ToolErrorCode.UNAVAILABLE,
            f'{label} {said} (HTTP {status}): set "headers" with an Authorization in its config',
            retryable=False,
        )


class SessionExpired(ToolFailure):
    """The server no longer knows our session; a new one will do."""

    def __init__(self, label: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, f"{label} ended the session", retryable=True)


class Unreachable(ToolFailure):
    """No connection could be made (`refused`), or it broke."""

    def __init__(self, label: str, reason: str, *, refused: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, f"{label} cannot be reached: {reason}", retryable=True)
        self.refused = refused


class WrongStatus(ToolFailure):
    """An HTTP status that is no answer."""

    def __init__(self, label: str, status: int) -> None:
        code = ToolErrorCode.RATE_LIMITED if status == 429 else ToolErrorCode.UNAVAILABLE
        super().__init__(code, f"{label} answered HTTP {status}", retryable=status in {408, 425, 429} or status >= 500)
        self.status = status


@cache
def _tls() -> ssl.SSLContext:
    # Loading the certificates takes 27 ms: once for all servers.
    return httpx2.create_ssl_context()


def make_client(spec: ServerSpec) -> httpx2.AsyncClient:
    """A client with the server's own headers; time limits are the link's business, except for connecting."""
    return httpx2.AsyncClient(
        verify=_tls() if (spec.url or "").startswith("https") else False,
        headers=dict(spec.headers),
        timeout=httpx2.Timeout(None, connect=spec.connect_timeout),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30),
        follow_redirects=False,
    )


@asynccontextmanager
async def exchange(
    client: httpx2.AsyncClient, label: str, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
) -> AsyncGenerator[httpx2.Response]:
    """One HTTP exchange, its body still to be read; redirects are followed only within the server's own origin."""
    for _ in range(_MAX_REDIRECTS + 1):
        try:
            async with client.stream(method, url, headers=dict(headers), content=body) as response:
                target = _redirect(response, url, label)
                if target is None:
                    yield response
                    return
                url = target
        except httpx2.TransportError as exc:
            refused = isinstance(exc, (httpx2.ConnectError, httpx2.ConnectTimeout))
            raise Unreachable(label, str(exc) or type(exc).__name__, refused=refused) from exc
    raise unavailable(f"{label} redirects in a circle", retryable=False)


def _redirect(response: httpx2.Response, url: str, label: str) -> str | None:
    if response.status_code not in {301, 302, 303, 307, 308}:
        return None
    target = urljoin(url, response.headers.get("location", ""))
    old, new = urlsplit(url), urlsplit(target)
    # Following further would carry the server's credentials to somebody else.
    if (old.scheme, old.netloc) != (new.scheme, new.netloc) or response.status_code not in {307, 308}:
        raise unavailable(
            f"{label} redirects to {new.scheme}://{new.netloc.rpartition('@')[2]}{new.path}: "
            "use that address if it is the right one",
            retryable=False,
        )
    return target


def check_status(response: httpx2.Response, label: str) -> None:
    """Raise what a status that is no success means."""
    status = response.status_code
    if status in {401, 403}:
        raise NeedsAuth(label, status)
    if status >= 400:
        raise WrongStatus(label, status)


async def read_body(response: httpx2.Response, label: str) -> bytes:
    """The whole body, if it is not too large."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_MESSAGE_BYTES:
            raise broken_answer(label, f"larger than {MAX_MESSAGE_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


def media_type(response: httpx2.Response) -> str:
    """The body's media type, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()
