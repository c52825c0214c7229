"""The MCP server that clients talk to, on the SDK's low-level server, in both eras.

Its middleware answers what Pegboard relays with plain dicts, which the SDK writes as they are; the rest
(initialize, ping, and what an era does not have) goes on to the SDK's own handlers.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from uuid import uuid4

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import SetLevelRequestParams, SubscriptionsListenRequestParams, SubscriptionsListenResult
from mcp_types.methods import SPEC_CLIENT_METHODS, SPEC_CLIENT_NOTIFICATION_METHODS

from pegboard.clients.caller import Caller
from pegboard.clients.client import Client, identify, name_in, version_in
from pegboard.clients.endpoint import Endpoint, endpoint_of
from pegboard.clients.request_context import ANSWERING, EXACT, STARTED_CALL, Answering, PipeRequest
from pegboard.log import logger
from pegboard.protocol.codes import INTERNAL_ERROR, INVALID_PARAMS
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    LOG_LEVEL_KEY,
    SUBSCRIPTION_KEY,
    era_of,
)
from pegboard.protocol.members import members_problem, unicode_problem
from pegboard.protocol.message import COULD_NOT_ANSWER
from pegboard.protocol.results import result_for
from pegboard.sdk.channel import ClientChannel, progress_token
from pegboard.servers.errors import RpcError
from pegboard.version import SERVER_INFO, VERSION

# Streams of notices that may be open, and how many of them may be one client's; what one may follow.
_MAX_STREAMS = 1024
STREAM_SHARE = 128
MAX_FOLLOWED = 1000
# What all streams of one principal may follow together.
FOLLOWED_SHARE = 10_000
_MAX_NEWS = 1024
_SHOWN = 100

# What a list, or a resource, is good for: nobody can say how long, since the servers behind change it at any moment.
_CACHEABLE = {"ttlMs": 0, "cacheScope": "private"}
_LISTS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_KINDS = ("tools", "prompts", "resources")
# What only the handshake era has; in the other the SDK refuses it.
_HANDSHAKE_ONLY = frozenset({"resources/subscribe", "resources/unsubscribe", "logging/setLevel"})
_RELAYED = frozenset({*_LISTS, "tools/call", "prompts/get", "resources/read", "completion/complete", *_HANDSHAKE_ONLY})
_OWN_NOTIFICATIONS = SPEC_CLIENT_NOTIFICATION_METHODS - {"notifications/roots/list_changed"}

_CLIENT_KEY = "pegboard.client"
_GREETED_KEY = "pegboard.greeted"
_READY_KEY = "pegboard.ready"
_NAME_KEY = "pegboard.session"
_Context = ServerRequestContext[Any, Any]


class Backend(Protocol):
    """Who answers."""

    async def list(self, client: Client, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def answer(self, caller: Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def notify(self, caller: Caller, method: str, params: Mapping[str, Any]) -> None: ...

    async def follow(
        self, caller: Caller, uris: list[str], tell: Callable[[Mapping[str, Any]], None]
    ) -> tuple[list[str], Callable[[], None]]: ...

    def input_schema(self, name: str) -> Mapping[str, Any] | None: ...

    def watch(self, client: Client, kind: str, listener: Callable[[], None]) -> Callable[[], None]: ...

    def log_level(self, client: Client) -> str | None: ...

    def session_began(self, client: Client) -> None: ...

    def session_bound(self, client: Client) -> None: ...

    async def session_ended(self, client: Client) -> None: ...

    def instructions(self, client: Client) -> str: ...

    def capabilities(self, client: Client) -> Mapping[str, Any]: ...


class GatewayServer(Server[Any]):
    """The SDK's server with our middleware and with `listChanged` announced."""

    def __init__(self, backend: Backend, *, on_sessions: Callable[[int], None] = lambda _: None) -> None:
        self._backend = backend
        self._sessions: set[_Session] = set()
        # The protocol version that each session was opened with.
        self.versions: dict[str, str] = {}
        self._on_sessions = on_sessions
        self._streams: Counter[str] = Counter()
        # Resources that the streams of each principal follow.
        self._followed: Counter[str] = Counter()
        super().__init__(
            SERVER_INFO["name"],
            title=SERVER_INFO["title"],
            version=VERSION,
            get_tool_input_schema=backend.input_schema,
            # What there is a handler for is what the SDK announces; the middleware is there first.
            on_list_tools=_leave_to_middleware,
            on_list_prompts=_leave_to_middleware,
            on_list_resources=_leave_to_middleware,
            on_subscribe_resource=_leave_to_middleware,
            on_completion=_leave_to_middleware,
            on_subscriptions_listen=self._listen,
        )
        self.add_request_handler("logging/setLevel", SetLevelRequestParams, _leave_to_middleware)
        self.middleware.append(self._relay)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The HTTP manager asks without options, which would leave `listChanged` unsaid."""
        options = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _relay(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await self._relay_notification(ctx, call_next)
        if ctx.method in {"initialize", "server/discover"}:
            return self._complete_introduction(ctx, await call_next(ctx))
        # Before the handshake nothing is relayed; the SDK has the right refusal for it.
        if not _connection(ctx).initialize_accepted or not self._relays(ctx):
            return await call_next(ctx)
        return await self._answer(ctx)

    def _relays(self, ctx: _Context) -> bool:
        if ctx.method in _RELAYED:
            return ctx.method not in _HANDSHAKE_ONLY or era_of(ctx.protocol_version) == "handshake"
        return ctx.method not in SPEC_CLIENT_METHODS and self.get_request_handler(ctx.method) is None

    async def _answer(self, ctx: _Context) -> dict[str, Any]:
        params = _params(ctx)
        if not isinstance(params.get("_meta", {}), dict):
            raise MCPError(INVALID_PARAMS, "_meta must be an object")
        if (problem := _problem(ctx, params)) is not None:
            raise MCPError(INVALID_PARAMS, f"Invalid params: {problem}")
        client, channel = _client(ctx), ClientChannel(_outbound(ctx), progress_token(params))
        try:
            if ctx.method in _LISTS:
                result = await self._backend.list(client, ctx.method, params)
            else:
                result = await self._backend.answer(self._caller(ctx, client, channel), ctx.method, params)
        except BaseException as exc:
            await channel.abandon()
            if isinstance(exc, RpcError):
                raise MCPError(exc.code, exc.message, exc.data) from None
            if isinstance(exc, MCPError) or not isinstance(exc, Exception):
                raise
            # The SDK would tell the client what Python said.
            logger().error("request.failed", method=ctx.method, error=f"{type(exc).__name__}: {exc}"[:300])
            raise MCPError(INTERNAL_ERROR, COULD_NOT_ANSWER) from None
        await channel.finish()
        cacheable = _CACHEABLE if ctx.method in _LISTS or ctx.method == "resources/read" else None
        return result_for(client.era, result, server_info=SERVER_INFO, cacheable=cacheable)

    def _complete_introduction(self, ctx: _Context, result: HandlerResult) -> HandlerResult:
        """Our own introduction, with what the servers behind us can do that we only pass on."""
        if not isinstance(result, dict):
            return result
        client = _client(ctx)
        if ctx.method == "initialize":
            # A session that is introduced again keeps the endpoint it was opened with, and all that follows from it.
            client.declare(_object(_params(ctx).get("capabilities")))
            info = _params(ctx).get("clientInfo")
            client.name, client.version = name_in(info), version_in(info)
            client.protocol_version = str(result.get("protocolVersion"))
            self._clean_up_after(_connection(ctx), client)
            self.versions[client.session or ""] = client.protocol_version
        own = cast("dict[str, Any]", result.get("capabilities") or {})
        passed_on = self._backend.capabilities(client)
        return {
            **result,
            "capabilities": {**passed_on, **own},
            "instructions": self._backend.instructions(client),
        }

    async def _relay_notification(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        if ctx.method in _OWN_NOTIFICATIONS or not _connection(ctx).initialize_accepted:
            answer = await call_next(ctx)
            if ctx.method == "notifications/initialized":
                self._on_initialized(ctx)
            return answer
        params = _params(ctx)
        if (problem := _problem(ctx, params)) is not None:
            logger().debug("client.notification.refused", method=ctx.method[:_SHOWN], reason=problem)
            return None
        client = _client(ctx)
        caller = self._caller(ctx, client, ClientChannel(_outbound(ctx)))
        await self._backend.notify(caller, ctx.method, params)
        return None

    def _on_initialized(self, ctx: _Context) -> None:
        """A handshake client is ready: from now on it hears of changes."""
        connection = _connection(ctx)
        if _READY_KEY in connection.state:
            return
        connection.state[_READY_KEY] = True
        client = _client(ctx)
        # Between requests there is the connection's own channel.
        client.channel = channel = ClientChannel(connection.outbound)
        session = _Session(connection, client, channel)

        def watch() -> None:
            session.forget_lists()
            for kind in _KINDS:
                session.undo.append(self._backend.watch(client, kind, session.teller(kind)))

        def watch_anew() -> None:
            self._backend.session_bound(client)
            watch()
            for kind in _KINDS:
                session.teller(kind)()

        watch()
        client.on_bind = watch_anew
        self._backend.session_began(client)
        if isinstance(ctx.request, PipeRequest) and ctx.request.on_initialized is not None:
            ctx.request.on_initialized(client)
        self._sessions.add(session)
        self._on_sessions(len(self._sessions))
        connection.exit_stack.callback(self._on_session_end, session)

    def _clean_up_after(self, connection: Connection, client: Client) -> None:
        """From its greeting on a client can leave something behind, whether it ever says that it is ready or not."""
        if _GREETED_KEY not in connection.state:
            connection.state[_GREETED_KEY] = True
            connection.exit_stack.push_async_callback(self._backend.session_ended, client)
            connection.exit_stack.callback(self.versions.pop, client.session or "", None)

    def _caller(self, ctx: _Context, client: Client, channel: ClientChannel) -> Caller:
        """The client during this request."""
        return Caller(
            client,
            notify=channel.notify,
            # In the modern era a question is the answer to a request.
            ask=channel.ask if client.era == "handshake" else None,
            on_progress=channel.on_progress,
            log_level=_level(ctx) if client.era == "modern" else self._backend.log_level(client),
            started_call=_take_started_call(ctx),
            request_id=None if ctx.request_id is None else str(ctx.request_id),
            answering=_answering(ctx),
        )

    def _on_session_end(self, session: _Session) -> None:
        session.stop()
        self._sessions.discard(session)
        self._on_sessions(len(self._sessions))

    async def _listen(self, ctx: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """One stream of notices for a client of the modern era, fed by its own view alone."""
        if (problem := _problem(ctx, _params(ctx))) is not None:
            raise MCPError(INVALID_PARAMS, f"Invalid params: {problem}")
        client, wanted = _client(ctx), params.notifications
        followed = wanted.resource_subscriptions or []
        if len(followed) > MAX_FOLLOWED:
            raise MCPError(INVALID_PARAMS, f"a stream may follow {MAX_FOLLOWED:,} resources at most: open several")
        holder = _stream_holder(ctx, client)
        self._check_room(holder, client.principal.id, len(followed))
        stream = _ListenStream(ctx)
        flags = {
            "tools": wanted.tools_list_changed,
            "prompts": wanted.prompts_list_changed,
            "resources": wanted.resources_list_changed,
        }
        kinds = [kind for kind, asked_for in flags.items() if asked_for]
        undo = [self._take_room(holder, client.principal.id, len(followed))]
        undo += [self._backend.watch(client, kind, stream.teller(kind)) for kind in kinds]
        try:
            uris, release = await self._backend.follow(Caller(client), followed, stream.publish_update)
            undo.append(release)
            honoured: dict[str, Any] = {f"{kind}ListChanged": True for kind in kinds}
            if uris:
                honoured["resourceSubscriptions"] = uris
            # A token that expires ends what would stand for ever; under other rules it has to be opened anew.
            left = client.principal.valid_until - time.time()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if left == math.inf else max(left, 0.0)) as limit:
                    undo.append(client.principal.on_end(lambda _: _end_now(limit)))
                    await stream.run(honoured)
        finally:
            for end in undo:
                end()
        return SubscriptionsListenResult(_meta=stream.meta)

    def _check_room(self, holder: str, principal: str, resources: int) -> None:
        if self._streams[holder] >= STREAM_SHARE or self._streams.total() >= _MAX_STREAMS:
            raise MCPError(INTERNAL_ERROR, "too many subscription streams are open: close one first")
        if resources and self._followed[principal] + resources > FOLLOWED_SHARE:
            words = f"all of your streams together may follow {FOLLOWED_SHARE:,} resources at most: close one first"
            raise MCPError(INVALID_PARAMS, words)

    def _take_room(self, holder: str, principal: str, resources: int) -> Callable[[], None]:
        """Count a stream and what it asks to follow; gives back what takes that off again."""
        taken = ((self._streams, holder, 1), (self._followed, principal, resources))
        for counter, whose, count in taken:
            counter[whose] += count

        def leave() -> None:
            for counter, whose, count in taken:
                counter[whose] -= count
                if not counter[whose]:
                    del counter[whose]

        return leave


class _ListenStream:
    """The frames of one listen stream, each with the id of the request that opened it."""

    def __init__(self, ctx: _Context) -> None:
        self.meta: dict[str, Any] = {SUBSCRIPTION_KEY: ctx.request_id}
        self._notify = _outbound(ctx).notify
        self._news: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue()

    def teller(self, kind: str) -> Callable[[], None]:
        """Says that a list of this kind changed."""
        return lambda: self._put(f"notifications/{kind}/list_changed", {})

    def publish_update(self, params: Mapping[str, Any]) -> None:
        """Says that a resource changed."""
        self._put("notifications/resources/updated", params)

    def _put(self, method: str, params: Mapping[str, Any]) -> None:
        if self._news.qsize() >= _MAX_NEWS:
            # A client that does not read hears of the newest, not of all.
            self._news.get_nowait()
        self._news.put_nowait((method, params))

    async def run(self, honoured: Mapping[str, Any]) -> None:
        """Acknowledge first, then tell, until the client goes away."""
        await self._send("notifications/subscriptions/acknowledged", {"notifications": honoured})
        while True:
            await self._send(*await self._news.get())

    async def _send(self, method: str, params: Mapping[str, Any]) -> None:
        given = params.get("_meta")
        meta = {**cast("dict[str, Any]", given), **self.meta} if isinstance(given, dict) else self.meta
        await self._notify(method, {**params, "_meta": meta})


@dataclass(slots=True, eq=False)
class _Session:
    """A handshake client that is ready to be told things."""

    connection: Connection
    client: Client
    channel: ClientChannel
    undo: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def teller(self, kind: str) -> Callable[[], None]:
        """Sends `list_changed` of this kind in its turn."""
        return lambda: self.channel.notify(f"notifications/{kind}/list_changed", {})

    def forget_lists(self) -> None:
        """Follow no list any more."""
        for end in self.undo:
            end()
        self.undo.clear()

    def stop(self) -> None:
        """The session is over."""
        self.client.on_bind = None
        self.forget_lists()
        self.channel.drop()


def _end_now(limit: asyncio.Timeout) -> None:
    # It may have run out already.
    with suppress(RuntimeError):
        limit.reschedule(asyncio.get_running_loop().time())


async def _leave_to_middleware(_: _Context, __: Any) -> Any:
    raise AssertionError("the middleware answers this")


def _connection(ctx: _Context) -> Connection:
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _outbound(ctx: _Context) -> Any:
    return ctx.session._request_outbound  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _client(ctx: _Context) -> Client:
    """The client of this request; a session has one for as long as it lasts."""
    if era_of(ctx.protocol_version) == "modern":
        meta = _meta(ctx)
        return identify(_endpoint(ctx), "modern", None, _object(meta.get(CLIENT_CAPABILITIES_KEY)), meta)
    state, endpoint = _connection(ctx).state, _endpoint(ctx)
    if _CLIENT_KEY not in state:
        state[_CLIENT_KEY] = identify(endpoint, session=_session_id(ctx))
    client = cast("Client", state[_CLIENT_KEY])
    client.bind(endpoint.principal)
    return client


def _endpoint(ctx: _Context) -> Endpoint:
    """Where a request came in: over HTTP, or over a pipe."""
    if ctx.request is None:
        return PipeRequest().endpoint
    return ctx.request.endpoint if isinstance(ctx.request, PipeRequest) else endpoint_of(ctx.request.scope)


def _session_id(ctx: _Context) -> str:
    """The session's id, or a name for a connection without one; an address in memory would be another's one day."""
    connection = _connection(ctx)
    named = ctx.request.session if isinstance(ctx.request, PipeRequest) else None
    given = connection.session_id or connection.state.setdefault(_NAME_KEY, named or f"connection-{uuid4().hex}")
    return cast("str", given)


def _meta(ctx: _Context) -> dict[str, Any]:
    return _object(_params(ctx).get("_meta"))


def _level(ctx: _Context) -> str | None:
    level = _meta(ctx).get(LOG_LEVEL_KEY)
    return level if isinstance(level, str) else None


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _params(ctx: _Context) -> Mapping[str, Any]:
    """What a message really says: the SDK knows it without what its parser cannot hold."""
    exact = _exact(ctx)
    return (ctx.params if exact is None else exact.get("params")) or {}


def _exact(ctx: _Context) -> Mapping[str, Any] | None:
    """The message, where it says something that the SDK's parser cannot hold."""
    request = ctx.request
    if request is None:
        return None
    return request.exact if isinstance(request, PipeRequest) else request.scope.get(EXACT)


def _problem(ctx: _Context, params: Mapping[str, Any]) -> str | None:
    """Why params are not acted on."""
    problem = members_problem(ctx.method, params)
    if problem is None and _exact(ctx) is not None:
        return unicode_problem(ctx.method, params)
    return problem


def _take_started_call(ctx: _Context) -> Any:
    if ctx.request is None:
        return None
    held = ctx.request.started_call if isinstance(ctx.request, PipeRequest) else ctx.request.scope.get(STARTED_CALL)
    return held.take() if held is not None else None


def _answering(ctx: _Context) -> Answering | None:
    request = ctx.request
    return None if request is None or isinstance(request, PipeRequest) else request.scope.get(ANSWERING)


def _stream_holder(ctx: _Context, client: Client) -> str:
    """Whose share of the streams one is: of another machine the network's, whatever is said there; of this machine a
    client's."""
    if ctx.request is None or client.endpoint.private:
        return _session_id(ctx)
    return client.endpoint.network or client.sender
