"""A client at the other end of a byte stream, one JSON text a line, served by the SDK's loop in either era."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from pegboard.log import logger
from pegboard.protocol.gateway import Client, LineRequest, line_welcome

LAST_ANSWERS = 2.0
_PARSE_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a line must be one JSON-RPC message"}}'
)
_TOO_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message may have 4,194,304 bytes at most"}}'
)


class Shortcut(Protocol):
    """Who answers what is plain without the SDK."""

    def welcome(self, client: Client) -> None:
        """The client's handshake is complete."""
        ...

    def begin(self, text: bytes) -> tuple[bytes, Awaitable[Any]] | None:
        """A request's id, and what comes of it: its answer (empty if it gets none), a call that goes on the full way,
        or `None` to begin there; `None` at once if a line has to take the full way."""
        ...

    def takes_back(self, text: bytes) -> bool:
        """Whether a line takes back a call that is under way."""
        ...


class LineClient:
    """Feeds lines to the SDK's server and writes what it answers; what is plain goes by the shortcut."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], shortcut: Shortcut | None = None) -> None:
        self._write_line = write
        self._shortcut = shortcut
        self._plain: set[asyncio.Task[None]] = set()
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
        shortcut = self._shortcut
        if shortcut is not None and (begun := shortcut.begin(text)) is not None:
            self._expect(begun[0])
            task = asyncio.get_running_loop().create_task(self._answered(text, *begun))
            self._plain.add(task)
            task.add_done_callback(self._plain.discard)
        elif shortcut is None or not shortcut.takes_back(text):
            await self._pass_on(text)

    async def _answered(self, text: bytes, request_id: bytes, begun: Awaitable[Any]) -> None:
        """Write what came of a plain request, or have the SDK go on with it."""
        answer = await begun
        if isinstance(answer, bytes):
            if answer:
                await self._write(answer)
            self._done(request_id)
        else:
            self._unanswered.discard(request_id)
            await self._pass_on(text, answer)

    def _expect(self, request_id: object) -> None:
        self._unanswered.add(request_id)
        self._quiet.clear()

    def _done(self, request_id: object) -> None:
        self._unanswered.discard(request_id)
        if not self._unanswered:
            self._quiet.set()

    async def _pass_on(self, text: bytes, under_way: Any = None) -> None:
        """Give a line to the SDK, with the call of it that is under way, if one is."""
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError:
            logger().warning("client.message.unreadable")
            await self._write(_PARSE_ERROR)
            return
        # A stream of notices has no answer to wait for.
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._expect(message.id)
        metadata = ServerMessageMetadata(request_context=LineRequest(under_way)) if under_way is not None else None
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._send.send(SessionMessage(message, metadata))

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
        if self._shortcut is not None:
            line_welcome.set(self._shortcut.welcome)
        out_send, out_receive = anyio.create_memory_object_stream[SessionMessage](256)
        writing = asyncio.get_running_loop().create_task(self._write_all(out_receive))
        try:
            await server.run(self._receive, out_send, server.create_initialization_options())
        finally:
            for task in self._plain:
                task.cancel()
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
                    self._done(message.id)
