"""How requests reach a gateway over streamable HTTP: each sender has a connection, and one answer to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from benchmarks.gateways.http1 import Messages
from benchmarks.gateways.requests import Address

OnReply = Callable[[bytes, bytes], None]
OnLost = Callable[[BaseException], None]


class Sender(Protocol):
    """Sends one request at a time."""

    def send(self, request: bytes, number: int | None) -> None:
        """Send a request, of this number if it is no notification."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class Way(Protocol):
    """A way to a gateway, on which there can be many senders."""

    async def open(self, on_reply: OnReply, on_lost: OnLost) -> Sender:
        """Another sender, that tells what comes back."""
        ...

    def close(self) -> None:
        """Close what all of them share."""
        ...


class Connection(asyncio.Protocol):
    """A connection that takes requests and gives responses."""

    def __init__(self, on_reply: OnReply, on_lost: OnLost) -> None:
        self._messages = Messages("response", on_reply)
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._messages.feed(data)
        except Exception as exc:
            self._on_lost(exc)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed:
            self._messages.close()
            self._on_lost(exc or ConnectionResetError("the gateway closed the connection"))

    def send(self, request: bytes, number: int | None) -> None:
        """Send a request; the response on this connection is its answer."""
        del number
        assert self._transport is not None
        self._transport.write(request)

    def close(self) -> None:
        """Hang up."""
        self._closed = True
        if self._transport is not None:
            self._transport.close()


class HttpWay:
    """Streamable HTTP."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def open(self, on_reply: OnReply, on_lost: OnLost) -> Sender:
        """A connection of its own."""
        loop = asyncio.get_running_loop()
        address = self._address
        _, made = await loop.create_connection(lambda: Connection(on_reply, on_lost), address.host, address.port)
        return made

    def close(self) -> None:
        """Nothing is shared."""
