"""An MCP server that passes the whole conformance suite by itself, to stand behind a gateway in tests."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

if not __package__:
    # Run as a script: the modules of this folder know each other by the name of their package.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyio
import mcp_types as types
import uvicorn
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.subscriptions import ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route

from conformance import asking_tools, prompts, resources, state, tools
from conformance.eras import Era, only, serve_stdio
from conformance.event_store import ResumableSessions
from conformance.state import FixtureState
from conformance.toolbox import ToolBox

NAME: Final = "conformance-fixture"
HOST: Final = "127.0.0.1"
PATH: Final = "/mcp"
RETRY_MILLISECONDS: Final = 500
SHUTDOWN_SECONDS: Final = 1
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_LISTS: Final = CacheHint(ttl_ms=60_000, scope="public")
_CACHE_HINTS: Final[dict[CacheableMethod, CacheHint]] = {
    "server/discover": _LISTS,
    "tools/list": _LISTS,
    "prompts/list": _LISTS,
    "resources/list": _LISTS,
    "resources/templates/list": _LISTS,
    "resources/read": CacheHint(ttl_ms=5_000, scope="private"),
}


class FixtureServer(Server[FixtureState]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # The SDK's HTTP path asks for these without options, which would deny every listChanged.
        everything = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or everything, experimental_capabilities, extensions
        )


def build_server(fixture: FixtureState, listen: ListenHandler) -> FixtureServer:
    @asynccontextmanager
    async def lifespan(_server: Server[FixtureState]) -> AsyncGenerator[FixtureState]:
        yield fixture

    toolbox = ToolBox(tools.TOOLBOX, asking_tools.TOOLBOX)
    server = FixtureServer(
        NAME,
        version="1.0.0",
        instructions="A server to test against.",
        cache_hints=_CACHE_HINTS,
        lifespan=lifespan,
        on_list_tools=toolbox.list_tools,
        on_call_tool=toolbox.call_tool,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
        on_subscribe_resource=state.subscribe,
        on_unsubscribe_resource=state.unsubscribe,
        on_subscriptions_listen=listen,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get_prompt,
        on_completion=prompts.complete,
    )
    # Not a constructor argument here: that one warns that logging is deprecated.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, state.set_level)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


def build_app(server: FixtureServer, era: Era) -> Starlette:
    security = TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in LOOPBACK_NAMES],
        allowed_origins=[f"http://{name}:*" for name in LOOPBACK_NAMES],
    )
    sessions = ResumableSessions(server, security_settings=security, retry_interval=RETRY_MILLISECONDS)
    endpoint = only(era, StreamableHTTPASGIApp(sessions))
    return Starlette(routes=[Route(PATH, endpoint)], lifespan=lambda _app: sessions.run())


class AnnouncingServer(uvicorn.Server):
    """Says where it listens as soon as it does, and closes listen streams in order when it stops."""

    def __init__(self, config: uvicorn.Config, listen: ListenHandler) -> None:
        super().__init__(config)
        self._listen = listen

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets if self.started and sockets else []:
            print(f"listening on http://{HOST}:{listening.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listen.close()
        await super().shutdown(sockets)


async def serve_http(port: int, era: Era) -> None:
    fixture = FixtureState()
    listen = ListenHandler(fixture.bus)
    app = build_app(build_server(fixture, listen), era)
    # h11, because httptools leaves the blanks after a header's value in place, and Mcp-Name must match without them.
    config = uvicorn.Config(app, http="h11", log_level="error", timeout_graceful_shutdown=SHUTDOWN_SECONDS)
    with socket.create_server((HOST, port)) as listening:
        await AnnouncingServer(config, listen).serve(sockets=[listening])


async def serve_pipes(era: Era) -> None:
    fixture = FixtureState()
    await serve_stdio(build_server(fixture, ListenHandler(fixture.bus)), fixture, era)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", type=int, help="serve HTTP on this port of the loopback; 0 picks a free one")
    where.add_argument("--stdio", action="store_true", help="serve standard input and output")
    parser.add_argument("--era", type=Era, choices=list(Era), default=Era.BOTH, help="the protocol eras to serve")
    arguments = parser.parse_args()
    if arguments.stdio:
        # A thread may be blocked reading standard input, so an orderly way out could take forever.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        anyio.run(serve_pipes, arguments.era)
    else:
        # uvicorn stops in order, then raises the signal again: that second time must not kill the process.
        signal.signal(signal.SIGTERM, lambda *_: None)
        anyio.run(serve_http, arguments.port, arguments.era)


if __name__ == "__main__":
    main()
