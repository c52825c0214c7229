"""Calls of tools, and the seam around every one of them.

Whatever applies to each call stands in `CallScope`: its trace id, its span, its log line, its metrics, its record, its
place within the limits of its principal. The fast path, the full path, REST, Python and `tool_call` all go through it.
Who may call what is the `gate`'s to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar, cast

from pegboard import exactjson
from pegboard.access.limits import Limits, RateLimited, Slot
from pegboard.access.principal import Principal
from pegboard.access.rule import DISCOVERY
from pegboard.audit.audit import Audit
from pegboard.audit.composer import LONGEST_TEXT, session_digest
from pegboard.audit.ended_call import EndedCall
from pegboard.audit.outcome import ASKED, outcome_of
from pegboard.audit.record import CALL, READ
from pegboard.audit.recorder import Recorder, pack_arguments
from pegboard.audit.size import json_size
from pegboard.catalog.discovery import Discovery
from pegboard.clients.caller import Caller, acting_for
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import REST_CLIENT, Client
from pegboard.clients.sign_in_advice import SignInAdvice
from pegboard.exactjson import as_object
from pegboard.listing.loaded import LoadedTools
from pegboard.log import logger, new_trace_id, trace_id
from pegboard.metrics import Metrics
from pegboard.protocol.eras import forward_params
from pegboard.relay.input_requests import wants_input
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
from pegboard.results.caps import request_cap
from pegboard.results.results import Results
from pegboard.servers.errors import RpcError, failure_of
from pegboard.servers.message import Message, Params
from pegboard.servers.raw_call import RawCall
from pegboard.servers.requester import Requester
from pegboard.servers.server import Server
from pegboard.telemetry import is_traced, span
from pegboard.tool import RegisteredTool, RelayingTool, Tool

T = TypeVar("T")
OWN = "pegboard"
# The owner of a tool that there is not.
NOBODY = "none"


class FailedResult(dict[str, Any]):
    """The result of a static tool that failed, and the error that it stands for."""

    def __init__(self, result: Mapping[str, Any], error: ToolError) -> None:
        super().__init__(result)
        self.error = error


class CallScope:
    """What is done around one call. `owner` is the tool's server; whoever makes the call sets the `outcome`, and where
    calls are recorded (`is_recorded`) its arguments and how large its result is."""

    __slots__ = (
        *("_client", "_kind", "_metrics", "_on_end", "_recorder", "_request_id", "_span", "_started", "_token"),
        *("_traced", "arguments", "name", "outcome", "owner", "refusal", "result_bytes", "slot"),
    )

    def __init__(
        self,
        metrics: Metrics,
        client: Client,
        name: str,
        owner: str = NOBODY,
        recorder: Recorder | None = None,
        request_id: str | None = None,
        on_end: Callable[[EndedCall], None] | None = None,
        kind: str = CALL,
    ) -> None:
        self._metrics = metrics
        # What its record is about: what is only read is recorded, and counts as no call anywhere.
        self._kind = kind
        # Whoever looks on, if somebody does.
        self._on_end = on_end
        self._client = client
        self._recorder = recorder
        self._request_id = request_id
        self.name = name
        self.owner = owner
        self.outcome: str | None = None
        # Why it was not made, where the record is to say more than the answer.
        self.refusal = ""
        self.arguments: bytes | Mapping[str, Any] | None = None
        self.result_bytes = -1
        self._span = self._traced = None
        # Its place within the limits of its principal, where there are any.
        self.slot: Slot | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether there will be a record of it."""
        return self._recorder is not None

    def __enter__(self) -> CallScope:
        self._started = time.perf_counter()
        self._token = trace_id.set(new_trace_id()) if trace_id.get() is None else None
        if is_traced():
            self._span = span("tools/call", self.name, call_attributes(self._client, self._request_id))
            self._traced = self._span.__enter__()
        return self

    def count_from(self, call: RawCall) -> None:
        """This call was begun before: the fast path waited for it until it took too long."""
        self._started -= max(call.age, 0.0)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.slot is not None:
            self.slot.release()
        if self.outcome is None:
            self.outcome = "cancelled" if exc is not None and not isinstance(exc, Exception) else "failed"
        if self._span is not None and self._traced is not None:
            self._traced.set_attribute("pegboard.server", self.owner)
            self._traced.set_attribute("pegboard.trace_id", trace_id.get())
            self._traced.set_attribute("pegboard.outcome", self.outcome)
            for name, value in error_attributes(self.outcome, exc).items():
                self._traced.set_attribute(name, value)
            self._span.__exit__(kind, exc, traceback)
        if self.outcome != HANDED_OVER:
            elapsed = time.perf_counter() - self._started
            if self._kind == CALL:
                self._count(elapsed, self.outcome)
            if self._recorder is not None:
                self._record(self._recorder, elapsed, exc)
            if self._on_end is not None:
                self._on_end(self._describe(elapsed, exc))
        if self._token is not None:
            trace_id.reset(self._token)

    def _count(self, elapsed: float, outcome: str) -> None:
        self._metrics.record_call(self.owner, outcome, elapsed)
        # Asked first: where nobody reads it, a call is not to pay for its line.
        if (log := logger()).tells_calls:
            ms, principal = round(elapsed * 1000, 1), self._client.endpoint.principal
            who = {} if principal.kind == "local" else {"principal": principal.name}
            log.call("tool.called", client=self._client.name, tool=self.name, ms=ms, outcome=outcome, **who)

    def _record(self, recorder: Recorder, elapsed: float, exc: BaseException | None) -> None:
        client = self._client
        arguments, length = pack_arguments(self.arguments)
        outcome, detail = outcome_of(self.outcome or "", self.refusal, exc)
        recorder.append(
            (
                time.time_ns(),
                client,
                client.endpoint,
                self.name[:LONGEST_TEXT],
                self.owner if self.owner != NOBODY else "",
                outcome,
                elapsed,
                arguments,
                length,
                self.result_bytes,
                trace_id.get(),
                detail,
                self._kind,
            )
        )

    def _describe(self, elapsed: float, exc: BaseException | None) -> EndedCall:
        client, outcome = self._client, outcome_of(self.outcome or "", self.refusal, exc)[0]
        return EndedCall(
            time.time_ns(),
            client.principal.id,
            client.principal.name,
            f"{client.name}/{client.version}" if client.version else client.name,
            self.name[:LONGEST_TEXT],
            self.owner if self.owner not in {NOBODY, OWN} else "",
            outcome,
            elapsed,
            self.result_bytes,
            trace_id.get() or "",
        )


def call_attributes(client: Client, request_id: str | None) -> dict[str, Any]:
    """What a span says of the client that calls."""
    endpoint = client.endpoint
    transport: dict[str, Any] = {"network.transport": "pipe"} if endpoint.private else {}
    # A program's own calls come over no network.
    if not endpoint.private and (client.session is not None or client.era == "modern" or client.name == REST_CLIENT):
        transport = {"network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1"}
    found: dict[str, Any] = {
        "jsonrpc.request.id": request_id,
        "mcp.protocol.version": client.protocol_version,
        "mcp.session.id": session_digest(client.session),
        "client.address": endpoint.network,
        "pegboard.principal": "" if endpoint.principal.is_local else client.principal.id,
        "pegboard.board": endpoint.board,
    }
    return {name: value for name, value in found.items() if value} | transport


def error_attributes(outcome: str, exc: BaseException | None) -> dict[str, str]:
    """What a span says of a call that failed."""
    if isinstance(exc, RpcError):
        return {"error.type": str(exc.code), "rpc.response.status_code": str(exc.code)}
    if outcome == "error":
        return {"error.type": "tool_error"}
    return {} if exc is None else {"error.type": type(exc).__name__}


# The outcome of a call that the full path goes on with, and accounts for.
HANDED_OVER = "handed over"
# The outcome of a call that its principal has no room for now.
LIMITED = "limited"


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
        limits: Limits,
        audit: Audit,
        advice: SignInAdvice,
        results: Results,
    ) -> None:
        self._results = results
        self._servers = servers
        self._advice = advice
        self._limits = limits
        self._resolver = resolver
        self._discovery = discovery
        self._relay = relay
        self._metrics = metrics
        self._loaded = loaded
        self._audit = audit
        # Told of each call that ended, while somebody looks on.
        self.on_end: Callable[[EndedCall], None] | None = None

    def scope(self, client: Client, name: str, owner: str = NOBODY, request_id: str | None = None) -> CallScope:
        """The seam around a client's call of this tool."""
        return CallScope(self._metrics, client, name, owner, self._audit.recorder, request_id, self.on_end)

    async def call(self, name: str, params: Params | None, caller: Caller) -> Message:
        """Relay a call as it is and give the result as it is.

        Raises `UnknownTool`, the server's own `RpcError`, or `ToolFailure` for everything else.
        """
        call = self._call_once(name, params, caller)
        try:
            return await (self._insist(call) if self._audit.is_strict else call)
        except ToolFailure as exc:
            if (failure := self._advice.reword(exc, caller.client)) is exc:
                raise
            raise failure from None

    async def _call_once(self, name: str, params: Params | None, caller: Caller) -> Message:
        if (cap := request_cap(params)) is not None:
            caller = replace(caller, cap=cap)
        with self.scope(caller.client, name, request_id=caller.request_id) as scope:
            if caller.started_call is not None:
                scope.count_from(caller.started_call)
            if scope.is_recorded:
                scope.arguments = as_object((params or {}).get("arguments"))
                self._audit.check()
            tool = await self._find(name, caller, scope)
            if isinstance(tool.tool, RelayingTool):
                tool, params = await self._resolve_relayed(tool.tool, params, caller, scope)
            scope.name, scope.owner = tool.name, tool.server_name or OWN
            _check_scopes(tool, caller, scope)
            self._admit(scope, tool.server_name, tool.toolset, caller)
            self._loaded.use(caller.client.board, tool.name)
            result = await _while_let_in(self._call(tool, params, caller), caller.client.principal, scope)
            # It goes on in the next round, which is a request of its own.
            scope.outcome = ASKED if wants_input(result) else "error" if result.get("isError") is True else "ok"
            if scope.is_recorded:
                scope.result_bytes = await json_size(result)
        # What failed of our own is short, and its error is needed.
        if isinstance(result, FailedResult):
            return result
        return await self._results.fit(result, caller.client, tool, caller.cap)

    async def _insist(self, call: Awaitable[T]) -> T:
        """What comes of a call, once its record is kept; `AuditUnavailable` if that cannot be."""
        try:
            outcome = await call
        except Exception:
            await self._audit.settle()
            raise
        await self._audit.settle()
        return outcome

    async def _find(self, name: str, caller: Caller, scope: CallScope) -> RegisteredTool:
        try:
            return await self._resolver.find(name, caller.client.filter)
        except UnknownTool:
            # Its answer is the same, whether there is such a tool or not; the record is for whoever made the rule.
            tool, access = self._resolver.lookup(name), caller.client.filter.access
            # What only somebody else's sign-in shows is hidden by no rule.
            sight = None if access is None else access.sight
            is_there = tool is not None and (sight is None or sight.shows(tool))
            scope.refusal = "rule" if is_there else "unknown_tool"
            raise

    async def call_for_python(
        self, name: str, arguments: Mapping[str, Any] | None = None, caller: Caller | None = None
    ) -> ToolResult[Message]:
        """Call a tool from Python; never raises."""
        return await as_result(self._call_for_python(name, arguments, caller or Caller()))

    async def run_own(self, tool: Tool, arguments: Mapping[str, Any], caller: Caller, *, is_read: bool = False) -> Any:
        """What a tool of Pegboard's own answers, for an entrance that wants the data alone; `ToolFailure` for the
        rest. Where it `is_read`, by a GET, that is no call: it has a record of its own kind, and counts nowhere."""
        scope = self._read_scope(caller.client, tool.name) if is_read else self.scope(caller.client, tool.name, OWN)
        answer = self._run_own(tool, arguments, caller, scope)
        return await (self._insist(answer) if self._audit.is_strict else answer)

    def _read_scope(self, client: Client, name: str) -> CallScope:
        return CallScope(self._metrics, client, name, OWN, self._audit.recorder, kind=READ)

    async def _run_own(self, tool: Tool, arguments: Mapping[str, Any], caller: Caller, scope: CallScope) -> Any:
        with scope, acting_for(caller):
            if scope.is_recorded:
                scope.arguments = dict(arguments)
                self._audit.check()
            _check_scopes(tool.name, caller, scope)
            self._admit(scope, None, tool.category, caller)
            answer = await tool.call_for_data(await tool.accept(arguments))
            scope.outcome = "ok"
            if scope.is_recorded:
                scope.result_bytes = await json_size(answer)
            return answer

    def _admit(self, scope: CallScope, server: str | None, toolset: str | None, caller: Caller) -> None:
        """Take the place of a call within the limits of its principal; `RateLimited` where there is none.

        What was begun on the fast path has its place already. To look for tools is no call of one.
        """
        if caller.started_call is not None:
            scope.slot = caller.started_call.take_slot()
        elif toolset != DISCOVERY:
            try:
                scope.slot = self._limits.admit(caller.client.principal, server)
            except RateLimited:
                scope.outcome = LIMITED
                raise

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
        with contextlib.ExitStack() as sending:
            if arguments := as_object(forwarded.get("arguments")):
                schema = tool.definition["inputSchema"]
                filled = await self._results.fill(arguments, schema, caller.client, server.spec, sending)
                forwarded["arguments"] = filled
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
        self, tool: RelayingTool, params: Params | None, caller: Caller, scope: CallScope
    ) -> tuple[RegisteredTool, dict[str, Any]]:
        """The other tool that a call is for; what is wrong with it is said to the model, not to its client."""
        arguments = as_object((params or {}).get("arguments")) or {}
        name, inner = tool.target(await tool.accept(arguments))
        scope.name, scope.arguments = name, inner
        try:
            target = await self._find(name, caller, scope)
        except UnknownTool as exc:
            raise ToolFailure(exc.error.code, str(exc), retryable=False) from None
        return target, {**(params or {}), "name": name, "arguments": inner}

    async def _call_for_python(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Message:
        params = {"name": name, "arguments": _arguments(name, arguments)}
        try:
            return await self.call(name, params, caller)
        except RpcError as exc:
            raise failure_of(exc, name) from None


async def _while_let_in(call: Awaitable[Message], principal: Principal, scope: CallScope) -> Message:
    """What comes of a call, unless its principal is revoked before that. A session's call is none of the request's that
    it came with, and would outlive it."""
    if principal.is_local:
        return await call
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

    def end(successor: Principal | None) -> None:
        with contextlib.suppress(RuntimeError):
            if successor is None:
                limit.reschedule(loop.time())

    try:
        async with limit:
            forget = principal.on_end(end)
            try:
                return await call
            finally:
                forget()
    except TimeoutError:
        if limit.expired():
            scope.outcome = "cancelled"
            raise unavailable("the call was cancelled: its token was removed or is not valid any more") from None
        raise


def _check_scopes(tool: RegisteredTool | str, caller: Caller, scope: CallScope) -> None:
    """The last word on scopes; over HTTP most is refused before, in the words of HTTP."""
    if missing := caller.client.missing_scopes(tool):
        scope.refusal = "insufficient_scope"
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
