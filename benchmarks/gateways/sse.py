"""The HTTP+SSE transport of 2024, which mcp-hub still has: requests are posted, all answers come on one stream."""

from __future__ import annotations

import asyncio
from typing import cast

from pydantic_core import from_json

from benchmarks.gateways.exchanges import Connection, OnLost, OnReply, Sender
from benchmarks.gateways.http1 import Messages, data_of
from benchmarks.gateways.requests import Address

# An answer from the stream is handed on as if it had been one of its own.
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
_OPENING = 10.0


class SseWay(asyncio.Protocol):
    """The stream that a client's answers come on."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._messages = Messages("response", self._on_end, self._on_part)
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._endpoint: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting: dict[int, OnReply] = {}

    @classmethod
    async def connected(cls, address: Address) -> SseWay:
        """A stream that has told where to post to."""
        loop = asyncio.get_running_loop()
        _, way = await loop.create_connection(lambda: cls(address), address.host, address.port)
        async with asyncio.timeout(_OPENING):
            await way.endpoint()
        return way

    async def endpoint(self) -> bytes:
        """Where to post to."""
        return await asyncio.shield(self._endpoint)

    async def open(self, on_reply: OnReply, on_lost: OnLost) -> Sender:
        """A connection to post on."""
        sender = SseSender(self, await self.endpoint(), on_reply)
        loop = asyncio.get_running_loop()
        _, sender.connection = await loop.create_connection(
            lambda: Connection(sender.accepted, on_lost), self._address.host, self._address.port
        )
        return sender

    def close(self) -> None:
        """End the stream, and the session with it."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        address = self._address
        self._transport.write(
            f"GET {address.path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._messages.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(exc or ConnectionResetError("the gateway closed the stream"))

    def _on_part(self, part: bytes) -> None:
        *events, self._rest = (self._rest + part).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            data = data_of(event)
            if event.startswith(b"event: endpoint"):
                self._endpoint.set_result(data)
            elif data:
                self._on_message(data)

    def _on_message(self, data: bytes) -> None:
        on_reply = self.waiting.pop(from_json(data).get("id"), None)
        if on_reply is not None:
            on_reply(_HEAD, data)

    def _on_end(self, head: bytes, body: bytes) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(ConnectionResetError(f"no stream: {head[:30]!r} {body[:80]!r}"))


class SseSender:
    """Posts requests; an answer counts once the post has been accepted, too."""

    connection: Connection

    def __init__(self, way: SseWay, endpoint: bytes, on_reply: OnReply) -> None:
        self._way = way
        self._line = b"POST " + endpoint
        self._on_reply = on_reply
        self._reply: tuple[bytes, bytes] | None = None
        self._accepted = True
        self._number: int | None = None

    def send(self, request: bytes, number: int | None) -> None:
        """Post a request."""
        self._reply, self._accepted, self._number = None, False, number
        if number is not None:
            self._way.waiting[number] = self._answered
        # Where to post to was not known when the request was made.
        self.connection.send(self._line + request[request.index(b" HTTP/1.1") :], number)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def accepted(self, head: bytes, body: bytes) -> None:
        """The post was taken, or was refused, which is an answer as well."""
        self._accepted = True
        if self._number is None or not head.startswith(b"HTTP/1.1 202"):
            self._on_reply(head, body)
        elif self._reply is not None:
            self._on_reply(*self._reply)

    def _answered(self, head: bytes, body: bytes) -> None:
        self._reply = head, body
        if self._accepted:
            self._on_reply(head, body)
