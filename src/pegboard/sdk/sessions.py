"""HTTP sessions of the handshake era: each remembers what it sent, and answers to whoever opened it alone.

Built on inner parts of the SDK 2.3, all named here: of `StreamableHTTPSessionManager`, `_admit_session`,
`_serve_opening_request`, `_handle_stateful_request`, `_discard_session`, `_server_instances` and `_session_owners`; of
`StreamableHTTPServerTransport`, `_idle_timeout`, `_create_event_data`, `_create_error_response`, and for batches
`_handle_post_request`, `_validate_accept_header`, `_check_content_type`, `_read_stream_writer`, `_request_streams`,
`_message_metadata`, `_terminate_unanswered_request` and `_clean_up_memory_streams`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    LAST_EVENT_ID_HEADER,
    MCP_SESSION_ID_HEADER,
    EventMessage,
    StreamableHTTPServerTransport,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import SessionMessage
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import is_version_at_least
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pegboard.clients.endpoint import Endpoint, endpoint_of
from pegboard.clients.request_context import EXACT
from pegboard.exactjson import NotJson, dump
from pegboard.log import logger
from pegboard.protocol.message import NotAMessage, fault, is_batch, is_greeting, refusal
from pegboard.protocol.portions import LARGE
from pegboard.sdk.batch import Batch, BatchRefused, join_answers
from pegboard.sdk.event_store import TOTAL_BYTES, EventBuffer, SessionEventStore, size
from pegboard.sdk.exact_message import ExactMessage, write_message

IDLE_LIMIT = 30 * 60.0
# How long a session is kept that was opened and never used.
OPENING_LIMIT = 60.0
MAX_SESSIONS = 10_000
# Milliseconds until a client comes back for a stream whose connection ended early.
RETRY = 1000
_TOUCHES_APART = 1.0
# Seconds between two looks at whether a session has said what it was about to say.
_LOOK_EVERY = 0.01
# Where in a request's scope the batch is that it brought, and how much is kept of what is said for one of its messages.
_BATCH = "pegboard.batch"
_BATCH_BUFFER = 16
# Clients of older versions cannot read an event without data.
_FIRST_PRIMED = "2025-11-25"


# Who holds a session: the network it came from, and its principal.
Holder = tuple[str, str]
# So much of all sessions nobody has to give up for others: one in a hundred.
_SHARES = 100
_LEAST_SHARE = 2


class HttpSessions(StreamableHTTPSessionManager):
    """The SDK's sessions with a memory of their own and bound to the principal that opened them."""

    def __init__(
        self,
        server: Server[Any],
        *,
        idle_limit: float = IDLE_LIMIT,
        max_sessions: int = MAX_SESSIONS,
        version_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        super().__init__(server, session_idle_timeout=idle_limit, retry_interval=RETRY, max_sessions=max_sessions)
        self._version_of = version_of
        # Sessions by who holds them, the longest unused first.
        self._held: dict[Holder, OrderedDict[str, HttpSession]] = {}
        self.event_buffer = EventBuffer(max_bytes=TOTAL_BYTES)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        if self.max_sessions is not None and len(self._server_instances) >= self.max_sessions:
            return None
        session_id = uuid4().hex
        session = HttpSession(
            session_id, SessionEventStore(self.event_buffer), self.session_idle_timeout, self._mark_used
        )
        if requestor is not None:
            self._session_owners[session_id] = requestor
        self._server_instances[session_id] = session
        return session

    async def _serve_opening_request(
        self, http_transport: StreamableHTTPServerTransport, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if isinstance(http_transport, HttpSession):
            http_transport.endpoint = endpoint_of(scope)
            self._held.setdefault(http_transport.holder, OrderedDict())[http_transport.mcp_session_id or ""] = (
                http_transport
            )
        await super()._serve_opening_request(http_transport, scope, receive, send)

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        if isinstance(transport, HttpSession) and (held := self._held.get(transport.holder)) is not None:
            held.pop(session_id, None)
            if not held:
                del self._held[transport.holder]
        await super()._discard_session(session_id, transport)

    def _mark_used(self, session: HttpSession) -> None:
        held, session_id = self._held.get(session.holder), session.mcp_session_id
        if held is not None and session_id in held:
            held.move_to_end(session_id)

    async def _make_room(self, opener: Holder) -> None:
        """End a session, so that another can be opened."""
        if self.max_sessions is None or len(self._server_instances) < self.max_sessions or not self._held:
            return
        session = self._next_to_end(opener, max(self.max_sessions // _SHARES, _LEAST_SHARE))
        logger().warning("session.ended.for.another", sessions=len(self._server_instances))
        await self._discard_session(session.mcp_session_id or "", session)

    def _next_to_end(self, opener: Holder, share: int) -> HttpSession:
        """Of the network with the most sessions, the new one counted: one of whoever has more than a share there and
        the most, else of anybody there. It is the one that was unused the longest."""
        counts, networks = Counter({who: len(held) for who, held in self._held.items()}), Counter[str]()
        counts[opener] += 1
        for (network, _), count in counts.items():
            networks[network] += count
        chosen = max((who[0] for who in self._held), key=lambda network: (networks[network], network == opener[0]))
        here = [who for who in self._held if who[0] == chosen]
        largest = max(here, key=lambda who: (counts[who], who == opener))
        givers = [largest] if counts[largest] > share else here
        return min((_longest_unused(self._held[who]) for who in givers), key=lambda session: session.ends_at)

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._server_instances.get(Headers(scope=scope).get(MCP_SESSION_ID_HEADER, ""))
        if isinstance(session, HttpSession) and not session.may_be_used_from(endpoint_of(scope)):
            logger().warning("session.of.another")
            # The SDK answers as it does for any session that does not exist.
            scope = _with_header(scope, MCP_SESSION_ID_HEADER, "none")
        if scope["method"] == "POST":
            body, receive = await read_body(receive)
            if (reason := self._look_into(body, scope)) is not None:
                await _refusal(reason)(scope, receive, send)
                return
            if MCP_SESSION_ID_HEADER not in Headers(scope=scope) and is_greeting(body):
                await self._make_room(_holder(endpoint_of(scope)))
        await super()._handle_stateful_request(scope, receive, send)

    def _look_into(self, body: bytes, scope: Scope) -> str | None:
        """Take a batch apart, where this session takes any; or say why a body is no message."""
        session_id = Headers(scope=scope).get(MCP_SESSION_ID_HEADER, "")
        session = self._server_instances.get(session_id)
        # The SDK has the words for what is not JSON, or no message.
        with contextlib.suppress(NotJson, NotAMessage):
            if not is_batch(body):
                exact = scope.get(EXACT)
                if isinstance(session, HttpSession) and exact is not None and "method" not in exact:
                    # An answer goes past everybody who could be told later what it really says.
                    scope[_BATCH] = Batch([ExactMessage.read(dump(exact))])
                return fault(body)
            try:
                if not isinstance(session, HttpSession):
                    Batch.of(body, None, lambda _: False)
                else:
                    scope[_BATCH] = Batch.of(body, self._version_of(session_id), session.is_answering)
            except BatchRefused as exc:
                return str(exc)
        return None

    async def end_sessions_of(
        self, principals: Collection[str], *, idle_only: bool = False, patience: float = 0.0
    ) -> None:
        """End the sessions of principals that will not come again; with `idle_only`, those that answer nothing now, and
        with `patience` once they have said what they are about to say."""
        ended = [session for who, held in self._held.items() if who[1] in principals for session in held.values()]
        deadline = time.monotonic() + patience
        while patience and any(session.is_busy for session in ended) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_EVERY)
        for session in ended:
            if not (idle_only and session.is_busy):
                await self._discard_session(session.mcp_session_id or "", session)

    def open_session(self, session_id: str, endpoint: Endpoint) -> HttpSession | None:
        """The session of this id, if it is open and requests that come in there may use it."""
        session = self._server_instances.get(session_id)
        return session if isinstance(session, HttpSession) and session.may_be_used_from(endpoint) else None


class HttpSession(StreamableHTTPServerTransport):
    """One session's streams. Every GET reads from the session's memory; the SDK's own way knows one reader a stream
    and turns a client away (409), or leaves it without what comes next, while the dead connection is not noticed."""

    def __init__(
        self,
        session_id: str,
        replay: SessionEventStore,
        idle_limit: float | None,
        on_use: Callable[[HttpSession], None] = lambda _: None,
    ) -> None:
        opening = None if idle_limit is None else min(idle_limit, OPENING_LIMIT)
        super().__init__(session_id, event_store=replay, retry_interval=RETRY, idle_timeout=opening)
        # Where it was opened; nobody else may use it.
        self.endpoint = Endpoint()
        self._on_use = on_use
        self._is_opened = False
        self._replay = replay
        # Where the first standing stream begins: what is said before a client has opened it is not lost.
        self._start: str | None = replay.mark(GET_STREAM_KEY)
        self._limit = idle_limit
        # Requests that the SDK deals with now, a standing stream included: while there are any, it is not idle.
        self._busy = 0
        self._touched = 0.0
        self._loop = asyncio.get_running_loop()

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._is_opened:
            # Its client came back: from now on it may be idle for longer.
            self._idle_timeout = self._limit
        self._is_opened = True
        self._on_use(self)
        self._busy += 1
        try:
            if scope["method"] == "GET" and not self.is_terminated:
                await self._read(scope, receive, send)
            else:
                await super().handle_request(scope, receive, send)
        finally:
            self._busy -= 1

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        batch: Batch | None = scope.get(_BATCH)
        if batch is None or not self._check_content_type(request):
            await super()._handle_post_request(scope, request, receive, send)
        elif await self._validate_accept_header(request, scope, send):
            async with anyio.create_task_group() as group:
                group.start_soon(_end_with_client, receive, group.cancel_scope)
                await self._take_batch(batch, request, send)
                group.cancel_scope.cancel()

    @property
    def holder(self) -> Holder:
        """Who holds it."""
        return _holder(self.endpoint)

    def may_be_used_from(self, endpoint: Endpoint) -> bool:
        """Whether requests that come in there may use it: those of the principal that opened it."""
        # What a session of this machine was answered may be for this machine alone, and can be read again from it.
        from_elsewhere = not self.endpoint.remote and endpoint.remote
        return not from_elsewhere and self.endpoint.principal.id == endpoint.principal.id

    def is_answering(self, request_id: RequestId) -> bool:
        """Whether a request with this id is under way."""
        return str(request_id) in self._request_streams

    async def _take_batch(self, batch: Batch, request: Request, send: Send) -> None:
        """Answer a batch: what is said meanwhile as a stream, and behind it all answers at once."""
        answers, stream = list(batch.refusals), _BatchStream(send, self.mcp_session_id or "")
        async with anyio.create_task_group() as following:
            for read in batch.messages:
                message, settle = read.message, None
                if isinstance(message, JSONRPCRequest):
                    key, settle = str(message.id), partial(self._terminate_unanswered_request, message.id)
                    self._request_streams[key] = anyio.create_memory_object_stream[EventMessage](_BATCH_BUFFER)
                    following.start_soon(self._follow, key, answers, stream)
                own = request if read.exact is None else Request({**request.scope, EXACT: read.exact})
                metadata = self._message_metadata(own, on_request_unanswered=settle)
                assert self._read_stream_writer is not None
                await self._read_stream_writer.send(SessionMessage(message, metadata=metadata))
        await stream.end(answers)

    async def _follow(self, key: str, answers: list[bytes], stream: _BatchStream) -> None:
        """Wait for the answer to one message of a batch, and pass on what is said before it."""
        try:
            async for event in self._request_streams[key][1]:
                text = str(self._create_event_data(event)["data"]).encode()
                if isinstance(event.message, (JSONRPCResponse, JSONRPCError)):
                    answers.append(text)
                    return
                await stream.say(text)
        finally:
            with anyio.CancelScope(shield=True):
                await self._clean_up_memory_streams(key)

    @property
    def ends_at(self) -> float:
        """When it ends if nobody uses it from now on."""
        return self.idle_scope.deadline if self.idle_scope is not None else math.inf

    @property
    def is_busy(self) -> bool:
        """Whether a request of it is under way, or a stream open."""
        return self._busy > 0

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return not self.is_terminated and self.idle_scope is not None and not self.idle_scope.cancel_called

    def touch(self) -> None:
        """It was used, though no request came this way: it is idle from now on only."""
        now = self._loop.time()
        idle_scope, limit = self.idle_scope, self._limit
        if idle_scope is not None and limit is not None and not self._busy and now - self._touched > _TOUCHES_APART:
            self._touched = now
            idle_scope.deadline = now + limit
            self._on_use(self)

    async def terminate(self) -> None:
        """End the session and everything that is kept for it."""
        self._replay.close()
        await super().terminate()

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = Headers(scope=scope).get(LAST_EVENT_ID_HEADER)
        if not place:
            # A new standing stream is the old one read on from now; the first one, from the session's beginning.
            start, self._start = self._start, None
            place = start if start is not None and self._replay.knows(start) else self._replay.mark(GET_STREAM_KEY)
            scope = _with_header(scope, LAST_EVENT_ID_HEADER, place)
        elif self._replay.is_answer(place):
            # An empty stream would be asked for again and again; this is how SSE says that there is no more.
            await Response(status_code=HTTPStatus.NO_CONTENT)(scope, receive, send)
            return
        elif not self._replay.knows(place):
            refusal = self._create_error_response("Unknown or forgotten Last-Event-ID", HTTPStatus.BAD_REQUEST)
            await refusal(scope, receive, send)
            return
        if (stream := self._replay.running(place)) is not None:
            # The connection that the request came on may be dead without our knowing.
            self.close_sse_stream(stream)
        await super().handle_request(scope, receive, _prime(scope, place, send))

    def _create_event_data(self, event_message: EventMessage) -> dict[str, Any]:
        message, event_id = event_message.message, event_message.event_id
        text = self._replay.hand_out(event_id)
        if text is None and event_id and size(message) > LARGE:
            # The stream takes bytes as they are.
            return cast("Any", _event(event_id, message))
        data = {"event": "message", "data": write_message(message).decode() if text is None else text}
        return {**data, "id": event_id} if event_id else data


def _holder(endpoint: Endpoint) -> Holder:
    return endpoint.network, endpoint.principal.id


def _longest_unused(held: Mapping[str, HttpSession]) -> HttpSession:
    return next((each for each in held.values() if not each.is_busy), next(iter(held.values())))


def _event(event_id: str, message: JSONRPCMessage) -> bytes:
    """A message that is too large to be kept, written once: as a text it would be copied again and again."""
    text = write_message(message)
    return b"".join((b"id: ", event_id.encode(), b"\r\nevent: message\r\ndata: ", text, b"\r\n\r\n"))


class _BatchStream:
    """The answer to a batch: one JSON text, unless something has to be said before all of it is there."""

    def __init__(self, send: Send, session: str) -> None:
        self._send = send
        self._headers = [(b"mcp-session-id", session.encode("latin-1"))]
        self._is_open = False

    async def say(self, text: bytes) -> None:
        """Write one event; from the first on it is a stream."""
        if not self._is_open:
            self._is_open = True
            await self._start(HTTPStatus.OK, (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))
        event = b"event: message\r\ndata: " + text + b"\r\n\r\n"
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def end(self, answers: list[bytes]) -> None:
        """Write the answers, if there are any to give."""
        if self._is_open:
            await self.say(join_answers(answers))
            await self._send({"type": "http.response.body", "body": b""})
            return
        body = join_answers(answers) if answers else b""
        headers = (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))
        await self._start(HTTPStatus.OK if answers else HTTPStatus.ACCEPTED, *headers)
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": [*self._headers, *headers]})


async def _end_with_client(receive: Receive, scope: anyio.CancelScope) -> None:
    """Nobody answers a client that is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def read_body(receive: Receive) -> tuple[bytes, Receive]:
    """A request's whole body, and what receives it once more."""
    messages: list[Message] = []
    while True:
        messages.append(message := await receive())
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    waiting = list(reversed(messages))

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return b"".join(each.get("body", b"") for each in messages), again


def _refusal(reason: str) -> Response:
    return Response(refusal(reason), status_code=HTTPStatus.BAD_REQUEST, media_type="application/json")


def _prime(scope: Scope, place: str, send: Send) -> Send:
    """Begins a stream with its place, so that a client can read on even if nothing else ever came."""
    version = Headers(scope=scope).get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
    if not is_version_at_least(version, _FIRST_PRIMED):
        return send
    event = f"id: {place}\r\nretry: {RETRY}\r\ndata: \r\n\r\n".encode()

    async def priming(message: Message) -> None:
        await send(message)
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.OK:
            await send({"type": "http.response.body", "body": event, "more_body": True})

    return priming


def _with_header(scope: Scope, name: str, value: str) -> Scope:
    key = name.encode("latin-1")
    others = [header for header in scope["headers"] if header[0] != key]
    return {**scope, "headers": [*others, (key, value.encode("latin-1"))]}
