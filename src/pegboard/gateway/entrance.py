"""The entrance: how a client over a byte stream gets to the SDK, which is loaded on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard.clients.endpoint import PipeEndpoint
from pegboard.clients.request_context import PipeRequest
from pegboard.gateway.mcp import McpHandlers
from pegboard.gateway.pipe_client import Open, PipeAnswerer, Stream

if TYPE_CHECKING:
    from pegboard.sdk.server import GatewayServer

_Write = Callable[[bytes, object], Awaitable[None]]


def entrance(server: GatewayServer, endpoint: PipeEndpoint) -> Open:
    """Where the SDK's server is there already."""

    async def enter(write: _Write, fast_path: PipeAnswerer | None) -> Stream:
        return _open_stream(server, endpoint, write, fast_path)

    return enter


def late_entrance(front: McpHandlers, endpoint: PipeEndpoint) -> Open:
    """Where it takes a second until it is; meanwhile the loop goes on."""

    async def enter(write: _Write, fast_path: PipeAnswerer | None) -> Stream:
        module: Any = await asyncio.to_thread(import_module, "pegboard.sdk.server")
        return _open_stream(module.GatewayServer(front), endpoint, write, fast_path)

    return enter


def _open_stream(
    server: GatewayServer, endpoint: PipeEndpoint, write: _Write, fast_path: PipeAnswerer | None
) -> Stream:
    from pegboard.sdk.pipe_stream import SdkStream

    def context() -> PipeRequest:
        if fast_path is None:
            return PipeRequest(endpoint.current)
        return PipeRequest(endpoint.current, fast_path.session, fast_path.on_initialized)

    return SdkStream(server, write, context)
