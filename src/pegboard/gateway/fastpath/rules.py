"""The fast path: plain requests of known clients, answered from bytes to bytes. This is where it is decided.

A request takes it if nothing about it needs the protocol's machinery: a `tools/call` without a progress token, input
responses or arguments in headers, to a connected server that sends nothing before its result; a `tools/list` without a
cursor; a `ping` of the handshake era. Everything else is declined, with one of the reasons of `Decline`, and takes the
full path, which has the same outcome and the right words for every fault. A call that turns out not to be plain is
handed over to the full path as it is.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from pegboard import exactjson
from pegboard.access.limits import RateLimited
from pegboard.audit.audit import Audit
from pegboard.audit.writer import AuditUnavailable
from pegboard.board import Board
from pegboard.calls import HANDED_OVER, LIMITED
from pegboard.catalog.starting import STARTING_KEY
from pegboard.clients.cache import MAX_META
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.mcp import McpHandlers, error_result
from pegboard.log import logger
from pegboard.pace import Pace
from pegboard.protocol import raw_json
from pegboard.protocol.codes import INTERNAL_ERROR
from pegboard.protocol.eras import CAP_KEY, HOP_KEYS, RELATED_TASK_KEY, SERVER_INFO_KEY
from pegboard.protocol.members import meta_problem
from pegboard.protocol.message import COULD_NOT_ANSWER
from pegboard.protocol.portions import portions
from pegboard.protocol.raw_json import CallParams, Part, Request
from pegboard.protocol.results import RawResult, result_for, shape_raw
from pegboard.results.handles import may_have_handle, names_result
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message
from pegboard.servers.raw_call import CallCancelled, RawCall, RawRequest
from pegboard.telemetry import is_traced, request_span
from pegboard.tool import RegisteredTool, RelayingTool, Tool
from pegboard.version import SERVER_INFO

# A call that takes longer than this is handed over: the full path notices a client that goes away, and keeps an
# answer for one that comes back.
PATIENCE = 0.5
_SERVER_INFO = exactjson.dump(dict(SERVER_INFO))
_HANDSHAKE_LIST = (b'{"tools":', b"}")
_MODERN_LIST = (
    b'{"tools":',
    b',"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"%b":%b}}'
    % (SERVER_INFO_KEY.encode(), _SERVER_INFO),
)
_CANCELLED = b"notifications/cancelled"
# An answer in pieces, as they are to be written one after another: a text that is kept is written, not copied.
Answer = list[Part]
# What comes of a request that was begun: its answer, a call that goes on the full path, or `None` to begin there.
Begun = Awaitable["Answer | RawCall | None"]
_numbers = itertools.count(1)


def is_open() -> bool:
    """Whether there is a fast path at all: to find out whether it is to blame, it can be closed."""
    return os.environ.get("PEGBOARD_FAST_PATH", "on") != "off"


class FastPath:
    """Answers what is plain."""

    def __init__(self, board: Board, front: McpHandlers) -> None:
        self._board = board
        self._front = front
        # Calls by the conversation they are of and the id that they have there, for whoever cancels one; no call is
        # kept for its sake.
        self._calls: WeakValueDictionary[tuple[object, bytes], RawCall] = WeakValueDictionary()

    def begin(self, client: Client, request: Request) -> Begun | Decline:
        """Begin with a request; what comes of it raises `CallCancelled` if the client cancels it."""
        begun: Begun | Decline = Decline.METHOD
        match request.method:
            case "tools/call":
                begun = self._call(client, request)
            case "tools/list":
                begun = self._list(client, request)
            case "ping" if client.era == "handshake":
                plain = raw_json.list_params(request.params) is not None
                begun = _at_once(answer(request, b"{}")) if plain else Decline.PARAMS
            case _:
                pass
        return begun if isinstance(begun, Decline) else _safely(request, begun)

    def cancel(self, conversation: object, request_id: bytes) -> bool:
        """Cancel a call for its client; false if none of that id is under way here."""
        call = self._calls.get((conversation, request_id))
        if call is not None:
            call.cancel()
        return call is not None

    def count(self, reason: Decline) -> None:
        """A request takes the full path for this reason."""
        self._board.metrics.declined[reason] += 1

    def resend_list_changed(self, newcomer: Client) -> None:
        """A client can be notified from now on; if its list is old by now, it has to learn that."""
        if newcomer.first_list is not None:
            self._board.lists.tools.record_served(*newcomer.first_list)
            self._board.lists.tools.schedule_check()

    def _list(self, client: Client, request: Request) -> Begun | Decline:
        params = raw_json.list_params(request.params)
        if params is None:
            return Decline.PARAMS
        if client.narrows or (client.era == "handshake" and isinstance(params.meta, raw_json.Raw)):
            return Decline.META
        return self._answer_list(client, request)

    async def _answer_list(self, client: Client, request: Request) -> Answer:
        view = await self._board.list_tools(client.list_key, is_check=client.is_check)
        if client.is_new:
            client.first_list = (client.list_key, view)
        is_modern = client.era == "modern"
        begin, end = _MODERN_LIST if is_modern else _HANDSHAKE_LIST
        if starting := self._board.list_starting(client.filter):
            end = _list_end(is_modern, starting)
        return answer(request, begin, *(view.definition_pieces if is_modern else view.handshake_pieces), end)

    def _call(self, client: Client, request: Request) -> Begun | Decline:
        params = raw_json.call_params(request.params)
        if params is None:
            return Decline.PARAMS
        tool = self._board.gate.tool(params.name, client.filter)
        if tool is None:
            return Decline.TOOL
        access = client.filter.access
        if access is not None and access.needs_scopes and client.missing_scopes(tool):
            return Decline.SCOPES
        meta = client.forwarded_meta if client.era == "modern" else _forward_meta(params.meta)
        if meta is _NOT_PLAIN:
            return Decline.META
        if tool.tool is not None:
            return self._answer_static(client, request, params) if _is_quick(tool.tool) else Decline.OWN_TOOL
        return self._relay(client, request, params, tool, meta)

    async def _answer_static(self, client: Client, request: Request, params: CallParams) -> Answer | None:
        asked: Message = {"name": params.name}
        try:
            if isinstance(params.arguments, raw_json.Raw):
                asked["arguments"] = exactjson.parse(bytes(params.arguments))
            result = await self._front.call_tool(asked, Caller(client))
        except (RpcError, exactjson.NotJson):
            # Nothing was done yet: the full path has the words for what is wrong.
            return None
        return answer(request, exactjson.dump(result_for(client.era, result, server_info=SERVER_INFO)))

    def _relay(
        self, client: Client, request: Request, params: CallParams, tool: RegisteredTool, meta: bytes | None
    ) -> Begun | Decline:
        """Send a call on its way to the server."""
        if tool.marked:
            return Decline.HEADER_ARGUMENTS
        if _may_have_handle(params) and self._has_handle(params, tool):
            return Decline.RESULT_ARGUMENTS
        if self._board.audit.is_strict and self._board.audit.problem is not None:
            return Decline.AUDIT
        access = client.filter.access
        if access is None or not access.limits_calls:
            call = self._start_call(client, params, tool, meta)
        else:
            try:
                call = self._start_limited(client, params, tool, meta)
            except RateLimited as exc:
                return self._refuse(client, request, params, tool, exc)
        if call is None:
            return Decline.SERVER
        if client.board in self._board.loaded.boards:
            self._board.loaded.use(client.board, tool.name)
        place = (client.conversation, bytes(request.id))
        if place[0] is not None:
            # At once: on a pipe, its cancellation may be the very next line.
            self._calls[place] = call
        begun = self._answer_call(call, place, client, request, params, tool)
        if is_traced():
            begun = _trace(begun, client, request, params, tool.name)
        return _insist(self._board.audit, begun, client, request) if self._board.audit.is_strict else begun

    def _has_handle(self, params: CallParams, tool: RegisteredTool) -> bool:
        """Whether a kept result may be among the arguments; for a server that takes none, only as they are mostly
        written: there it is help, and not a promise."""
        server = self._board.servers.get(tool.server_name or "")
        if server is None or not isinstance(params.arguments, raw_json.Raw):
            return False
        arguments = bytes(params.arguments)
        return may_have_handle(arguments) if server.spec.result_handles else names_result(arguments)

    def _start_limited(
        self, client: Client, params: CallParams, tool: RegisteredTool, meta: bytes | None
    ) -> RawCall | None:
        """The same for a principal with limits; raises `RateLimited`."""
        slot = self._board.limits.admit(client.principal, tool.server_name)
        call: RawCall | None = None
        try:
            call = self._start_call(client, params, tool, meta)
        finally:
            if slot is not None:
                # The full path takes a place of its own for a call that was not begun here.
                slot.give_back() if call is None else call.hold(slot)
        return call

    def _refuse(
        self, client: Client, request: Request, params: CallParams, tool: RegisteredTool, refused: RateLimited
    ) -> Begun:
        """The answer to a call that its principal has no room for now."""
        with self._board.calls.scope(client, tool.name, tool.server_name or "") as scope:
            if scope.is_recorded and isinstance(params.arguments, raw_json.Raw):
                scope.arguments = bytes(params.arguments)
            scope.outcome, scope.refusal = LIMITED, "limit"
        result = result_for(client.era, error_result(refused.error), server_info=SERVER_INFO)
        return _at_once(answer(request, exactjson.dump(result)))

    async def _answer_call(
        self,
        call: RawCall,
        place: tuple[object, bytes],
        client: Client,
        request: Request,
        params: CallParams,
        tool: RegisteredTool,
    ) -> Answer | RawCall | None:
        owner, principal = tool.server_name or "", client.endpoint.principal
        # Decoded for whoever traces alone.
        request_id = _plain_id(request) if is_traced() else None
        with self._board.calls.scope(client, tool.name, owner, request_id) as scope:
            if scope.is_recorded and isinstance(params.arguments, raw_json.Raw):
                scope.arguments = bytes(params.arguments)
            try:
                result = await self._result(call, client, owner)
            except CallCancelled:
                scope.outcome = "cancelled"
                call.cancel_upstream("cancelled by the client")
                raise
            finally:
                self._calls.pop(place, None)
            if result is None and principal.is_revoked:
                # The full path refuses it, and has not heard of the call.
                scope.outcome = "cancelled"
                call.cancel_upstream("cancelled by the client")
                return call
            if result is None:
                scope.outcome = HANDED_OVER
                call.release(lambda: self._record_orphan(client, tool, call, scope.arguments))
                return call
            scope.outcome = "error" if result.is_error else "ok"
            size = sum(map(len, result.pieces))
            if scope.is_recorded:
                scope.result_bytes = size
        if size > self._board.results.caps.least and (fitted := await self._fit(result, client, tool)) is not None:
            return answer(request, fitted)
        return answer(request, *result.pieces)

    async def _fit(self, result: RawResult, client: Client, tool: RegisteredTool) -> bytes | None:
        """A result that fits the cap of its call instead of one that may not; `None` if it does."""
        results = self._board.results
        if not results.cap(client, tool):
            return None
        fitted = await results.fit_raw(result.pieces, client, tool)
        return None if fitted is None else await asyncio.to_thread(exactjson.dump, fitted)

    def _record_orphan(
        self, client: Client, tool: RegisteredTool, call: RawCall, arguments: bytes | Mapping[str, Any] | None
    ) -> None:
        """A call that nobody went on with is accounted for, too: its server may have done what it was asked to."""
        with self._board.calls.scope(client, tool.name, tool.server_name or "") as scope:
            scope.count_from(call)
            scope.arguments, scope.outcome = arguments, "cancelled"

    def _start_call(
        self, client: Client, params: CallParams, tool: RegisteredTool, meta: bytes | None
    ) -> RawCall | None:
        name = tool.server_name or ""
        server = self._board.servers.get(name)
        if server is None:
            return None
        self._board.discovery.refresh_if_stale(name)
        client_key = client.session or f"plain-{next(_numbers)}"
        is_handshake = client.era == "handshake"
        call = RawCall(
            client_key,
            client.principal_key or client_key,
            patience=PATIENCE,
            hears_log=is_handshake,
            principal_id=client.endpoint.principal.id,
        )
        arguments = bytes(params.arguments) if isinstance(params.arguments, raw_json.Raw) else None
        level = self._board.relay.sessions.level_of(client) if is_handshake else None
        # A handshake client that never set a level is sent what a server would send by itself.
        heard = level or "info" if is_handshake else None
        asked = RawRequest(tool.original_name, arguments, meta, client.capabilities_json, heard)
        return call if server.start_call(client.session, call, asked, level) else None

    async def _result(self, call: RawCall, client: Client, server: str) -> RawResult | None:
        """The result as the client's era wants it, in pieces; `None` to hand the call over."""
        try:
            result = await call.result()
        except CallCancelled:
            raise
        except Exception:
            if call.is_cancelled:
                raise CallCancelled from None
            return None
        shaped = shape_raw(client.era, result, _SERVER_INFO) if isinstance(result, (bytes, memoryview)) else None
        if shaped is None or not isinstance(result, (bytes, memoryview)):
            return None
        if shaped.has_task or (_refers(result) if isinstance(result, bytes) else await _refers_somewhere(result)):
            named = await self._name_references(client, server, bytes(result))
            if named is not _SAME:
                shaped = shape_raw(client.era, named, _SERVER_INFO) if named is not None else None
            if shaped is None:
                return None
        call.end()
        return shaped

    async def _name_references(self, client: Client, server: str, result: bytes) -> bytes | None:
        """A result that refers to resources or tasks, with resources named as clients have to; `_SAME` if none has
        another name, `None` if it cannot be read, which the full path has words for."""
        try:
            read = exactjson.parse_object(result)
        except exactjson.NotJson:
            return None
        named = await self._board.relay.name_references(server, read, Caller(client))
        return _SAME if named is read else exactjson.dump(named)


async def _insist(audit: Audit, begun: Begun, client: Client, request: Request) -> Answer | RawCall | None:
    """What comes of a call, once its record is kept."""
    outcome = await begun
    if isinstance(outcome, list):
        try:
            await audit.settle()
        except AuditUnavailable as exc:
            result = result_for(client.era, error_result(exc.error), server_info=SERVER_INFO)
            return answer(request, exactjson.dump(result))
    return outcome


async def _trace(
    begun: Begun, client: Client, request: Request, params: CallParams, tool: str
) -> Answer | RawCall | None:
    """What comes of a call, with a span for the client's request around it, as the SDK has one on the full path."""
    meta = exactjson.parse_object(bytes(params.meta)) if isinstance(params.meta, raw_json.Raw) else None
    attributes = {"jsonrpc.request.id": _plain_id(request), "mcp.protocol.version": client.protocol_version}
    with request_span("tools/call", tool, attributes, meta):
        return await begun


def _plain_id(request: Request) -> str:
    return str(exactjson.parse(bytes(request.id)))


def _is_quick(tool: Tool) -> bool:
    """Whether a tool of our own is plain: one that takes its time could not be cancelled here, and one that stands for
    another is as plain as that."""
    return tool.quick and not isinstance(tool, RelayingTool)


def _may_have_handle(params: CallParams) -> bool:
    """Whether the arguments have a sign that a handle is never without. Most have none, and every call asks."""
    if not isinstance(params.arguments, raw_json.Raw):
        return False
    arguments = bytes(params.arguments)
    return b"$" in arguments or b"\\u00" in arguments


_SAME = b"the same"


def _refers(text: bytes) -> bool:
    """Whether a result may speak of a resource, which clients know by a name of ours."""
    return b'"resource' in text or (b"\\" in text and b"\\u00" in text)


async def _refers_somewhere(text: memoryview) -> bool:
    """The same of a large one, in slices."""
    pace = Pace()
    for portion in portions(text, len(b'"resource')):
        if _refers(portion):
            return True
        if pace.is_over:
            await pace.rest()
    return False


def _list_end(is_modern: bool, starting: list[str]) -> bytes:
    """The end of a list that names the servers whose tools are not in it yet."""
    named = b'"%b":%b' % (STARTING_KEY.encode(), exactjson.dump(starting))
    return _MODERN_LIST[1].replace(b'"_meta":{', b'"_meta":{%b,' % named) if is_modern else b',"_meta":{%b}}' % named


_NOT_PLAIN = b"not plain"
# Members of `_meta` that the full path has to look at.
_NO_PLAIN_META = frozenset({"progressToken", RELATED_TASK_KEY, CAP_KEY})


@lru_cache(maxsize=256)
def _keep_meta(meta: bytes) -> bytes | None:
    """A handshake client's `_meta` for the next hop."""
    given = raw_json.members(meta)
    if given is None or not _NO_PLAIN_META.isdisjoint(given) or meta_problem(given) is not None:
        return _NOT_PLAIN
    kept = {name: value for name, value in given.items() if name not in HOP_KEYS}
    # An empty one that the client wrote stays; one that had nothing but keys of this hop goes with them.
    return raw_json.join(kept) if kept or not given else None


def _forward_meta(meta: object) -> bytes | None:
    if not isinstance(meta, raw_json.Raw):
        return None
    text = bytes(meta)
    return _keep_meta(text) if len(text) <= MAX_META else _NOT_PLAIN


def cancelled_id(text: bytes) -> bytes | None:
    """The id of the call that a notification cancels, if that is what it is."""
    if _CANCELLED not in text:
        return None
    message = raw_json.members(text) or {}
    if message.get("method") != b'"%b"' % _CANCELLED or "id" in message:
        return None
    return (raw_json.members(message.get("params", b"")) or {}).get("requestId")


async def _safely(request: Request, begun: Begun) -> Answer | RawCall | None:
    """What comes of a request; a fault of our own is the log's business, not the client's."""
    try:
        return await begun
    except CallCancelled:
        raise
    except Exception as exc:
        logger().error("request.failed", method=request.method, error=f"{type(exc).__name__}: {exc}"[:300])
        return refusal(request, INTERNAL_ERROR, COULD_NOT_ANSWER)


async def _at_once(answer: Answer) -> Answer:
    return answer


def answer(request: Request, *parts: Part) -> Answer:
    """The answer to a request, with a result of these pieces."""
    return [b'{"jsonrpc":"2.0","id":', bytes(request.id), b',"result":', *parts, b"}"]


def refusal(request: Request, code: int, message: str) -> Answer:
    """The answer to a request that comes to nothing."""
    error = exactjson.dump({"code": code, "message": message})
    return [b'{"jsonrpc":"2.0","id":', bytes(request.id), b',"error":', error, b"}"]
