"""A client at the other end of a byte stream, one JSON text a line, served by the SDK's loop in either era."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from pegboard.log import logger

LAST_ANSWERS = 2.0
_PARSE_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a line must be one JSON-RPC message"}}'
)
_TOO_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message may have 4,194,304 bytes at most"}}'
)


class LineClient:
    """Feeds lines to the SDK's server and writes what it answers."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write_line = write
        # Two lines at once would end up inside each other.
        self._writing = asyncio.Lock()
        self._send: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage | Exception](256)
        self._unanswered: set[object] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def _write(self, text: bytes) -> None:
        async with self._writing:
            await self._write_line(text)

    async def line(self, text: bytes) -> None:
        """Take one line from the client."""
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError:
            logger().warning("client.message.unreadable")
            await self._write(_PARSE_ERROR)
            return
        # A stream of notices has no answer to wait for.
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._unanswered.add(message.id)
            self._quiet.clear()
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._send.send(SessionMessage(message))

    async def too_long(self) -> None:
        """A line came that was longer than a message may be."""
        await self._write(_TOO_LONG)

    async def end(self) -> None:
        """The client will say no more; what it asked is still answered, if that does not take long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                await self._quiet.wait()
        self._send.close()

    async def serve(self, server: Server[object]) -> None:
        """Answer until the client is gone."""
        out_send, out_receive = anyio.create_memory_object_stream[SessionMessage](256)
        writing = asyncio.get_running_loop().create_task(self._write_all(out_receive))
        try:
            await server.run(self._receive, out_send, server.create_initialization_options())
        finally:
            out_send.close()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(LAST_ANSWERS):
                    await writing
            writing.cancel()

    async def _write_all(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with messages:
            async for item in messages:
                message = item.message
                await self._write(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                if isinstance(message, (JSONRPCResponse, JSONRPCError)):
                    self._unanswered.discard(message.id)
                    if not self._unanswered:
                        self._quiet.set()
