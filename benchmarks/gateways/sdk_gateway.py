"""A plain gateway on the `mcp` SDK, both sides: `python -m benchmarks.gateways.sdk_gateway CONFIG PORT`.

As fast as the SDK goes without replacing its parts: connections to servers stay open, what servers say is relayed as it
came, lists are asked for once, answers are JSON instead of streams. The config is the `mcpServers` of every client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from mcp.client._probe import negotiate_auto  # pyright: ignore[reportPrivateUsage]
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import CallOptions
from starlette.applications import Starlette

SEPARATOR = "__"
Tool = dict[str, Any]


class Upstream:
    """A server, connected for as long as the gateway runs."""

    def __init__(self, name: str, session: ClientSession, tools: list[Tool]) -> None:
        self.tools = [{**tool, "name": f"{name}{SEPARATOR}{tool['name']}"} for tool in tools]
        self._session = session

    async def call(self, params: Mapping[str, Any], tool: str) -> dict[str, Any]:
        """Relay a call and its result, neither read by any model."""
        return await relay(self._session, "tools/call", {**params, "name": tool})


async def relay(session: ClientSession, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A request in the era of the session's server."""
    data: dict[str, Any] = {"method": method, "params": {k: v for k, v in params.items() if k != "_meta"}}
    options: CallOptions = {}
    session._stamp(data, options)  # pyright: ignore[reportPrivateUsage]
    return await session._dispatcher.send_raw_request(method, data["params"], options)  # pyright: ignore[reportPrivateUsage]


@contextlib.asynccontextmanager
async def upstream(name: str, entry: Mapping[str, Any]) -> AsyncGenerator[Upstream]:
    """A connection to a server of the config."""
    if "url" in entry:
        transport = streamable_http_client(entry["url"])
    else:
        transport = stdio_client(StdioServerParameters(command=entry["command"], args=entry["args"]))
    async with transport as (read, write), ClientSession(read, write) as session:
        await negotiate_auto(session)
        tools = (await relay(session, "tools/list", {}))["tools"]
        yield Upstream(name, session, tools)


class Gateway:
    """What the middleware answers from."""

    def __init__(self) -> None:
        self.upstreams: dict[str, Upstream] = {}
        self._tools: list[Tool] = []

    def ready(self) -> None:
        """Every server is connected: the list stands."""
        self._tools = [tool for upstream in self.upstreams.values() for tool in upstream.tools]

    async def middleware(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer lists and calls, leave the rest to the SDK."""
        if ctx.method == "tools/list":
            return self._stamped(ctx, {"tools": self._tools}, ttlMs=0, cacheScope="private")
        if ctx.method == "tools/call":
            params = ctx.params or {}
            name, _, tool = str(params.get("name")).partition(SEPARATOR)
            return self._stamped(ctx, await self.upstreams[name].call(params, tool))
        return await call_next(ctx)

    def _stamped(
        self, ctx: ServerRequestContext[Any, Any], result: dict[str, Any], **caching: object
    ) -> dict[str, Any]:
        if ctx.protocol_version != "2026-07-28":
            return result
        return {"resultType": "complete", **caching, **result}


async def _unreached(*_: object) -> Any:
    """The middleware answers before."""
    raise NotImplementedError


def app(gateway: Gateway) -> Starlette:
    """The front."""
    server: Server[Any] = Server("sdk-gateway", version="1", on_list_tools=_unreached, on_call_tool=_unreached)
    server.middleware.append(gateway.middleware)
    return server.streamable_http_app(json_response=True)


async def _keep(name: str, entry: Mapping[str, Any], found: asyncio.Future[Upstream], stop: asyncio.Event) -> None:
    """Own a connection: the SDK's contexts must be left by the task that entered them."""
    try:
        async with upstream(name, entry) as connected:
            found.set_result(connected)
            await stop.wait()
    except Exception as exc:
        if found.done():
            raise
        found.set_exception(exc)


async def serve(servers: Mapping[str, Mapping[str, Any]], port: int) -> None:
    """Connect to all servers at once, then listen."""
    gateway, stop = Gateway(), asyncio.Event()
    loop = asyncio.get_running_loop()
    found = {name: loop.create_future() for name in servers}
    keepers = [asyncio.create_task(_keep(name, entry, found[name], stop)) for name, entry in servers.items()]
    gateway.upstreams = dict(zip(found, await asyncio.gather(*found.values()), strict=True))
    gateway.ready()
    try:
        await uvicorn.Server(uvicorn.Config(app(gateway), port=port, log_level="error", access_log=False)).serve()
    finally:
        stop.set()
        await asyncio.gather(*keepers, return_exceptions=True)


def main() -> None:
    """Be the gateway."""
    import uvloop

    config, port = Path(sys.argv[1]), int(sys.argv[2])
    uvloop.run(serve(json.loads(config.read_text("utf-8"))["mcpServers"], port))


if __name__ == "__main__":
    main()
