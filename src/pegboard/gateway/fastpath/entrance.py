"""The entrance: how a client over a byte stream gets to the SDK, which is loaded on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard.gateway.fastpath.pipe import PipeFastPath
from pegboard.gateway.mcp import McpFront
from pegboard.protocol.client import Address, on_pipe_initialized, pipe_address, pipe_session
from pegboard.protocol.pipe_client import Open, PipeAnswerer, Stream

if TYPE_CHECKING:
    from pegboard.protocol.gateway import GatewayServer

_Write = Callable[[bytes, object], Awaitable[None]]


def entrance(server: GatewayServer, address: Address) -> Open:
    """Where the SDK's server is there already."""

    async def enter(write: _Write, fast_path: PipeAnswerer | None) -> Stream:
        return _open_stream(server, address, write, fast_path)

    return enter


def late_entrance(front: McpFront, address: Address) -> Open:
    """Where it takes a second until it is; meanwhile the loop goes on."""

    async def enter(write: _Write, fast_path: PipeAnswerer | None) -> Stream:
        module: Any = await asyncio.to_thread(import_module, "pegboard.protocol.gateway")
        return _open_stream(module.GatewayServer(front), address, write, fast_path)

    return enter


def _open_stream(server: GatewayServer, address: Address, write: _Write, fast_path: PipeAnswerer | None) -> Stream:
    from pegboard.protocol.streams import SdkStream

    # Whatever runs the stream from here on runs in this context.
    pipe_address.set(address)
    if isinstance(fast_path, PipeFastPath):
        pipe_session.set(fast_path.session)
        on_pipe_initialized.set(fast_path.on_initialized)
    return SdkStream(server, write)
