"""The client for servers behind a proxy that the environment names: httpx2, which speaks to proxies of every kind."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx2

from pegboard.config import ServerSpec
from pegboard.servers.http.pool import ConnectionFailed


class ProxiedResponse:
    """A response, with its failures in our words."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status_code = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The parts of the body as they come."""
        try:
            async for part in self._response.aiter_bytes():
                yield part
        except httpx2.RequestError as exc:
            raise ConnectionFailed(str(exc) or type(exc).__name__) from exc


class ProxiedClient:
    """Carries requests to one server through a proxy."""

    def __init__(self, spec: ServerSpec, tls: Callable[[], ssl.SSLContext]) -> None:
        self._client = httpx2.AsyncClient(
            verify=tls() if (spec.url or "").startswith("https") else False,
            headers=dict(spec.headers),
            timeout=httpx2.Timeout(None, connect=spec.connect_timeout),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30),
            follow_redirects=False,
        )

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, principal_id: str = ""
    ) -> AsyncGenerator[ProxiedResponse]:
        """Send a request; its response, the body still to be read."""
        del principal_id
        try:
            async with self._client.stream(method, url, headers=dict(headers), content=body) as response:
                yield ProxiedResponse(response)
        except httpx2.RequestError as exc:
            refused = isinstance(exc, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError))
            raise ConnectionFailed(str(exc) or type(exc).__name__, refused=refused) from exc

    async def close(self) -> None:
        """End all connections."""
        await self._client.aclose()
