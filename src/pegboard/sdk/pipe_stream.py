"""The SDK's side of a client at the other end of a byte stream: its loop, in either era, fed with lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from pegboard.clients.channel import LAST_ANSWERS
from pegboard.clients.request_context import Handover, PipeRequest
from pegboard.sdk.exact_message import ExactMessage, write_message


class SdkStream:
    """Feeds lines to the SDK's server and writes what it answers."""

    def __init__(
        self, server: Server[Any], write: Callable[[bytes, object], Awaitable[None]], context: Callable[[], PipeRequest]
    ) -> None:
        self._server = server
        self._write = write
        # What every request over this pipe has in common, as of now.
        self._context = context
        self._send: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage | Exception](256)
        self._greeting: object = None
        self.version: str | None = None

    async def take(self, text: bytes, under_way: Any) -> object | None:
        """Give it a line; the id of what it will answer."""
        return await self.take_message(ExactMessage.read(text), under_way)

    async def take_message(self, read: ExactMessage, under_way: Any) -> object | None:
        """Give it a message."""
        message = read.message
        context = replace(self._context(), started_call=Handover(under_way), exact=read.exact)
        metadata = ServerMessageMetadata(request_context=context)
        if isinstance(message, JSONRPCRequest):
            # What was cancelled gets no answer, and nobody has to wait for one.
            metadata.on_request_unanswered = partial(self._write, b"", message.id)
            if message.method == "initialize" and self.version is None:
                self._greeting = message.id
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._send.send(SessionMessage(message, metadata))
        # A stream of notices has no answer to wait for.
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            return message.id
        return None

    def close(self) -> None:
        """The client will say no more."""
        self._send.close()

    async def run(self) -> None:
        """Answer until the client is gone."""
        out_send, out_receive = anyio.create_memory_object_stream[SessionMessage](256)
        writing = asyncio.get_running_loop().create_task(self._write_all(out_receive))
        try:
            await self._server.run(self._receive, out_send, self._server.create_initialization_options())
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
                answers = message.id if isinstance(message, (JSONRPCResponse, JSONRPCError)) else None
                if (
                    isinstance(message, JSONRPCResponse)
                    and answers == self._greeting
                    and "protocolVersion" in message.result
                ):
                    self.version = str(message.result["protocolVersion"])
                await self._write(write_message(message), answers)
