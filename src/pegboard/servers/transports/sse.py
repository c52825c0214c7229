"""Messages over the older HTTP+SSE transport: one standing stream in, a POST for each message out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.pace import Pace
from pegboard.protocol.eras import Era
from pegboard.result import unavailable
from pegboard.servers.http.client import (
    Unreachable,
    WrongStatus,
    check_status,
    media_type,
    within_origin,
)
from pegboard.servers.http.pool import ConnectionFailed
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import MAX_MESSAGE_BYTES, Message
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.sse_parser import Event, EventTooLarge, SseParser
from pegboard.servers.transports.http_transport import HttpTransport


class SseTransport(HttpTransport):
    """One server behind an address that speaks the transport of 2024-11-05.

    Its answers come over another connection than its requests go, so no call is plain here.
    """

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper | None = None) -> None:
        super().__init__(spec, reaper)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._is_drained = True

    async def start(self, peer: JsonRpcPeer) -> None:
        """Open the stream and wait for the address that messages go to."""
        self._tasks.spawn(self._read(peer))
        await self._endpoint

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        """POST one message; whatever answers it comes over the stream."""
        sent = {"content-type": "application/json", **(headers or {})}
        if self._version is not None:
            sent["mcp-protocol-version"] = self._version
        target = await self._endpoint
        async with self._exchange("POST", target, sent, exactjson.dump(message)) as response:
            check_status(response, self._label)

    @property
    def is_drained(self) -> bool:
        """Whether all is delivered that was read, and nothing of a next event is there."""
        return self._is_drained

    def on_negotiated(self, era: Era, version: str) -> None:
        """Every later message names the version."""
        del era
        self._version = version

    async def close(self) -> None:
        """End the stream and the connections."""
        await self._tasks.close()
        await self._client.close()

    async def _read(self, peer: JsonRpcPeer) -> None:
        try:
            await self._read_stream(peer)
            reason = "it closed the stream"
        except (Unreachable, WrongStatus, EventTooLarge) as exc:
            reason = str(exc)
            if not self._endpoint.done():
                self._endpoint.set_exception(exc)
        except Exception as exc:
            reason = str(exc) or type(exc).__name__
            if not self._endpoint.done():
                self._endpoint.set_exception(exc)
        if not self._endpoint.done():
            self._endpoint.set_exception(Unreachable(self._label, reason))
        peer.close_with(reason)

    async def _read_stream(self, peer: JsonRpcPeer) -> None:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        stream = SseParser(MAX_MESSAGE_BYTES)
        async with self._exchange("GET", self._url, headers) as response:
            check_status(response, self._label)
            if media_type(response.headers) != "text/event-stream":
                raise WrongStatus(self._label, 406)
            try:
                async for part in response.aiter_bytes():
                    pace = Pace()
                    self._is_drained = False
                    for event in stream.feed(part):
                        if event is not None:
                            await pace.through(self._take(event, peer))
                        if pace.is_over:
                            await pace.rest()
                    self._is_drained = stream.is_between_events
            except ConnectionFailed as exc:
                raise Unreachable(self._label, str(exc) or type(exc).__name__) from exc

    def _take(self, event: Event, peer: JsonRpcPeer) -> Iterable[object]:
        if event.name == "endpoint":
            target = within_origin(self._url, event.data.decode("utf-8", "replace"))
            if target is None:
                raise unavailable(f"{self._label} wants messages sent to another origin", retryable=False)
            if not self._endpoint.done():
                self._endpoint.set_result(target)
        elif event.name == "message" and event.data:
            return peer.deliver_text(event.data)
        return ()
