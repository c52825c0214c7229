"""Which protocol eras the fixture serves, and how it turns the other one away over HTTP and over stdio."""

import json
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_on_request, serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER, InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from conformance.state import FixtureState


class Era(StrEnum):
    BOTH = "both"
    HANDSHAKE = "handshake"
    MODERN = "modern"


def _bad_request(request_id: Any, code: int, message: str, data: Any = None) -> Response:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, HTTPStatus.BAD_REQUEST)


def _unsupported_version_data(requested: str) -> dict[str, Any]:
    data = types.UnsupportedProtocolVersionErrorData(supported=list(MODERN_PROTOCOL_VERSIONS), requested=requested)
    return data.model_dump(mode="json")


class HandshakeOnly:
    """A server from before the modern era: a version it never heard of is a bad request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Headers(scope=scope).get(MCP_PROTOCOL_VERSION_HEADER)
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
            return
        supported = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
        message = f"Bad Request: Unsupported protocol version: {version}. Supported versions: {supported}"
        await _bad_request(None, types.INVALID_REQUEST, message)(scope, receive, send)


class ModernOnly:
    """A server that dropped the handshake: only requests that name a version of their own get through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Headers(scope=scope).get(MCP_PROTOCOL_VERSION_HEADER)
        # Versions unknown to both eras go on to the SDK, which names the supported ones.
        app = _refuse_handshake if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS else self._app
        await app(scope, receive, send)


async def _refuse_handshake(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    if request.method != "POST":
        refusal = Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
    else:
        refusal = _handshake_refusal(await request.body(), request.headers.get(MCP_PROTOCOL_VERSION_HEADER))
    await refusal(scope, receive, send)


def _handshake_refusal(body: bytes, version_header: str | None) -> Response:
    try:
        message = json.loads(body)
    except ValueError:
        return _bad_request(None, types.PARSE_ERROR, "Parse error")
    if not isinstance(message, dict):
        return _bad_request(None, types.INVALID_REQUEST, "Body must be a single JSON-RPC message")
    request_id, params = message.get("id"), message.get("params")
    if message.get("method") != "initialize" and version_header is None:
        return _bad_request(request_id, types.HEADER_MISMATCH, f"{MCP_PROTOCOL_VERSION_HEADER} header is missing")
    proposed = params.get("protocolVersion") if isinstance(params, dict) else None
    data = _unsupported_version_data(str(proposed or version_header or ""))
    return _bad_request(request_id, types.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def only(era: Era, app: ASGIApp) -> ASGIApp:
    match era:
        case Era.BOTH:
            return app
        case Era.HANDSHAKE:
            return HandshakeOnly(app)
        case Era.MODERN:
            return ModernOnly(app)


async def serve_stdio(server: Server[FixtureState], state: FixtureState, era: Era) -> None:
    async with stdio_server() as (read, write):
        match era:
            case Era.BOTH:
                await server.run(read, write, server.create_initialization_options())
            case Era.HANDSHAKE:
                await serve_loop(server, read, write, lifespan_state=state)
            case Era.MODERN:
                await _serve_modern(server, state, JSONRPCDispatcher(read, write))


async def _serve_modern(
    server: Server[FixtureState], state: FixtureState, dispatcher: JSONRPCDispatcher[TransportContext]
) -> None:
    # Not the SDK's own loop: a client that opens with `initialize` would tie that one to the handshake era.
    serve = modern_on_request(server, state)

    async def on_request(
        dctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if method == "initialize":
            data = _unsupported_version_data(str((params or {}).get("protocolVersion", "")))
            raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "The initialize handshake is not accepted", data)
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        return await serve(dctx, method, params)

    async def on_notify(
        _dctx: DispatchContext[TransportContext], _method: str, _params: Mapping[str, Any] | None
    ) -> None:
        """Nothing here depends on a notification; cancellation is the dispatcher's own work."""

    await dispatcher.run(on_request, on_notify)
