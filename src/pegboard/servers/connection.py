"""A connection: a link to a server whose era is known, with the standing streams that belong to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.log import logger
from pegboard.protocol.eras import modern_params
from pegboard.protocol.headers import parameter_headers, request_headers
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.greeting import Greeting
from pegboard.servers.link import Link, Message, Params, RpcError, broken_answer
from pegboard.servers.wires.client import NeedsAuth, Unreachable, WrongStatus
from pegboard.servers.wires.http import HttpWire
from pegboard.servers.wires.sse import SseWire
from pegboard.version import CLIENT_INFO

HEARTBEAT = 15.0
_HEARTBEAT_LIMIT = 5.0
_RELISTEN_PAUSE = 1.0
_MAX_PAGES = 1000
_MAX_ITEMS = 20_000
_PAGE_LIMIT = 30.0
_LIST_LIMIT = 60.0
_STREAM_WORTH_TELLING = 0.5
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything of one kind that a server offers, and for how long it said this holds."""

    items: list[dict[str, Any]]
    ttl: float | None = None


class Connection:
    """One live connection to a server."""

    def __init__(self, link: Link, greeting: Greeting) -> None:
        self.link = link
        self.greeting = greeting
        self._tasks: set[asyncio.Task[None]] = set()
        wire = link.wire
        if isinstance(wire, HttpWire):
            wire.modern = greeting.era == "modern"
            wire.version = None if wire.modern else greeting.version
        elif isinstance(wire, SseWire):
            wire.version = greeting.version

    async def begin(self, on_gap: Callable[[], None]) -> None:
        """Finish the greeting and open the standing streams; `on_gap` is told when notices may have been missed."""
        if self.greeting.era == "modern":
            if self._announces_changes():
                self._spawn(self._listen(on_gap))
        else:
            await self.link.notify("notifications/initialized")
            if isinstance(self.link.wire, HttpWire):
                self.link.wire.listen(on_gap)
        if isinstance(self.link.wire, HttpWire):
            self._spawn(self._heartbeat())

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        timeout: float | None,
        on_progress: Callable[[Params], None] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Message:
        """Send a request as the server's era wants it."""
        if self.greeting.era == "handshake":
            return await self.link.request(method, params, timeout=timeout, on_progress=on_progress)
        version = self.greeting.version
        stamped = modern_params(params, version=version, client_info=CLIENT_INFO, capabilities=capabilities or {})
        headers: dict[str, str] | None = None
        if isinstance(self.link.wire, HttpWire):
            headers = request_headers(version, method, stamped)
            if input_schema is not None:
                headers |= parameter_headers(input_schema, stamped.get("arguments"))
        return await self.link.request(method, stamped, timeout=timeout, headers=headers, on_progress=on_progress)

    async def list_all(self, method: str, key: str) -> Listing:
        """Every page of a list, in a limited time."""
        try:
            async with asyncio.timeout(_LIST_LIMIT):
                return await self._list_all(method, key)
        except TimeoutError:
            raise unavailable(f"{self.link.label} timed out: no end of {method} within {_LIST_LIMIT:g} s") from None

    async def _list_all(self, method: str, key: str) -> Listing:
        items: list[dict[str, Any]] = []
        cursors: set[str] = set()
        params: dict[str, Any] = {}
        ttl: float | None = None
        for _ in range(_MAX_PAGES):
            answer = await self.request(method, params or None, timeout=_PAGE_LIMIT)
            page = answer.get(key)
            if not isinstance(page, list):
                raise broken_answer(self.link.label, f"a {method} without {key}")
            items += cast("list[dict[str, Any]]", page)
            ttl = _ttl(answer, ttl)
            cursor = answer.get("nextCursor")
            if cursor is None or cursor == "":
                return Listing(items, ttl)
            if not isinstance(cursor, str) or cursor in cursors or len(items) > _MAX_ITEMS:
                break
            cursors.add(cursor)
            params = {"cursor": cursor}
        raise broken_answer(self.link.label, f"pages of {method} without an end ({len(items)} items so far)")

    async def close(self) -> None:
        """End the standing streams and the link."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.link.close()

    def _announces_changes(self) -> bool:
        tools = self.greeting.capabilities.get("tools")
        return isinstance(tools, dict) and bool(cast("dict[str, Any]", tools).get("listChanged"))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, on_gap: Callable[[], None]) -> None:
        """Keep a `subscriptions/listen` stream open; whenever it had to be opened anew, something may be missed."""
        params = {"notifications": {"toolsListChanged": True}}
        pause = _RELISTEN_PAUSE
        loop = asyncio.get_running_loop()
        while not self.link.lost.done():
            opened = loop.time()
            try:
                await self.request("subscriptions/listen", params, timeout=None)
            except (RpcError, NeedsAuth, WrongStatus) as exc:
                if not (isinstance(exc, WrongStatus) and exc.error.retryable):
                    logger().info("server.listen.refused", server=self.link.label, reason=str(exc)[:200])
                    return
            except Unreachable as exc:
                if exc.refused:
                    self.link.lose(str(exc))
                    return
            except ToolFailure as exc:
                logger().debug("server.listen.ended", server=self.link.label, reason=str(exc)[:200])
            lived = loop.time() - opened > _STREAM_WORTH_TELLING
            pause = _RELISTEN_PAUSE if lived else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)
            if lived:
                on_gap()

    async def _heartbeat(self) -> None:
        """An address has no connection that could break, so it is asked now and then whether it is still there."""
        method = "ping" if self.greeting.era == "handshake" else "server/discover"
        while not self.link.lost.done():
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.request(method, None, timeout=_HEARTBEAT_LIMIT)
            except Unreachable as exc:
                self.link.lose(str(exc))
            except (ToolFailure, RpcError) as exc:
                # It answered, or is slow: it is there.
                logger().debug("server.heartbeat.odd", server=self.link.label, reason=str(exc)[:200])


def _ttl(answer: Message, before: float | None) -> float | None:
    """The shortest `ttlMs` of all pages, in seconds; 0 and less mean that the server gave none."""
    ttl = answer.get("ttlMs")
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl <= 0:
        return before
    return ttl / 1000 if before is None else min(before, ttl / 1000)
