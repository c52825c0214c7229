"""Asks a registry (API v0.1) for pages and servers: bounded in time and size, with retries where they help."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.exactjson import as_list, as_object
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.errors import unusable_answer
from pegboard.servers.http.client import HttpResponse, Unreachable, WrongStatus, exchange, make_client, read_start
from pegboard.version import VERSION

_HEADERS = {"accept": "application/json", "user-agent": f"pegboard/{VERSION}"}


@dataclass(frozen=True, slots=True)
class RegistryLimits:
    """How much a registry may take; times are in seconds."""

    request: float = 45.0
    connect: float = 10.0
    tries: int = 3
    # Before the second try; it doubles with each. What the registry asks for is waited for if it is not too long.
    pause: float = 0.5
    longest_pause: float = 30.0
    page_bytes: int = 16 * 1024 * 1024
    page_size: int = 100


@dataclass(frozen=True, slots=True)
class RegistryPage:
    """Some servers of the list, as records, and where the list goes on."""

    records: list[Any]
    next_cursor: str | None


class RegistryClient:
    """One registry."""

    def __init__(self, address: str, limits: RegistryLimits | None = None) -> None:
        self._address = address.rstrip("/")
        self._limits = limits or RegistryLimits()
        spec = ServerSpec(
            name="registry",
            given_name="registry",
            transport="http",
            url=self._address,
            connect_timeout=_connect(limits),
        )
        self._http = make_client(spec)
        # Without what may be secret in an address.
        self.label = f"the MCP registry at {urlsplit(address).netloc.rpartition('@')[2]}"

    async def close(self) -> None:
        """End all connections."""
        await self._http.close()

    async def page(self, cursor: str | None = None, **query: str) -> RegistryPage:
        """A page of the list of servers, each in its latest version."""
        given = {"limit": str(self._limits.page_size), "version": "latest", **query}
        found = await self._get(f"/v0.1/servers?{urlencode(given | ({'cursor': cursor} if cursor else {}))}")
        records = as_list(found.get("servers"))
        if records is None:
            raise unusable_answer(self.label, "it is no list of servers")
        metadata = as_object(found.get("metadata")) or {}
        following = metadata.get("nextCursor") or metadata.get("next_cursor")
        return RegistryPage(records, following if isinstance(following, str) and following else None)

    async def server(self, name: str, version: str) -> dict[str, Any]:
        """The record of one version of a server."""
        return await self._get(f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}")

    async def _get(self, target: str) -> dict[str, Any]:
        pause = self._limits.pause
        for left in reversed(range(self._limits.tries)):
            try:
                return await self._try(target)
            except ToolFailure as exc:
                wait = max(pause, exc.error.retry_after)
                is_gone = isinstance(exc, Unreachable) and exc.refused
                if is_gone or not exc.error.retryable or not left or wait > self._limits.longest_pause:
                    raise
            await asyncio.sleep(wait)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    async def _try(self, target: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._limits.request):
                async with exchange(self._http, self.label, "GET", f"{self._address}{target}", _HEADERS) as response:
                    _check_status(response, self.label)
                    body = await read_start(response, self._limits.page_bytes)
        except TimeoutError:
            raise unavailable(f"{self.label} did not answer within {self._limits.request:g} s") from None
        if len(body) > self._limits.page_bytes:
            raise unusable_answer(self.label, f"it is larger than {self._limits.page_bytes:,} bytes")
        try:
            # A page of megabytes takes a while.
            return await asyncio.to_thread(exactjson.parse_object, body)
        except exactjson.NotJson as exc:
            raise unusable_answer(self.label, f"it is not JSON: {exc}") from None


def _connect(limits: RegistryLimits | None) -> float:
    return (limits or RegistryLimits()).connect


def _check_status(response: HttpResponse, label: str) -> None:
    status = response.status_code
    if status == 404:
        raise ToolFailure(ToolErrorCode.NOT_FOUND, f"{label} does not have that", retryable=False)
    if status >= 400:
        raise WrongStatus(label, status, response.headers)
