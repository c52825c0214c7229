"""The least server that the SDK makes over stdio: `python -m benchmarks.gateways.bare_stdio`."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

_TOOL = types.Tool(name="echo", description="Says again what it was told.", input_schema={"type": "object"})


async def _list(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_TOOL])


async def serve() -> None:
    """Serve until the input ends."""
    server: Server[Any] = Server("bare", version="1", on_list_tools=_list)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
