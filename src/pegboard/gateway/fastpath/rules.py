"""The fast path: plain requests of known clients, answered from bytes to bytes. This is where it is decided.

A request takes it if nothing about it needs the protocol's machinery: a `tools/call` without a progress token, a
round or a header of its own, of a tool whose server is connected and does not talk while it works; a `tools/list`
of one page; a `ping` of the handshake era. Everything else takes the full path, which has the same outcome and the
right words for every fault. A call that turns out not to be plain is handed over to the full path as it is.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from functools import lru_cache
from weakref import WeakValueDictionary

from pegboard import exactjson
from pegboard.board import Board
from pegboard.gateway.fastpath.known import MAX_META, Known
from pegboard.gateway.mcp import McpFront
from pegboard.listing.view import ListKey
from pegboard.log import logger, new_trace_id, trace_id
from pegboard.pace import Pace
from pegboard.protocol import raw_json
from pegboard.protocol.client import COULD_NOT_ANSWER, INTERNAL_ERROR
from pegboard.protocol.eras import HOP_KEYS, RELATED_TASK_KEY, SERVER_INFO_KEY, Era, result_for
from pegboard.protocol.members import meta_problem
from pegboard.protocol.portions import portions
from pegboard.protocol.raw_json import CallParams, Part, Request
from pegboard.relay.caller import Caller
from pegboard.servers.jsonrpc import Message, RpcError
from pegboard.servers.raw_call import CallCancelled, RawCall, RawRequest
from pegboard.telemetry import is_traced
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
_numbers = itertools.count(1)


def is_open() -> bool:
    """Whether there is a fast path at all: to find out whether it is to blame, it can be closed."""
    return os.environ.get("PEGBOARD_FAST_PATH", "on") != "off"


class FastPath:
    """Answers what is plain."""

    def __init__(self, board: Board, front: McpFront) -> None:
        self._board = board
        self._front = front
        # Calls by the conversation they are of and the id that they have there, for whoever cancels one; no call is
        # kept for its sake.
        self._calls: WeakValueDictionary[tuple[object, bytes], RawCall] = WeakValueDictionary()

    def begin(self, known: Known, request: Request) -> Awaitable[Answer | RawCall | None] | None:
        """Begin with a request; `None` if it has to take the full path.

        What comes of it is the whole answer, a call that has to go on the full path, or `None` to begin there after
        all; it raises `CallCancelled` if the client cancels it.
        """
        begun: Awaitable[Answer | RawCall | None] | None = None
        match request.method:
            case "tools/call":
                begun = self._call(known, request)
            case "tools/list":
                begun = self._list(known, request)
            case "ping" if known.era == "handshake" and raw_json.list_params(request.params) is not None:
                begun = _at_once(answer(request, b"{}"))
            case _:
                pass
        return _safely(request, begun) if begun is not None else None

    def cancel(self, conversation: object, request_id: bytes) -> bool:
        """Cancel a call for its client; false if none of that id is under way here."""
        call = self._calls.get((conversation, request_id))
        if call is not None:
            call.cancel()
        return call is not None

    def resend_list_changed(self, newcomer: Known) -> None:
        """A client can be told of changes from now on; if its list is old by now, it has to hear of that."""
        if newcomer.listed is not None:
            self._board.lists.tools.record_served(*newcomer.listed)
            self._board.lists.tools.schedule_check()

    def _list(self, known: Known, request: Request) -> Awaitable[Answer] | None:
        params = raw_json.list_params(request.params)
        if params is None or known.narrows or (known.era == "handshake" and isinstance(params.meta, raw_json.Raw)):
            return None
        return self._answer_list(known, request)

    async def _answer_list(self, known: Known, request: Request) -> Answer:
        wanted = self._board.restrict_to_local(known.chosen, remote=known.remote)
        sight = ListKey(wanted, known.caller.board)
        view = await self._board.list_tools(sight)
        if known.is_new:
            known.listed = (sight, view)
        if known.era == "modern":
            return answer(request, _MODERN_LIST[0], *view.definition_pieces, _MODERN_LIST[1])
        return answer(request, _HANDSHAKE_LIST[0], *view.handshake_pieces, _HANDSHAKE_LIST[1])

    def _call(self, known: Known, request: Request) -> Awaitable[Answer | RawCall | None] | None:
        params = raw_json.call_params(request.params)
        wanted = self._board.restrict_to_local(known.chosen, remote=known.remote)
        tool = self._board.gate.tool(params.name, wanted) if params is not None else None
        if params is None or tool is None:
            return None
        meta = known.meta if known.era == "modern" else _forward_meta(params.meta)
        if meta is _NOT_PLAIN:
            return None
        if tool.tool is not None:
            caller = known.caller if known.caller.filter == wanted else replace(known.caller, filter=wanted)
            return self._answer_static(known, caller, request, params) if _is_quick(tool.tool) else None
        # A span is a child of what the client says in `_meta`, and a call has one: the full path sees to that.
        call = self._start_call(known, params, tool, meta) if not is_traced() else None
        if call is None:
            return None
        place = (known.conversation, bytes(request.id))
        if known.conversation is not None:
            # At once: on a pipe, its cancellation may be the very next line.
            self._calls[place] = call
        return self._answer_call(call, place, known, request, tool)

    async def _answer_static(self, known: Known, caller: Caller, request: Request, params: CallParams) -> Answer | None:
        asked: Message = {"name": params.name}
        try:
            if isinstance(params.arguments, raw_json.Raw):
                asked["arguments"] = exactjson.parse(bytes(params.arguments))
            result = await self._front.call_tool(asked, caller)
        except (RpcError, exactjson.NotJson):
            # Nothing was done yet: the full path has the words for what is wrong.
            return None
        return answer(request, exactjson.dump(result_for(known.era, result, server_info=SERVER_INFO)))

    async def _answer_call(
        self, call: RawCall, place: tuple[object, bytes], known: Known, request: Request, tool: RegisteredTool
    ) -> Answer | RawCall | None:
        started, outcome, owner = time.perf_counter(), "failed", tool.server_name or ""
        token = trace_id.set(new_trace_id())
        handed_over = False
        try:
            result = await self._result(call, known, owner)
            if result is None:
                handed_over = True
                call.release()
                return call
            outcome = result[1]
            return answer(request, *result[0])
        except CallCancelled:
            outcome = "cancelled"
            call.cancel_upstream("cancelled by the client")
            raise
        except BaseException:
            outcome = "cancelled"
            raise
        finally:
            self._calls.pop(place, None)
            if not handed_over:
                # What is handed over is counted there.
                self._board.metrics.record_call(owner, outcome, time.perf_counter() - started)
                logger().debug("tool.called", tool=tool.name, outcome=outcome)
            trace_id.reset(token)

    def _start_call(self, known: Known, params: CallParams, tool: RegisteredTool, meta: bytes | None) -> RawCall | None:
        """The call, on its way to the server."""
        server = self._board.servers.get(tool.server_name or "")
        # Arguments that have to stand in headers, too, would have to be read.
        if server is None or tool.marked:
            return None
        client_session = self._board.relay.sessions.get(known.session)
        level = self._front.level(client_session) if client_session is not None else None
        self._board.discovery.refresh_if_stale(server.name)
        caller = known.caller
        identity = known.session or f"plain-{next(_numbers)}"
        kin = known.session or (f"of {caller.principal}" if caller.principal else identity)
        call = RawCall(identity, kin, patience=PATIENCE, hears_log=known.era == "handshake")
        arguments = bytes(params.arguments) if isinstance(params.arguments, raw_json.Raw) else None
        # A handshake client that never set a level is told what a server would tell by itself.
        heard = level or "info" if known.era == "handshake" else None
        asked = RawRequest(tool.original_name, arguments, meta, known.capabilities, heard)
        return call if server.start_call(known.session, call, asked, level) else None

    async def _result(self, call: RawCall, known: Known, server: str) -> tuple[list[Part], str] | None:
        """The result as the client's era wants it, in pieces, and its outcome; `None` to hand the call over."""
        try:
            result = await call.result()
        except CallCancelled:
            raise
        except Exception:
            if call.is_cancelled:
                raise CallCancelled from None
            return None
        shaped = _shape(known.era, result) if isinstance(result, (bytes, memoryview)) else None
        if shaped is None or not isinstance(result, (bytes, memoryview)):
            return None
        if shaped.has_task or (_refers(result) if isinstance(result, bytes) else await _refers_somewhere(result)):
            named = await self._name_references(known, server, bytes(result))
            shaped = shaped if named is _SAME else _shape(known.era, named) if named is not None else None
            if shaped is None:
                return None
        call.end()
        return shaped.pieces, "error" if shaped.is_error else "ok"

    async def _name_references(self, known: Known, server: str, result: bytes) -> bytes | None:
        """A result that refers to resources or tasks, with resources named as clients have to; `_SAME` if none has
        another name, `None` if it cannot be read, which the full path has words for."""
        try:
            read = exactjson.parse_object(result)
        except exactjson.NotJson:
            return None
        named = await self._board.relay.name_references(server, read, known.caller)
        return _SAME if named is read else exactjson.dump(named)


def _is_quick(tool: Tool) -> bool:
    """Whether a tool of our own is plain: one that takes its time could not be cancelled here, and one that stands for
    another is as plain as that."""
    return tool.quick and not isinstance(tool, RelayingTool)


@dataclass(frozen=True, slots=True)
class _Shaped:
    pieces: list[Part]
    is_error: bool
    # Whether it is about a task, which clients know by a name of ours.
    has_task: bool


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


def _shape(era: Era, result: Part) -> _Shaped | None:
    """A result as a client of this era expects it; `None` where that takes more than a look at its members."""
    parts = raw_json.parts(result)
    if parts is None:
        return None
    kind, given = parts.get("resultType"), parts.get("_meta")
    meta = bytes(given) if given is not None else None
    if kind not in {None, b'"complete"'} or (meta is not None and not meta.startswith(b"{")):
        return None
    is_error = parts.get("isError") == b"true"
    has_task = "task" in parts or "taskId" in parts
    if era == "modern":
        stamped = raw_json.with_server_info(meta, _SERVER_INFO)
        if stamped is None:
            return None
        parts |= {"resultType": b'"complete"', "_meta": stamped}
        return _Shaped(raw_json.pieces(parts), is_error, has_task)
    structured = parts.get("structuredContent")
    if kind is None and meta is None and (structured is None or structured[:1] == b"{"):
        return _Shaped([result], is_error, has_task)
    parts.pop("resultType", None)
    if structured is not None and structured[:1] != b"{":
        del parts["structuredContent"]
    own = raw_json.members(meta) if meta is not None else None
    if own is not None and own.pop(SERVER_INFO_KEY, None) is not None:
        parts.pop("_meta")
        parts |= {"_meta": raw_json.join(own)} if own else {}
    return _Shaped(raw_json.pieces(parts), is_error, has_task)


_NOT_PLAIN = b"not plain"
# Members of `_meta` that the full path has to look at.
_NO_PLAIN_META = frozenset({"progressToken", RELATED_TASK_KEY})


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


async def _safely(request: Request, begun: Awaitable[Answer | RawCall | None]) -> Answer | RawCall | None:
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
