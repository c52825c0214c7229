"""The MCP server that clients talk to, on the SDK's low-level server, in both eras.

Its middleware answers what Pegboard relays with plain dicts, which the SDK writes as they are; everything
else (initialize, ping, unknown methods) goes on to the SDK's own handlers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult, SubscriptionsListenRequestParams, SubscriptionsListenResult

from pegboard.log import logger
from pegboard.protocol.eras import Era, era_of, result_for
from pegboard.version import SERVER_INFO, VERSION

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
_MAX_STREAMS = 1024
_MAX_PROGRESS = 256

_CLIENT_KEY = "pegboard.client"
_Context = ServerRequestContext[Any, Any]


@dataclass(slots=True, eq=False)
class Client:
    """A client as the relay sees it: the connection it came on, and the address it used."""

    era: Era
    session: str | None
    query: Mapping[str, str]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Backend(Protocol):
    """Who answers for the tools."""

    async def list_tools(self, client: Client, params: Mapping[str, Any]) -> list[Mapping[str, Any]]: ...

    async def call_tool(
        self, client: Client, params: Mapping[str, Any], on_progress: Callable[[Mapping[str, Any]], None] | None
    ) -> dict[str, Any]: ...

    def input_schema(self, name: str) -> Mapping[str, Any] | None: ...

    def watch(self, client: Client, listener: Callable[[], None]) -> Callable[[], None]: ...

    async def session_ended(self, client: Client) -> None: ...

    def instructions(self) -> str: ...


class GatewayServer(Server[Any]):
    """The SDK's server with our middleware and with `listChanged` announced."""

    def __init__(self, backend: Backend, *, on_sessions: Callable[[int], None] = lambda _: None) -> None:
        self._backend = backend
        self._sessions: set[_Session] = set()
        self._on_sessions = on_sessions
        self._streams = 0
        super().__init__(
            SERVER_INFO["name"],
            title=SERVER_INFO["title"],
            version=VERSION,
            instructions=backend.instructions(),
            get_tool_input_schema=backend.input_schema,
            on_list_tools=_answered_by_the_middleware,
            on_subscriptions_listen=self._listen,
        )
        self.middleware.append(self._relay)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The HTTP manager asks without options, which would leave `listChanged` unsaid."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _relay(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            answer = await call_next(ctx)
            if ctx.method == "notifications/initialized":
                self._welcome(ctx)
            return answer
        connection = _connection(ctx)
        # Before the handshake nothing is relayed; the SDK has the right refusal for it.
        if connection.initialize_accepted:
            if ctx.method == "tools/list":
                return await self._list(ctx)
            if ctx.method == "tools/call":
                return await self._call(ctx)
        return await call_next(ctx)

    async def _list(self, ctx: _Context) -> dict[str, Any]:
        params = ctx.params or {}
        if params.get("cursor") is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor: the whole list is on one page")
        client = _client(ctx)
        tools = await self._backend.list_tools(client, params)
        # How long the list holds nobody can say: the servers behind it change it at any moment.
        cacheable = {"ttlMs": 0, "cacheScope": "private"}
        return result_for(client.era, {"tools": tools}, server_info=SERVER_INFO, cacheable=cacheable)

    async def _call(self, ctx: _Context) -> dict[str, Any]:
        params = ctx.params or {}
        if not isinstance(params.get("name"), str):
            raise MCPError(INVALID_PARAMS, "tools/call needs the name of a tool")
        if not isinstance(params.get("arguments"), (dict, type(None))):
            raise MCPError(INVALID_PARAMS, "the arguments of a tool must be an object")
        client = _client(ctx)
        async with _progress(ctx) as on_progress:
            result = await self._backend.call_tool(client, params, on_progress)
        return result_for(client.era, result, server_info=SERVER_INFO)

    def _welcome(self, ctx: _Context) -> None:
        """A handshake client is ready: from now on it hears of changes."""
        connection = _connection(ctx)
        if any(session.connection is connection for session in self._sessions):
            return
        session = _Session(connection, _client(ctx))
        session.unwatch = self._backend.watch(session.client, session.tools_changed)
        self._sessions.add(session)
        self._on_sessions(len(self._sessions))
        connection.exit_stack.push_async_callback(self._farewell, session)

    async def _farewell(self, session: _Session) -> None:
        session.unwatch()
        session.stop()
        self._sessions.discard(session)
        self._on_sessions(len(self._sessions))
        await self._backend.session_ended(session.client)

    async def _listen(self, ctx: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """One stream of notices for a client of the modern era, fed by its own view alone."""
        if self._streams >= _MAX_STREAMS:
            raise MCPError(INTERNAL_ERROR, "too many subscription streams are open")
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        self._streams += 1
        tell = _Teller(lambda: bus.publish(ToolsListChanged()))
        unwatch = self._backend.watch(_client(ctx), tell.tell)
        try:
            return await handler(ctx, params)
        finally:
            self._streams -= 1
            unwatch()
            tell.stop()


class _Teller:
    """Sends one notice at a time without making the teller wait; a second one meanwhile is sent afterwards."""

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send = send
        self._due = False
        self._task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """There is news."""
        self._due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Nobody listens any more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._due:
            self._due = False
            try:
                await self._send()
            except Exception as exc:
                logger().debug("notice.not.sent", error=type(exc).__name__)


@dataclass(slots=True, eq=False)
class _Session:
    """A handshake client that is ready to be told things."""

    connection: Connection
    client: Client
    unwatch: Callable[[], None] = lambda: None
    _teller: _Teller | None = None

    def tools_changed(self) -> None:
        """Send `list_changed`."""
        if self._teller is None:
            self._teller = _Teller(self.connection.send_tool_list_changed)
        self._teller.tell()

    def stop(self) -> None:
        """The session is over."""
        if self._teller is not None:
            self._teller.stop()


class _progress(contextlib.AbstractAsyncContextManager["Callable[[Mapping[str, Any]], None] | None"]):  # noqa: N801
    """Carries progress to the client in order, all of it before the answer; `None` where none was asked for."""

    def __init__(self, ctx: _Context) -> None:
        meta = (ctx.params or {}).get("_meta")
        token = cast("dict[str, Any]", meta).get("progressToken") if isinstance(meta, dict) else None
        self._token: object = token if isinstance(token, (str, int)) and not isinstance(token, bool) else None
        self._notify = ctx.session._request_outbound.notify  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._queue: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Callable[[Mapping[str, Any]], None] | None:
        if self._token is None:
            return None
        self._pump = asyncio.get_running_loop().create_task(self._carry())
        return self._said

    async def __aexit__(self, kind: object, *_: object) -> None:
        if self._pump is None:
            return
        if kind is None:
            self._queue.put_nowait(None)
            await self._pump
        else:
            self._pump.cancel()

    def _said(self, params: Mapping[str, Any]) -> None:
        if self._queue.qsize() >= _MAX_PROGRESS:
            # A client that does not read gets the newest, not all of it.
            self._queue.get_nowait()
        self._queue.put_nowait(params)

    async def _carry(self) -> None:
        while (params := await self._queue.get()) is not None:
            with contextlib.suppress(Exception):
                await self._notify("notifications/progress", {**params, "progressToken": self._token})


async def _answered_by_the_middleware(_: _Context, __: Any) -> ListToolsResult:
    raise AssertionError("the middleware answers tools/list")


def _connection(ctx: _Context) -> Connection:
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _client(ctx: _Context) -> Client:
    connection = _connection(ctx)
    known = connection.state.get(_CLIENT_KEY)
    if known is not None:
        return cast("Client", known)
    query = dict(ctx.request.query_params) if ctx.request is not None else {}
    era = era_of(ctx.protocol_version)
    capabilities = connection.client_capabilities
    client = Client(
        era,
        session=None if era == "modern" else connection.session_id or f"connection-{id(connection)}",
        query=query,
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
    )
    connection.state[_CLIENT_KEY] = client
    return client
