"""A port of this machine that takes the answer of an authorization server, for as long as somebody waits for it."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pegboard.gateway.bounds import BoundedProtocol, Connections, protocol_for
from pegboard.gateway.embedded_server import EmbeddedServer
from pegboard.gateway.guard import Guard
from pegboard.gateway.hosts import AllowedHosts
from pegboard.gateway.listen import PortInUseError, listen_on, listen_on_twin
from pegboard.gateway.oauth_callback import CallbackPage
from pegboard.version import VERSION

_LOOPBACK = "127.0.0.1"
# Seconds for a page that is on its way to a browser.
_GRACE = 2


class CallbackListener:
    """Serves the callback page at one path of one port, on loopback."""

    def __init__(self, page: CallbackPage, port: int, path: str, identity: str) -> None:
        """`OSError` where the port cannot be had; port 0 is any. Others of this config know us by `identity`."""
        self._sockets = _listen_everywhere(port, identity)
        self.port: int = self._sockets[0].getsockname()[1]
        self._identity = identity
        self._connections = Connections()
        routes = [Route(path, page.answer), Route(f"{path}/{{issuer}}", page.answer), Route("/health", self._health)]
        guard = Middleware(Guard, hosts=AllowedHosts(_LOOPBACK), pages=frozenset({path}))
        self._server = EmbeddedServer(
            uvicorn.Config(
                Starlette(routes=routes, middleware=[guard]),
                http=protocol_for(BoundedProtocol, all_connections=self._connections),
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=_GRACE,
                server_header=False,
                proxy_headers=False,
            )
        )
        loop = asyncio.get_running_loop()
        self._watching = loop.create_task(self._connections.watch())
        self._serving = loop.create_task(self._server.serve(sockets=self._sockets))

    async def close(self) -> None:
        """Listen no more; what is on its way is sent."""
        self._watching.cancel()
        self._server.should_exit = True
        try:
            await self._serving
        finally:
            # A server that is told to exit before it has started leaves them open.
            for server in getattr(self._server, "servers", ()):
                server.close()
            for each in self._sockets:
                each.close()

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "version": VERSION, "config": self._identity})


def _listen_everywhere(port: int, identity: str) -> list[socket.socket]:
    """Browsers take `localhost` for either loopback address, so nobody else may have the port on the other one."""
    first = listen_on(_LOOPBACK, port, identity)
    try:
        twin = listen_on_twin(first, identity)
    except OSError as exc:
        # Where any port will do, the address names the one that we have.
        if not port and isinstance(exc, PortInUseError):
            return [first]
        first.close()
        raise
    return [first] if twin is None else [first, twin]
