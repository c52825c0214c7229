"""What Pegboard takes from the SDK that the SDK does not promise: where it stands, and that it is still so.

A test that fails here after an update of the SDK says which part has moved, and its message which file to look into.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import json
import textwrap
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import Any

import anyio
import mcp_types
import mcp_types.methods
import pytest
from mcp.server import streamable_http
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.streamable_http import EventMessage, EventStore, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared import inbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS, is_version_at_least

from pegboard.exactjson import parse
from pegboard.protocol import eras
from pegboard.protocol.headers import parameter_headers, request_headers
from pegboard.result import ToolFailure
from pegboard.sdk import server as gateway_server

pytestmark = pytest.mark.anyio

GATEWAY, SESSIONS, HEADERS = "sdk/server.py", "sdk/sessions.py", "protocol/headers.py"
LIMIT = 30.0
BIG = 2**70
MARKED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "plain": {"type": "string"},
    },
}

# The middleware (sdk/server.py)


class Peer:
    """A client at the other end of the SDK's server, on plain streams."""

    def __init__(self, send: Any, receive: Any) -> None:
        self._send, self._receive = send, receive
        self.last_id = 0

    async def write(self, message: Mapping[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message})
        await self._send.send(SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False)))

    async def read(self) -> dict[str, Any]:
        """The next message, as it would be written on a wire."""
        async with asyncio.timeout(LIMIT):
            item = await self._receive.receive()
        return json.loads(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.last_id += 1
        await self.write({"id": self.last_id, "method": method, **({} if params is None else {"params": params})})
        return await self.read()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self.write({"method": method, **({} if params is None else {"params": params})})

    async def handshake(self) -> dict[str, Any]:
        answer = await self.request(
            "initialize",
            {"protocolVersion": eras.LATEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        )
        await self.notify("notifications/initialized")
        return answer


@contextlib.asynccontextmanager
async def served(middleware: ServerMiddleware[Any], **options: Any) -> AsyncGenerator[Peer]:
    """The SDK's server with a middleware like ours."""
    server = Server[Any]("contract", **options)
    server.middleware.append(middleware)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](64)
    running = asyncio.create_task(server.run(from_client, to_client, server.create_initialization_options()))
    try:
        yield Peer(to_server, from_server)
    finally:
        to_server.close()
        async with asyncio.timeout(LIMIT):
            await running
        from_server.close()


def modern(**params: Any) -> dict[str, Any]:
    return eras.modern_params(
        params, version=eras.LATEST_MODERN, client_info={"name": "t", "version": "1"}, capabilities={}
    )


async def test_the_middleware_sees_every_message_before_the_gate() -> None:
    """Known and unknown requests and notifications, `initialize` and what comes before it, with the raw params."""
    seen: list[tuple[str, Any, bool, bool]] = []

    async def watch(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        accepted = ctx.session._connection.initialize_accepted
        seen.append((ctx.method, ctx.params, ctx.request_id is None, accepted))
        return await call_next(ctx)

    async with served(watch) as peer:
        assert "error" in await peer.request("tools/list", {"x": BIG})
        assert "error" in await peer.request("custom/thing")
        await peer.notify("notifications/custom", {"y": 1})
        await peer.handshake()
        assert "error" in await peer.request("custom/thing", {"z": None})
        await peer.notify("notifications/roots/list_changed")
        await peer.notify("notifications/cancelled", {"requestId": 99})
        await peer.request("ping")
    where = f"{GATEWAY}: GatewayServer._relay"
    assert [each for each in seen if each[0] != "initialize"] == [
        ("tools/list", {"x": BIG}, False, False),
        ("custom/thing", None, False, False),
        ("notifications/custom", {"y": 1}, True, False),
        ("notifications/initialized", None, True, True),
        ("custom/thing", {"z": None}, False, True),
        ("notifications/roots/list_changed", None, True, True),
        ("notifications/cancelled", {"requestId": 99}, True, True),
        ("ping", None, False, True),
    ], where
    assert [(method, told) for method, _, told, _ in seen if method == "initialize"] == [("initialize", False)], where


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "custom/thing", "resources/read"])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_the_middleware_returns_is_written_as_it_is(era: str, method: str) -> None:
    """Fields that no model knows, integers of any size, nulls and the order of keys, in both eras."""
    result = {"zeta": {"n": [BIG, -BIG, 1.5, None]}, "tools": "not even a list", "_meta": {"a": 1}, "alpha": None}

    async def answer(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        return await call_next(ctx) if ctx.method == "initialize" or ctx.request_id is None else result

    async with served(answer) as peer:
        if era == "handshake":
            await peer.handshake()
        written = (await peer.request(method, modern() if era == "modern" else {}))["result"]
    assert json.dumps(written) == json.dumps(result), f"{GATEWAY}: GatewayServer._answered"


async def test_an_error_of_the_middleware_is_written_as_it_is() -> None:
    """Code, message and data of an `MCPError`."""

    async def refuse(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "custom/thing":
            return await call_next(ctx)
        raise MCPError(-32099, "no", {"n": BIG, "x": None})

    async with served(refuse) as peer:
        await peer.handshake()
        answer = await peer.request("custom/thing")
    assert answer["error"] == {"code": -32099, "message": "no", "data": {"n": BIG, "x": None}}, "gateway/mcp.py"


async def test_initialize_comes_back_as_a_dict_that_can_be_added_to() -> None:
    """What `call_next` gives is the wire's own form, and what is returned instead is sent."""
    kinds: list[type] = []

    async def add(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method != "initialize":
            return result
        kinds.append(type(result))
        assert isinstance(result, dict)
        return {**result, "capabilities": {**result["capabilities"], "custom": {"x": 1}}}

    async with served(add) as peer:
        answer = await peer.handshake()
    assert kinds == [dict], f"{GATEWAY}: GatewayServer._introduced"
    assert answer["result"]["capabilities"]["custom"] == {"x": 1}


async def test_a_modern_connection_is_accepted_from_its_first_request() -> None:
    """There is no handshake to wait for, and the version is the request's own."""
    seen: list[tuple[bool, str]] = []

    async def watch(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        seen.append((ctx.session._connection.initialize_accepted, ctx.protocol_version))
        return await call_next(ctx)

    async with served(watch) as peer:
        await peer.request("server/discover", modern())
    assert seen == [(True, eras.LATEST_MODERN)], f"{GATEWAY}: _relay, _client"


# The session's inner parts (sdk/server.py)


async def test_a_connection_keeps_state_over_requests_and_ends_with_its_exit_stack() -> None:
    """`state` is a dict of our own, `session_id` is there, and what is pushed on `exit_stack` runs at the end."""
    ended: list[str] = []
    states: list[int] = []
    sessions: list[object] = []

    async def farewell(name: str) -> None:
        ended.append(name)

    async def watch(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        connection = ctx.session._connection
        assert isinstance(connection, Connection), f"{GATEWAY}: _connection"
        connection.state["pegboard.test"] = connection.state.get("pegboard.test", 0) + 1
        states.append(connection.state["pegboard.test"])
        sessions.append(connection.session_id)
        if ctx.method == "notifications/initialized":
            connection.exit_stack.push_async_callback(farewell, "bye")
        return await call_next(ctx)

    async with served(watch) as peer:
        await peer.handshake()
        await peer.request("ping")
        assert ended == []
    assert states == [1, 2, 3], f"{GATEWAY}: Connection.state"
    assert ended == ["bye"], f"{GATEWAY}: Connection.exit_stack"
    assert sessions == [None, None, None], f"{GATEWAY}: Connection.session_id is the transport's, and none over a pipe"


@pytest.mark.parametrize("channel_name", ["_request_outbound", "outbound"])
async def test_a_channel_tells_and_asks_without_models(channel_name: str) -> None:
    """Of the request and of the connection: any notification, any question, and its raw answer or error."""
    outcomes: list[Any] = []
    reports: list[tuple[float, float | None, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async def talk(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "custom/talk":
            return await call_next(ctx)
        session = ctx.session
        channel = session._request_outbound if channel_name == "_request_outbound" else session._connection.outbound
        await channel.notify("notifications/custom", {"n": BIG, "x": None})
        outcomes.append(await channel.send_raw_request("custom/question", {"n": BIG}, {"on_progress": told}))
        try:
            await channel.send_raw_request("custom/question", {}, {})
        except MCPError as exc:
            outcomes.append((exc.error.code, exc.error.message, exc.error.data))
        return {}

    async with served(talk) as peer:
        await peer.handshake()
        await peer.write({"id": "talk", "method": "custom/talk"})
        assert await peer.read() == {
            "jsonrpc": "2.0",
            "method": "notifications/custom",
            "params": {"n": BIG, "x": None},
        }
        question = await peer.read()
        token = question["params"].pop("_meta")["progressToken"]
        assert (question["method"], question["params"]) == ("custom/question", {"n": BIG})
        await peer.notify("notifications/progress", {"progressToken": token, "progress": 1, "total": 2, "message": "m"})
        await peer.write({"id": question["id"], "result": {"n": BIG, "odd": None}})
        question = await peer.read()
        await peer.write({"id": question["id"], "error": {"code": -1, "message": "no", "data": {"x": 1}}})
        assert (await peer.read())["id"] == "talk"
    where = f"sdk/channel.py: Channel, {GATEWAY}: {channel_name}"
    assert outcomes == [{"n": BIG, "odd": None}, (-1, "no", {"x": 1})], where
    assert reports == [(1, 2, "m")], where


async def test_a_modern_request_tells_on_its_own_channel_and_cannot_ask() -> None:
    """Notifications of a request go out before its answer; a question is a `NoBackChannelError`."""
    refusals: list[Exception] = []

    async def talk(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "custom/talk":
            return await call_next(ctx)
        channel = ctx.session._request_outbound
        await channel.notify("notifications/custom", {"n": 1})
        try:
            await channel.send_raw_request("elicitation/create", {}, {})
        except MCPError as exc:
            refusals.append(exc)
        return {}

    async with served(talk) as peer:
        assert (await peer.request("custom/talk", modern()))["method"] == "notifications/custom"
        assert "result" in await peer.read()
    assert [type(exc) for exc in refusals] == [NoBackChannelError], "sdk/channel.py: Outlet.ask"


def test_the_server_announces_what_there_is_a_handler_for() -> None:
    """The handlers are never called; they are there so that the SDK announces their capabilities."""

    async def never(*_: Any) -> Any:
        raise AssertionError

    server = Server[Any](
        "contract",
        on_list_tools=never,
        on_list_prompts=never,
        on_list_resources=never,
        on_subscribe_resource=never,
        on_completion=never,
        get_tool_input_schema=lambda _: None,
    )
    server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, never)
    options = server.create_initialization_options(
        NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    )
    announced = options.capabilities.model_dump(by_alias=True, exclude_none=True)
    assert announced == {
        "extensions": {},
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "completions": {},
        "logging": {},
    }, f"{GATEWAY}: GatewayServer.__init__"
    assert server.get_request_handler("tools/list") is not None
    assert server.get_request_handler("custom/thing") is None, f"{GATEWAY}: GatewayServer._relays"


# Methods, versions and headers


def test_the_sdk_knows_the_methods_that_are_its_own_affair() -> None:
    """What is in these sets is answered by the SDK or by name; everything else is passed on to servers."""
    requests, notifications = (
        mcp_types.methods.SPEC_CLIENT_METHODS,
        mcp_types.methods.SPEC_CLIENT_NOTIFICATION_METHODS,
    )
    assert isinstance(requests, frozenset), f"{GATEWAY}: _relays"
    assert requests >= gateway_server._RELAYED | {"initialize", "ping", "server/discover", "subscriptions/listen"}
    assert requests - gateway_server._RELAYED == {"initialize", "ping", "server/discover", "subscriptions/listen"} | {
        method for method in requests if method.startswith("tasks/")
    }, f"{GATEWAY}: a method that is new to the SDK has to be placed"
    assert notifications == {
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
    } | {method for method in notifications if method.startswith("notifications/tasks/")}, f"{GATEWAY}"


def test_the_two_sides_agree_on_the_versions_of_the_eras() -> None:
    """A version that the SDK serves and `eras.py` has never heard of would be taken for the wrong era."""
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == eras.HANDSHAKE_VERSIONS, "protocol/eras.py"
    assert tuple(MODERN_PROTOCOL_VERSIONS) == eras.MODERN_VERSIONS, "protocol/eras.py"
    assert mcp_types.DEFAULT_NEGOTIATED_VERSION in HANDSHAKE_PROTOCOL_VERSIONS, SESSIONS
    assert is_version_at_least("2025-11-25", "2025-11-25"), SESSIONS
    assert not is_version_at_least("2025-06-18", "2025-11-25"), SESSIONS


def test_the_keys_of_the_envelope_are_the_sdks() -> None:
    """Both sides read and write the same names in `_meta`."""
    assert eras.VERSION_KEY == mcp_types.PROTOCOL_VERSION_META_KEY
    assert eras.CLIENT_INFO_KEY == mcp_types.CLIENT_INFO_META_KEY
    assert eras.CLIENT_CAPABILITIES_KEY == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert eras.LOG_LEVEL_KEY == mcp_types.LOG_LEVEL_META_KEY
    assert eras.SERVER_INFO_KEY == mcp_types.SERVER_INFO_META_KEY
    assert eras.UNSUPPORTED_VERSION == mcp_types.UNSUPPORTED_PROTOCOL_VERSION


def test_the_headers_of_the_modern_era_follow_the_sdks_rules() -> None:
    """Which methods bear a name, how a value is written, and which arguments have a header of their own."""
    assert dict(inbound.NAME_BEARING_METHODS) == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
    }, HEADERS
    assert inbound.MCP_PROTOCOL_VERSION_HEADER == "mcp-protocol-version", SESSIONS
    assert (inbound.MCP_METHOD_HEADER, inbound.MCP_NAME_HEADER) == ("mcp-method", "mcp-name"), HEADERS
    for name in ("plain", "with space", " edge", "ä€", "line\nbreak", "=?base64?eA==?=", ""):
        written = inbound.encode_header_value(name)
        assert written.isascii(), HEADERS
        assert inbound.decode_header_value(written) == name, HEADERS
        assert request_headers("2026-07-28", "tools/call", {"name": name})["mcp-name"] == written
    schema = MARKED
    assert inbound.x_mcp_header_map(schema) == {("region",): "Region", ("deep", "n"): "N"}, HEADERS
    assert parameter_headers(schema, {"region": "ä", "deep": {"n": 7}, "plain": "x"}) == {
        "Mcp-Param-Region": inbound.encode_header_value("ä"),
        "Mcp-Param-N": "7",
    }, HEADERS


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "not a token"},
        {"type": "string", "x-mcp-header": "a\r\nX-Evil: 1"},
        {"type": "string", "x-mcp-header": 5},
        {"type": "object", "x-mcp-header": "Whole"},
    ],
)
def test_a_schema_with_a_header_that_cannot_be_one_gives_none(wrong: dict[str, Any]) -> None:
    """What cannot be the name of a header is not sent as one, nor are the good ones of a tool that is in doubt."""
    good = {"type": "string", "x-mcp-header": "Region"}
    arguments = {"region": "eu", "bad": "x"}
    assert parameter_headers({"type": "object", "properties": {"region": good}}, arguments) != {}
    schema = {"type": "object", "properties": {"region": good, "bad": wrong}}
    assert parameter_headers(schema, arguments) == {}, HEADERS


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("7", "7"),
        ("-0", "-0"),
        ("1e2", "100"),
        ("1E+22", "10000000000000000000000"),
        ("1e400", "1" + "0" * 400),
        ("-25e-1", "-2.5"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("7" * 5000, "7" * 5000),
        ("100.0", "100.0"),
        ("true", "true"),
    ],
)
def test_a_number_in_a_header_is_the_one_in_the_body(value: str, header: str) -> None:
    """With every digit, and without an exponent, as servers compare it."""
    assert parameter_headers(MARKED, parse(f'{{"deep":{{"n":{value}}}}}')) == {"Mcp-Param-N": header}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (r'{"region":"x\ud83d"}', "region"),
        ('{"deep":{"n":1e401}}', "deep.n"),
        ('{"deep":{"n":1e99999999999999999999}}', "deep.n"),
    ],
)
def test_a_value_that_no_header_can_have_is_refused(arguments: str, name: str) -> None:
    """By the name of the argument, before anything is sent; so is the name of what is asked for."""
    with pytest.raises(ToolFailure, match=f"^{name}: "):
        parameter_headers(MARKED, parse(arguments))
    with pytest.raises(ToolFailure, match=r"^uri: no HTTP header"):
        request_headers("2026-07-28", "resources/read", {"uri": "x\ud83d"})


# The sessions' inner parts (sessions.py)


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (StreamableHTTPSessionManager, "_admit_session", ["self", "requestor"]),
        (
            StreamableHTTPSessionManager,
            "_serve_opening_request",
            ["self", "http_transport", "scope", "receive", "send"],
        ),
        (StreamableHTTPSessionManager, "_handle_stateful_request", ["self", "scope", "receive", "send"]),
        (StreamableHTTPSessionManager, "_discard_session", ["self", "session_id", "transport"]),
        (StreamableHTTPServerTransport, "_create_event_data", ["self", "event_message"]),
        (
            StreamableHTTPServerTransport,
            "_create_error_response",
            ["self", "error_message", "status_code", "error_code", "headers"],
        ),
        (StreamableHTTPServerTransport, "_handle_post_request", ["self", "scope", "request", "receive", "send"]),
        (StreamableHTTPServerTransport, "handle_request", ["self", "scope", "receive", "send"]),
        (StreamableHTTPServerTransport, "terminate", ["self"]),
        (StreamableHTTPServerTransport, "close_sse_stream", ["self", "request_id"]),
    ],
)
def test_what_is_overridden_has_the_same_shape(owner: type, name: str, parameters: list[str]) -> None:
    """An override with other parameters would never be called as it was meant."""
    function = getattr(owner, name, None)
    assert function is not None, f"{SESSIONS}: {owner.__name__}.{name} is gone"
    assert list(inspect.signature(function).parameters) == parameters, f"{SESSIONS}: {owner.__name__}.{name}"
    waits = {
        "_serve_opening_request",
        "_handle_stateful_request",
        "_discard_session",
        "_handle_post_request",
        "handle_request",
        "terminate",
    }
    assert inspect.iscoroutinefunction(function) == (name in waits), f"{SESSIONS}: {owner.__name__}.{name}"


def called_by(function: Any) -> set[str]:
    """The methods of its own object that a method calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "self"
    }


class Spy(StreamableHTTPSessionManager):
    """The SDK's manager with our hooks, which only take note."""

    def __init__(self, server: Server[Any]) -> None:
        super().__init__(server, session_idle_timeout=60.0, retry_interval=1000)
        self.called: list[str] = []
        self.transports: list[Noting] = []

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self.called.append("_admit_session")
        assert requestor is None
        assert self.max_sessions is None or self.max_sessions > 0
        session = Noting(f"s{len(self.transports)}", event_store=Memory(), retry_interval=1000, idle_timeout=60.0)
        self.transports.append(session)
        self._server_instances[session.mcp_session_id or ""] = session
        return session

    async def _serve_opening_request(
        self, http_transport: StreamableHTTPServerTransport, scope: Any, receive: Any, send: Any
    ) -> None:
        self.called.append("_serve_opening_request")
        assert http_transport is self.transports[-1]
        await super()._serve_opening_request(http_transport, scope, receive, send)

    async def _handle_stateful_request(self, scope: Any, receive: Any, send: Any) -> None:
        self.called.append("_handle_stateful_request")
        await super()._handle_stateful_request(scope, receive, send)


class Noting(StreamableHTTPServerTransport):
    """A transport that writes every event in its own way."""

    def _create_event_data(self, event_message: EventMessage) -> dict[str, Any]:
        data = super()._create_event_data(event_message)
        return {**data, "event": "noted"}


class Memory(EventStore):
    """Numbers what is sent, and keeps nothing."""

    def __init__(self) -> None:
        self.streams: list[tuple[str, bool]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.streams.append((stream_id, message is None))
        return f"e{len(self.streams)}"

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        return None


async def post(manager: StreamableHTTPSessionManager, body: Mapping[str, Any], **headers: str) -> tuple[int, str, str]:
    """Status, session and text of the answer to one POST."""
    sent: list[Any] = []
    bodies = [{"type": "http.request", "body": json.dumps({"jsonrpc": "2.0", **body}).encode(), "more_body": False}]
    fixed = {"content-type": "application/json", "accept": "application/json, text/event-stream", "host": "localhost"}
    named = {**fixed, **{name.replace("_", "-"): value for name, value in headers.items()}}

    async def receive() -> Any:
        if bodies:
            return bodies.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    async with asyncio.timeout(LIMIT):
        await manager.asgi_app(scope, receive, send)
    answered = dict(sent[0]["headers"])
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    return sent[0]["status"], answered.get(b"mcp-session-id", b"").decode(), text


async def test_the_manager_calls_its_inner_parts_as_we_override_them() -> None:
    """A new session is admitted and served by them, a known one is looked up in `_server_instances`, and only that.

    The transport that `_admit_session` gives is the one that serves, and its `_create_event_data` writes every event.
    """
    manager = Spy(Server[Any]("contract"))
    opening = {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    assert (manager._server_instances, manager._session_owners) == ({}, {}), SESSIONS
    async with manager.run():
        status, session, text = await post(manager, opening)
        assert (status, session) == (200, "s0"), f"{SESSIONS}: Sessions._admit_session"
        assert manager.called == ["_handle_stateful_request", "_admit_session", "_serve_opening_request"], SESSIONS
        assert "event: noted" in text, f"{SESSIONS}: _Session._create_event_data"
        assert list(manager._server_instances) == ["s0"], SESSIONS
        # A known session needs no admission; one that is not known is refused as if it did not exist.
        status, _, text = await post(
            manager, {"id": 2, "method": "ping"}, mcp_session_id="s0", mcp_protocol_version="2025-11-25"
        )
        assert status == 200
        assert '"result":{}' in text
        status, _, _ = await post(manager, {"id": 3, "method": "ping"}, mcp_session_id="none")
        assert status == 404, f"{SESSIONS}: Sessions._handle_stateful_request"
        assert manager.called[3:] == ["_handle_stateful_request"] * 2
        # A request of the modern era has no session at all.
        await post(
            manager,
            {"id": 4, "method": "server/discover", "params": modern()},
            mcp_protocol_version=eras.LATEST_MODERN,
            mcp_method="server/discover",
        )
        assert len(manager.called) == 5, f"{SESSIONS}: modern requests go past the sessions"
        # Whoever is not let in is told so.
        manager._admit_session = lambda requestor: None
        assert (await post(manager, opening))[0] == 503, f"{SESSIONS}: Sessions._admit_session"
        # A stream is named by its request's id as a text, and begins with a place that can be read on from.
        (transport,) = manager.transports
        assert isinstance(transport._event_store, Memory)
        assert transport._event_store.streams[0][0] == "1", "sdk/event_store.py"
        assert ("2", True) in transport._event_store.streams, "sdk/event_store.py: store_event without a message"
        await transport.terminate()
        assert transport.is_terminated
    assert manager._server_instances == {}, SESSIONS


def test_every_get_is_answered_through_the_parts_that_are_overridden() -> None:
    """`handle_request` is the one door, and all three ways of writing events use `_create_event_data`."""
    transport = StreamableHTTPServerTransport
    writers = {
        name
        for name, function in inspect.getmembers(transport, inspect.isfunction)
        if "_create_event_data" in called_by(function)
    }
    assert writers == {"_run_sse_writer", "_handle_get_request", "_replay_events"}, f"{SESSIONS}: _Session"
    # With a place to read on from, a GET is answered from the event store alone.
    assert "_replay_events" in called_by(transport._handle_get_request), f"{SESSIONS}: _Session._read"


def test_an_event_and_a_refusal_are_written_as_they_were() -> None:
    """An event is a dict for the SSE writer; a refusal is a response with the session's id and a JSON-RPC error."""
    transport = StreamableHTTPServerTransport("s")
    message = JSONRPCNotification(jsonrpc="2.0", method="notifications/custom", params={"n": BIG})
    event = transport._create_event_data(EventMessage(message, "e1"))
    text = event.pop("data")
    assert event == {"event": "message", "id": "e1"}, f"{SESSIONS}: _Session._create_event_data"
    assert json.loads(text) == {"jsonrpc": "2.0", "method": "notifications/custom", "params": {"n": BIG}}
    refusal = transport._create_error_response("no such place", HTTPStatus.BAD_REQUEST)
    assert refusal.status_code == 400, f"{SESSIONS}: _Session._read"
    assert refusal.headers["mcp-session-id"] == "s"
    assert json.loads(bytes(refusal.body))["error"]["message"] == "no such place"


def test_the_names_of_streams_and_headers_are_as_they_were() -> None:
    """The standing stream has a name that no request's id can be taken for by us."""
    assert streamable_http.GET_STREAM_KEY == "_GET_stream", f"{SESSIONS}: _Session._read"
    assert streamable_http.LAST_EVENT_ID_HEADER == "last-event-id", SESSIONS
    assert streamable_http.MCP_SESSION_ID_HEADER == "mcp-session-id", SESSIONS
    assert list(inspect.signature(EventStore.store_event).parameters) == ["self", "stream_id", "message"]
    assert list(inspect.signature(EventStore.replay_events_after).parameters) == [
        "self",
        "last_event_id",
        "send_callback",
    ]
    assert {"message", "event_id"} == set(inspect.signature(EventMessage).parameters), "sdk/event_store.py"
