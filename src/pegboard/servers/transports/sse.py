"""Messages over the older HTTP+SSE transport: one standing stream in, a POST for each message out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.pace import Pace
from pegboard.result import unavailable
from pegboard.servers.http.client import (
    Unreachable,
    WrongStatus,
    check_status,
    exchange,
    make_client,
    media_type,
    within_origin,
)
from pegboard.servers.http.pool import ConnectionFailed
from pegboard.servers.jsonrpc import MAX_MESSAGE_BYTES, JsonRpcPeer, Message
from pegboard.servers.limit import Limit
from pegboard.servers.sse_parser import Event, EventTooLarge, SseParser
from pegboard.servers.transports.stdio import cancellation


class SseTransport:
    """One server behind an address that speaks the transport of 2024-11-05."""

    def __init__(self, spec: ServerSpec) -> None:
        assert spec.url is not None
        self._url = spec.url
        self._label = spec.name
        self._client = make_client(spec)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.Task[None] | None = None
        self._words: set[asyncio.Task[None]] = set()
        self.version: str | None = None
        self.is_drained = True

    async def start(self, peer: JsonRpcPeer) -> None:
        """Open the stream and wait for the address that messages go to."""
        self._reader = asyncio.get_running_loop().create_task(self._read(peer))
        await self._endpoint

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        """POST one message; whatever answers it comes over the stream."""
        sent = {"content-type": "application/json", **(headers or {})}
        if self.version is not None:
            sent["mcp-protocol-version"] = self.version
        target = await self._endpoint
        async with exchange(self._client, self._label, "POST", target, sent, exactjson.dump(message)) as response:
            check_status(response, self._label)

    # Its answers come over another connection than its requests go: nothing is plain here.
    is_ready = False

    def send_raw(self, request_id: int, text: bytes, name: str | None) -> None:
        """Never asked for."""
        raise NotImplementedError

    def cancel(self, request_id: int, reason: str) -> None:
        """POST it beside everything else."""
        task = asyncio.get_running_loop().create_task(self._tell(cancellation(request_id, reason)))
        self._words.add(task)
        task.add_done_callback(self._words.discard)

    async def close(self) -> None:
        """End the stream and the connections."""
        tasks = [task for task in (self._reader, *self._words) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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
        async with exchange(self._client, self._label, "GET", self._url, headers) as response:
            check_status(response, self._label)
            if media_type(response.headers) != "text/event-stream":
                raise WrongStatus(self._label, 406)
            try:
                async for part in response.aiter_bytes():
                    pace = Pace()
                    self.is_drained = False
                    for event in stream.feed(part):
                        if event is not None:
                            await pace.through(self._take(event, peer))
                        if pace.is_over:
                            await pace.rest()
                    self.is_drained = stream.is_between_events
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

    async def _tell(self, message: Message) -> None:
        with contextlib.suppress(Exception):
            async with Limit(30):
                await self.send(message, None)
