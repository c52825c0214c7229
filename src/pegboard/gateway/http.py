"""The gateway over HTTP: MCP at `/mcp`, REST at `/api`, and everything that has to run meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Sequence
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from pegboard.access.settings import AuthSettings
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.known_principals import KnownPrincipals
from pegboard.auth.page_cookie import PageCookie
from pegboard.auth.reach import Reach
from pegboard.auth.rule_book import token_principal_id
from pegboard.auth.token_watch import TokenWatch
from pegboard.board import Board
from pegboard.clients.cache import ClientCache
from pegboard.clients.endpoint import PipeEndpoint, endpoint_of, query_problem
from pegboard.config import RunningGateway, announcement, identity
from pegboard.gateway.authentication import LAST_WORDS, Authentication
from pegboard.gateway.bounds import KEEP_ALIVE, BoundedProtocol, Connections, protocol_for
from pegboard.gateway.bridge import bridgehead
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.connect_links import CONNECT
from pegboard.gateway.connect_page import ConnectPage
from pegboard.gateway.embedded_server import EmbeddedServer
from pegboard.gateway.fastpath.http import HttpFastPath
from pegboard.gateway.fastpath.pipe import PipeFastPath
from pegboard.gateway.fastpath.rules import FastPath, is_open
from pegboard.gateway.fastpath.uvicorn_protocol import FastPathProtocol
from pegboard.gateway.garbage import short_collections
from pegboard.gateway.guard import Guard, refusal_response
from pegboard.gateway.hosts import AllowedHosts
from pegboard.gateway.listen import PortInUseError, listen_on_twin, local_address
from pegboard.gateway.login_desk import LoginDesk
from pegboard.gateway.mcp import McpHandlers
from pegboard.gateway.oauth_callback import CALLBACK, LOOPBACK_CALLBACK, CallbackPage
from pegboard.gateway.oauth_client_document import CLIENT_DOCUMENT, ISSUER_DOCUMENT, ClientDocument
from pegboard.gateway.page.static_files import STATIC, serve_file, serve_index
from pegboard.gateway.pipe_client import PipeClient
from pegboard.gateway.protected_resource import WELL_KNOWN, ResourceMetadata
from pegboard.gateway.rest.app import Rest
from pegboard.gateway.rest.responses import error_response
from pegboard.gateway.rule_review import RuleReview
from pegboard.gateway.shutdown import Shutdown, stopping_response
from pegboard.gateway.sign_in_offers import SignInOffers
from pegboard.gateway.step_up import StepUp
from pegboard.host_names import is_loopback_name
from pegboard.log import logger
from pegboard.names import is_board_name
from pegboard.pins.watch import PinWatch
from pegboard.sdk.exact_body import ExactBody
from pegboard.sdk.server import GatewayServer
from pegboard.sdk.sessions import HttpSessions
from pegboard.storage.own_key import load_own_key
from pegboard.task_set import TaskSet

_GRACE = 2
# How many seconds calls have that are under way when we are told to stop.
_FINISH = 5.0
_LAST_WRITES = 1.0
_THIS_MACHINE = Reach()


class HttpGateway:
    """One board on one address."""

    def __init__(
        self,
        board: Board,
        config_path: Path,
        host: str,
        allowed: Sequence[str] = (),
        reach: Reach = _THIS_MACHINE,
        *,
        has_localhost: bool = True,
    ) -> None:
        self.board = board
        self.config = ConfigFile(board, config_path)
        self.identity = identity(config_path)
        self.token = secrets.token_hex(16)
        self.bridge = 0
        self.started = time.time()
        self._config_path = config_path
        self._host = host
        self._sessions = 0
        board.serves_others = reach.beyond_loopback
        self._pin_watch = PinWatch(board.pins, board.review_definitions)
        hosts = AllowedHosts(host, (*board.settings.hosts, *allowed), has_localhost=has_localhost)
        self._cookie = PageCookie(
            lambda: load_own_key(board.storage.database, "page_keys", "cookie"), board.storage.page_sessions
        )
        self.authenticator = Authenticator(
            lambda: board.settings,
            self.token,
            reach,
            own_names=hosts.own_names,
            cookie=self._cookie,
            on_successor=board.relay.sessions.bind,
            sight_of=board.discovery.own.sight,
        )
        self._reviews, self._review = TaskSet(), RuleReview(board, self.authenticator.tokens.list_all)
        board.on_apply = self._apply_rules
        self.token_watch = TokenWatch(
            board.storage.tokens,
            self.authenticator.tokens,
            on_removed=self._forget_tokens,
            on_expired=lambda ids: self._manager.end_sessions_of(set(map(token_principal_id, ids)), idle_only=True),
            on_load=self._review_rules,
        )
        board.oauth.principals = KnownPrincipals(self.authenticator, self.token_watch)
        self._callback = CallbackPage(board)
        self._desk = LoginDesk(board, self._callback, self.identity)
        self._front = front = McpHandlers(board, SignInOffers(board, self._desk.links))
        self.server = GatewayServer(front, on_sessions=self._count)
        # Host, Origin and size are the guard's business: one rule for MCP and REST.
        self._manager = HttpSessions(self.server, version_of=self.server.versions.get)
        self._clients, self._fast_path = ClientCache(), FastPath(board, front)
        self.shutdown = Shutdown(_behind_proxies(self._make_app(hosts)))
        self.app: ASGIApp = self.shutdown
        self._lines: set[PipeClient] = set()
        self.connections = Connections()
        self.protocol = protocol_for(BoundedProtocol, all_connections=self.connections)
        if is_open():
            self.protocol = protocol_for(
                FastPathProtocol, all_connections=self.connections, fast_path=self._http_fast_path(hosts)
            )

    def _http_fast_path(self, hosts: AllowedHosts) -> HttpFastPath:
        return HttpFastPath(
            self.app,
            guard=Guard(self.app, hosts=hosts),
            authenticator=self.authenticator,
            sessions=self._manager,
            ready=self.board.relay.sessions,
            clients=self._clients,
            rules=self._fast_path,
            shutdown=self.shutdown,
        )

    def _auth_settings(self) -> AuthSettings:
        return self.board.settings.auth

    def _apply_rules(self) -> None:
        self.authenticator.apply()
        self._review_rules()

    def _review_rules(self) -> None:
        """Look in the background for what rules name that there is not, and for what was begun by somebody who may
        not any more."""
        self._reviews.spawn(self._review.run())
        self._reviews.spawn(self.board.oauth.review())

    def _learn_address(self, scope: Scope) -> None:
        """Where clients find the gateway's own pages is known when the first of them has come."""
        if not self._desk.links.address and (server := scope.get("server")) is not None:
            self._desk.links.address = local_address(self._host, server[1])

    def _count(self, sessions: int) -> None:
        self._sessions = sessions

    def _make_app(self, hosts: AllowedHosts) -> Starlette:
        rest = Rest(
            self.board,
            self.config,
            self.identity,
            self.token,
            lambda: self._sessions,
            self.started,
            self._host,
            authenticator=self.authenticator,
            on_tokens=self.token_watch.load,
            desk=self._desk,
        )
        self.feed = rest.feed
        mcp = _Mcp(self._manager, self._learn_address)
        connect = ConnectPage(self.board, self._desk, self._callback, self.authenticator)
        metadata, document = ResourceMetadata(self._auth_settings), ClientDocument(self._auth_settings)
        return Starlette(
            routes=[
                Route("/mcp", endpoint=mcp),
                Route("/mcp/{board}", endpoint=mcp),
                Route("/", serve_index),
                Route(f"{STATIC}/{{name:path}}", serve_file),
                Route(WELL_KNOWN, metadata.answer),
                Route(f"{WELL_KNOWN}/mcp", metadata.answer),
                Route(f"{WELL_KNOWN}/mcp/{{board}}", metadata.answer),
                Route(CALLBACK, self._callback.answer),
                Route(f"{CALLBACK}/{{issuer}}", self._callback.answer),
                Route(LOOPBACK_CALLBACK, self._callback.answer),
                Route(f"{LOOPBACK_CALLBACK}/{{issuer}}", self._callback.answer),
                Route(f"{CONNECT}/{{key}}", connect.answer, methods=["GET", "POST"]),
                Route(CLIENT_DOCUMENT, document.answer),
                Route(ISSUER_DOCUMENT, document.answer),
                *rest.routes(),
            ],
            middleware=[
                Middleware(Guard, hosts=hosts),
                Middleware(
                    Authentication,
                    authenticator=self.authenticator,
                    settings=self._auth_settings,
                    metrics=self.board.metrics,
                    audit=self.board.audit,
                ),
                Middleware(StepUp, board=self.board),
            ],
            exception_handlers={Exception: self._internal_error, 404: _route_error, 405: _route_error},
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Everything that has to run while requests come in; it is no ASGI lifespan, which a hurried exit skips.
        `UnprotectedError` where nobody could tell who comes."""
        await self.token_watch.load()
        self.authenticator.check_reach()
        async with self._manager.run(), self._bridgehead() as self.bridge:
            watches = (
                *(self.config.watch(), self.connections.watch(), self.token_watch.run()),
                *(self._pin_watch.run(), self._cookie.watch()),
            )
            watching = [asyncio.create_task(watch) for watch in watches]
            try:
                yield
            finally:
                self.shutdown.has_begun = True
                for task in watching:
                    task.cancel()
                # They may have something left to write.
                await asyncio.wait(watching, timeout=_LAST_WRITES)
                await self._desk.close()
                await self._reviews.close()
                await self.authenticator.close()

    def _bridgehead(self) -> contextlib.AbstractAsyncContextManager[int]:
        return bridgehead(self.server, self._pipe_fast_path, self.token, self._lines, lambda: self.authenticator.local)

    async def _forget_tokens(self, ids: Collection[str]) -> None:
        """Tokens are gone, and with them all that was their principals'."""
        principals = set(map(token_principal_id, ids))
        for principal in principals:
            self.board.loaded.forget_principal(principal)
        self.board.relay.parked.end_calls_of(principals)
        await self._manager.end_sessions_of(principals, patience=LAST_WORDS)

    def announcement(self, url: str) -> RunningGateway:
        """What the run file says of this gateway."""
        self._desk.links.address = url
        config = str(self._config_path.resolve())
        return RunningGateway(os.getpid(), url, self.bridge, self.token, config, self.started)

    async def finish(self) -> None:
        """Take no more requests, and let the calls under way finish, if that does not take too long."""
        self.feed.close()
        await asyncio.gather(self.shutdown.finish(_FINISH), *(client.settle(_FINISH) for client in self._lines))

    def _pipe_fast_path(self, endpoint: PipeEndpoint) -> PipeFastPath | None:
        """The fast path of a client that comes over the bridge."""
        return PipeFastPath(self._front, self._clients, self._fast_path, endpoint) if is_open() else None

    async def _internal_error(self, _: Request, exc: Exception) -> Response:
        if self.shutdown.has_begun:
            return stopping_response()
        logger().error("http.failed", error=type(exc).__name__)
        return error_response(exc)


class _Mcp:
    """The SDK's session manager as an ASGI app of any method."""

    def __init__(self, manager: HttpSessions, on_request: Callable[[Scope], None]) -> None:
        self._app = ExactBody(manager.asgi_app)
        self._on_request = on_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._on_request(scope)
        board = scope["path_params"].get("board")
        if board is not None and not is_board_name(board):
            reason = f"a board's name has letters, digits, '_', '-' and '.', 64 at most: found {board[:80]!r}"
            await refusal_response(404, reason)(scope, receive, send)
            return
        if (problem := query_problem(endpoint_of(scope).query)) is not None:
            await refusal_response(400, problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def serve(
    board: Board,
    config_path: Path,
    host: str,
    listener: socket.socket,
    ready: Callable[[str, Authenticator], None],
    allowed: Sequence[str] = (),
    *,
    insecure: bool = False,
) -> None:
    """Serve until a signal says stop; `UnprotectedError` where nobody could tell who comes."""
    reach = Reach(not is_loopback_name(str(listener.getsockname()[0])), insecure)
    sockets, has_localhost = _take_localhost(listener, identity(config_path))
    front = HttpGateway(board, config_path, host, allowed, reach, has_localhost=has_localhost)
    stopping, hurrying = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        # A second signal waits for nothing.
        (hurrying if stopping.is_set() else stopping).set()

    with _signals(stop, front.config.reload_soon):
        async with board, short_collections():
            server = EmbeddedServer(uvicorn_config(front))
            async with front.running():
                serving = asyncio.get_running_loop().create_task(server.serve(sockets=sockets))
                url = local_address(host, listener.getsockname()[1])
                with _announce(config_path, front.announcement(url)):
                    ready(url, front.authenticator)
                    await _first(stopping.wait(), serving)
                finishing = asyncio.get_running_loop().create_task(front.finish())
                await _first(hurrying.wait(), finishing)
                finishing.cancel()
            # Clients' streams have ended with their sessions: nothing is left to wait for.
            server.should_exit = True
            await serving


def _take_localhost(listener: socket.socket, config: str) -> tuple[list[socket.socket], bool]:
    """What to listen on, and whether `localhost` is us alone."""
    try:
        twin = listen_on_twin(listener, config)
    except PortInUseError as exc:
        logger().warning("localhost.taken", reason=exc.strerror, remark="requests to the name localhost are refused")
        return [listener], False
    except OSError as exc:
        # Whoever else may not have it either.
        logger().warning("localhost.failed", reason=exc.strerror)
        return [listener], True
    return [listener] if twin is None else [listener, twin], True


def uvicorn_config(front: HttpGateway) -> uvicorn.Config:
    """How uvicorn is to serve us."""
    return uvicorn.Config(
        front.app,
        http=front.protocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_GRACE,
        server_header=False,
        # What a proxy says of its client matters to the full path alone, which asks for it.
        proxy_headers=False,
    )


def _behind_proxies(app: ASGIApp) -> ASGIApp:
    """The app as it is told of the clients of a proxy on this machine."""
    return cast("ASGIApp", ProxyHeadersMiddleware(cast("Any", app), os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")))


async def _first(waiting: Coroutine[Any, Any, object], serving: asyncio.Task[None]) -> None:
    task = asyncio.get_running_loop().create_task(waiting)
    await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()


@contextlib.contextmanager
def _announce(config_path: Path, gateway: RunningGateway) -> Generator[None]:
    """Let the other commands find this gateway; where that cannot be written down, it goes on without."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(announcement(config_path, gateway))
        except OSError as exc:
            reason = f"{exc.filename or 'the run file'}: {exc.strerror or exc}"
            logger().warning("run.file.failed", reason=reason, remark="other commands cannot find this gateway")
        yield


@contextlib.contextmanager
def _signals(stop: Callable[[], None], reload: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, lambda _number, _frame: loop.call_soon_threadsafe(stop))
        yield
        return
    handlers = {signal.SIGTERM: stop, signal.SIGHUP: reload}
    # A shell starts background jobs with SIGINT ignored: Ctrl-C is meant for what runs in the foreground.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        handlers[signal.SIGINT] = stop
    for number, action in handlers.items():
        loop.add_signal_handler(number, action)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


async def _route_error(request: Request, exc: Exception) -> Response:
    status = getattr(exc, "status_code", 404)
    if status == 404:
        return refusal_response(404, f"{request.url.path}: there is nothing here; /docs lists what there is")
    allowed = ", ".join(_methods_of(request))
    return refusal_response(
        405, f"{request.url.path}: {request.method} is not possible here, but {allowed}", {"allow": allowed}
    )


def _methods_of(request: Request) -> list[str]:
    """Every method that some route takes at this address."""
    fitting = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    return sorted({method for route in fitting for method in route.methods or ()})
