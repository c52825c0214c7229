"""Calls of tools, and the seam around every one of them.

Whatever applies to each call stands in `CallScope`: its trace id, its span, its log line, its metrics. The fast path,
the full path, REST, Python and `tool_call` all go through it. Who may call what is the `gate`'s to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

from pegboard import exactjson
from pegboard.catalog.discovery import Discovery
from pegboard.clients.caller import Caller, acting_for
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.exactjson import as_object
from pegboard.listing.loaded import LoadedTools
from pegboard.log import logger, new_trace_id, trace_id
from pegboard.metrics import Metrics
from pegboard.protocol.eras import forward_params
from pegboard.relay.relay import Relay
from pegboard.resolver import ToolResolver, UnknownTool
from pegboard.result import (
    Forbidden,
    ToolError,
    ToolErrorCode,
    ToolFailure,
    ToolResult,
    as_result,
    invalid,
    unavailable,
)
from pegboard.servers.errors import RpcError, failure_of
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import Requester
from pegboard.servers.server import Server
from pegboard.telemetry import is_traced, span
from pegboard.tool import RegisteredTool, RelayingTool, Tool

OWN = "pegboard"


class FailedResult(dict[str, Any]):
    """The result of a static tool that failed, and the error that it stands for."""

    def __init__(self, result: Mapping[str, Any], error: ToolError) -> None:
        super().__init__(result)
        self.error = error


class CallScope:
    """What is done around one call. `owner` is the tool's server; whoever makes the call sets the `outcome`."""

    __slots__ = ("_client", "_metrics", "_span", "_started", "_token", "_traced", "name", "outcome", "owner")

    def __init__(self, metrics: Metrics, client: Client, name: str, owner: str = "none") -> None:
        self._metrics = metrics
        self._client = client
        self.name = name
        self.owner = owner
        self.outcome: str | None = None
        self._span = self._traced = None

    def __enter__(self) -> CallScope:
        self._started = time.perf_counter()
        self._token = trace_id.set(new_trace_id()) if trace_id.get() is None else None
        if is_traced():
            self._span = span("tools/call", self.name)
            self._traced = self._span.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.outcome is None:
            self.outcome = "cancelled" if exc is not None and not isinstance(exc, Exception) else "failed"
        if self._span is not None and self._traced is not None:
            self._traced.set_attribute("pegboard.server", self.owner)
            self._traced.set_attribute("pegboard.trace_id", trace_id.get())
            self._traced.set_attribute("pegboard.outcome", self.outcome)
            self._span.__exit__(kind, exc, traceback)
        if self.outcome != HANDED_OVER:
            elapsed = time.perf_counter() - self._started
            self._metrics.record_call(self.owner, self.outcome, elapsed)
            # Asked first: where nobody reads it, a call is not to pay for its line.
            if (log := logger()).tells_calls:
                ms = round(elapsed * 1000, 1)
                log.call("tool.called", client=self._client.name, tool=self.name, ms=ms, outcome=self.outcome)
        if self._token is not None:
            trace_id.reset(self._token)


# The outcome of a call that the full path goes on with, and accounts for.
HANDED_OVER = "handed over"


class Calls:
    """Calls tools: of servers, of Pegboard's own."""

    def __init__(
        self,
        servers: Callable[[], Mapping[str, Server]],
        resolver: ToolResolver,
        discovery: Discovery,
        relay: Relay,
        metrics: Metrics,
        loaded: LoadedTools,
    ) -> None:
        self._servers = servers
        self._resolver = resolver
        self._discovery = discovery
        self._relay = relay
        self._metrics = metrics
        self._loaded = loaded

    def scope(self, client: Client, name: str, owner: str = "none") -> CallScope:
        """The seam around a client's call of this tool."""
        return CallScope(self._metrics, client, name, owner)

    async def call(self, name: str, params: Params | None, caller: Caller) -> Message:
        """Relay a call as it is and give the result as it is.

        Raises `UnknownTool`, the server's own `RpcError`, or `ToolFailure` for everything else.
        """
        with self.scope(caller.client, name) as scope:
            tool = await self._resolver.find(name, caller.client.filter)
            if isinstance(tool.tool, RelayingTool):
                tool, params = await self._resolve_relayed(tool.tool, params, caller)
            scope.name, scope.owner = tool.name, tool.server_name or OWN
            _check_scopes(tool, caller)
            self._loaded.use(caller.client.board, tool.name)
            result = await self._call(tool, params, caller)
            scope.outcome = "error" if result.get("isError") is True else "ok"
            return result

    async def call_for_python(
        self, name: str, arguments: Mapping[str, Any] | None = None, caller: Caller | None = None
    ) -> ToolResult[Message]:
        """Call a tool from Python; never raises."""
        return await as_result(self._call_for_python(name, arguments, caller or Caller()))

    async def run_own(self, tool: Tool, arguments: Mapping[str, Any], caller: Caller) -> Any:
        """What a tool of Pegboard's own answers, for an entrance that wants the data alone; `ToolFailure` for the
        rest."""
        with self.scope(caller.client, tool.name, OWN) as scope, acting_for(caller):
            _check_scopes(tool.name, caller)
            answer = await tool.call_for_data(await tool.accept(arguments))
            scope.outcome = "ok"
            return answer

    async def _call(self, tool: RegisteredTool, params: Params | None, caller: Caller) -> Message:
        if tool.tool is not None:
            return await self._call_static(tool.tool, params, caller)
        assert tool.server_name is not None
        server = self._servers().get(tool.server_name)
        if server is None:
            raise unavailable(f"server {tool.server_name} was removed from the config", retryable=False)
        self._discovery.refresh_if_stale(server.name)
        forwarded = forward_params(params)
        forwarded["name"] = tool.original_name
        result = await self._relay.send(
            server,
            "tools/call",
            forwarded,
            caller,
            subject=f"tools/call {tool.original_name}",
            input_schema=tool.definition["inputSchema"] if tool.marked else None,
        )
        return await self._relay.name_references(server.name, result, caller)

    async def _call_static(self, tool: Tool, params: Params | None, caller: Caller) -> Message:
        if not tool.asks or caller.ask is not None or caller.client.era == "handshake":
            return await _invoke(tool, params, caller)

        async def start(requester: Requester, _: OnProgress | None) -> Message:
            return await _invoke(tool, params, replace(caller, ask=requester.on_request))

        return await self._relay.parked.call("tools/call", params or {}, caller, start)

    async def _resolve_relayed(
        self, tool: RelayingTool, params: Params | None, caller: Caller
    ) -> tuple[RegisteredTool, dict[str, Any]]:
        """The other tool that a call is for; what is wrong with it is said to the model, not to its client."""
        arguments = as_object((params or {}).get("arguments")) or {}
        name, inner = tool.target(await tool.accept(arguments))
        try:
            target = await self._resolver.find(name, caller.client.filter)
        except UnknownTool as exc:
            raise ToolFailure(exc.error.code, str(exc), retryable=False) from None
        return target, {**(params or {}), "name": name, "arguments": inner}

    async def _call_for_python(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Message:
        params = {"name": name, "arguments": _arguments(name, arguments)}
        try:
            return await self.call(name, params, caller)
        except RpcError as exc:
            raise failure_of(exc, name) from None


def _check_scopes(tool: RegisteredTool | str, caller: Caller) -> None:
    """The last word on scopes; over HTTP most is refused before, in the words of HTTP."""
    if missing := caller.client.missing_scopes(tool):
        name = tool if isinstance(tool, str) else tool.name
        raise Forbidden(f"{name} needs a token with these scopes: {' '.join(sorted(missing))}")


async def _invoke(tool: Tool, params: Params | None, caller: Caller) -> Message:
    with acting_for(caller):
        answer = await tool.invoke(as_object((params or {}).get("arguments")))
    result: Message = {"content": [{"type": "text", "text": part.value} for part in answer.content]}
    if answer.data is not None:
        result["structuredContent"] = dict(answer.data)
    result["isError"] = answer.is_error
    if not answer.is_error:
        return result
    text = "".join(part.value for part in answer.content)
    return FailedResult(result, answer.error or ToolError(ToolErrorCode.EXECUTION_FAILED, text))


def _arguments(name: object, arguments: object) -> dict[str, Any]:
    """The arguments that a program gives to a tool, if they can be sent to one."""
    if not isinstance(name, str):
        raise invalid(f"a tool's name must be a text, found {type(name).__name__}")
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise invalid(f"the arguments must be an object, found {type(arguments).__name__}")
    try:
        return exactjson.exact(dict(cast("Mapping[str, Any]", arguments)))
    except exactjson.NotJson as exc:
        raise invalid(f"the arguments are not JSON: {exc}") from None
