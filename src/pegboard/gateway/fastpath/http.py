"""The door of the fast path over HTTP: lets in what the guard and the sessions let in, and passes on all else.

What a client says in its headers is mostly the same from request to request, so what follows from it is found out
once: whether the request may come in, and whose it is. Only what differs is looked at each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl
from weakref import ref

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.gateway.body import has_too_many_values, replay
from pegboard.gateway.fastpath.known import Door, Known, KnownClients
from pegboard.gateway.fastpath.rules import Answer, FastPath, cancelled_id, refusal
from pegboard.gateway.guard import Guard
from pegboard.gateway.shutdown import Shutdown
from pegboard.names import is_board_name
from pegboard.protocol import raw_json
from pegboard.protocol.client import STARTED_CALL, Address, Handover, query_problem
from pegboard.protocol.codes import REQUEST_CANCELLED
from pegboard.protocol.eras import HANDSHAKE_VERSIONS, LATEST_MODERN
from pegboard.protocol.gateway import GatewayServer
from pegboard.protocol.nearness import is_remote
from pegboard.protocol.raw_json import Request
from pegboard.protocol.sessions import HttpSession, HttpSessions
from pegboard.servers.raw_call import CallCancelled, RawCall

# A body that is larger than this is not worth a short cut.
MAX_PLAIN_BODY = 1024 * 1024
_MAX_ADMITTED = 4096
_MAX_HEADERS = 8192
# These differ from request to request; each is looked at by itself.
_OWN_TO_EACH = frozenset({b"content-length", b"mcp-name", b"traceparent", b"tracestate", b"x-request-id"})
_ONCE = (
    b"mcp-protocol-version",
    b"mcp-method",
    b"mcp-session-id",
    b"host",
    b"origin",
    b"accept",
    b"content-type",
    b"authorization",
)


Begun = Awaitable["Answer | RawCall | None"]


@dataclass(eq=False)
class HeaderVerdict:
    """What follows from a request's headers."""

    method: bytes | None = None
    # In the handshake era: the session, which is not to be kept for our sake, and its client.
    session: ref[HttpSession] | None = None
    session_header: bytes | None = None
    known: Known | None = None
    # In the modern era: where its clients come in.
    door: Door | None = None

    @cached_property
    def head(self) -> bytes:
        """The lines of every answer's head that are the same."""
        named = b"" if self.session_header is None else b"mcp-session-id: %b\r\n" % self.session_header
        return b"content-type: application/json\r\n" + named


class HttpFastPath:
    """Stands before everything else and answers what is plain."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        guard: Guard,
        sessions: HttpSessions,
        server: GatewayServer,
        clients: KnownClients,
        way: FastPath,
        shutdown: Shutdown,
    ) -> None:
        self._app = app
        self._shutdown = shutdown
        self._guard = guard
        self._sessions = sessions
        self._server = server
        self._clients = clients
        self._way = way
        self._admitted: OrderedDict[object, HeaderVerdict] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = self.admission(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        if admitted is None:
            await self._app(scope, receive, send)
            return
        body, messages = await _body(receive)
        begun = self.begin(scope, admitted, body) if body is not None else None
        if begun is None:
            if body is not None and self._cancels(admitted, body):
                await _send(send, admitted, 202, b"")
                return
            await self._app(scope, replay(messages, receive), send)
            return
        answer = await self.outcome(admitted, *begun)
        if isinstance(answer, list):
            await _send(send, admitted, 200, b"".join(answer))
        else:
            await self.go_on(answer, scope, replay(messages, receive), send)

    def begin(self, scope: Scope, admitted: HeaderVerdict, body: bytes) -> tuple[Request, Begun] | None:
        """Begin with a request; `None` if it has to take the full path."""
        request = raw_json.request(body) if not has_too_many_values(body) else None
        known = self._client(scope, admitted, request) if request is not None else None
        begun = self._way.begin(known, request) if request is not None and known is not None else None
        return (request, begun) if request is not None and begun is not None else None

    async def outcome(self, admitted: HeaderVerdict, request: Request, begun: Begun) -> Answer | RawCall | None:
        """The answer to a request, or what has to go on the full path."""
        self._shutdown.begin()
        try:
            answer = await begun
        except CallCancelled:
            return refusal(request, REQUEST_CANCELLED, "Request cancelled")
        finally:
            self._shutdown.end()
        if admitted.session is not None and (session := admitted.session()) is not None:
            session.touch()
        return answer

    async def go_on(self, call: RawCall | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Go on the full path, with the call that is under way, if one is."""
        await self._app(scope if call is None else {**scope, STARTED_CALL: Handover(call)}, receive, send)

    def admission(self, scope: Scope) -> HeaderVerdict | None:
        """What is known from a request's headers; `None` where the full path has to look at them."""
        if not scope["path"].startswith("/mcp") or self._shutdown.has_begun:
            return None
        headers = scope["headers"]
        peer = scope.get("client")
        key = (
            scope["path"],
            scope["query_string"],
            peer[0] if peer else None,
            *[header for header in headers if header[0] not in _OWN_TO_EACH],
        )
        admitted = self._admitted.get(key)
        if admitted is not None and (admitted.session is None or _is_open(admitted.session())):
            self._admitted.move_to_end(key)
            return admitted
        admitted = self._admit(scope)
        if admitted is not None and sum(len(name) + len(value) for name, value in headers) <= _MAX_HEADERS:
            self._remember(key, admitted)
        return admitted

    def _remember(self, key: object, admitted: HeaderVerdict) -> None:
        if len(self._admitted) >= _MAX_ADMITTED:
            self._admitted.popitem(last=False)
        self._admitted[key] = admitted
        if admitted.session is not None and (session := admitted.session()) is not None:
            # What was found out about a session is of no use after it.
            admitted.session = ref(session, lambda _: self._admitted.pop(key, None))

    def _admit(self, scope: Scope) -> HeaderVerdict | None:
        stripped = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope = {**scope, "headers": stripped}
        if self._guard.refusal(scope) is not None or not _is_plain(stripped) or not _is_ours(scope["path"]):
            return None
        headers = dict(stripped)
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        session_id = headers.get(b"mcp-session-id", b"").decode("latin-1")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if query_problem(query) is not None:
            return None
        if version == LATEST_MODERN and not session_id:
            board = scope["path"].removeprefix("/mcp").removeprefix("/")
            address = Address(query, board or None, is_remote(scope))
            credentials = headers.get(b"authorization", b"").decode("latin-1")
            return HeaderVerdict(headers.get(b"mcp-method"), door=Door(address, credentials))
        if (version and version not in HANDSHAKE_VERSIONS) or not session_id:
            return None
        session = self._sessions.open_session(session_id, scope)
        client = self._server.ready(session_id)
        if session is None or client is None or not session.is_open:
            return None
        return HeaderVerdict(
            session_header=session_id.encode("latin-1"), session=ref(session), known=self._clients.of_session(client)
        )

    def _client(self, scope: Scope, admitted: HeaderVerdict, request: Request) -> Known | None:
        """Whose request this is; `None` where that takes the full path to tell."""
        if admitted.known is not None or admitted.door is None:
            return admitted.known
        if admitted.method != request.method.encode():
            return None
        params = raw_json.members(request.params) if isinstance(request.params, raw_json.Raw) else None
        meta = (params or {}).get("_meta")
        if params is None or meta is None:
            return None
        if request.method == "tools/call" and not _is_named(scope["headers"], params.get("name")):
            return None
        return self._clients.of_request(admitted.door, meta)

    def _cancels(self, admitted: HeaderVerdict, body: bytes) -> bool:
        """Whether a body cancels a call that is on the fast path."""
        if admitted.known is None or admitted.known.session is None:
            return False
        called = cancelled_id(body)
        return called is not None and self._way.cancel(admitted.known.session, called)


def _is_plain(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether nothing about the headers is out of the ordinary."""
    names = [name for name, _ in headers]
    if any(names.count(name) > 1 for name in _ONCE) or any(name.startswith(b"mcp-param-") for name in names):
        return False
    named = dict(headers)
    accepted = {kind.partition(b";")[0].strip() for kind in named.get(b"accept", b"").lower().split(b",")}
    if not {b"application/json", b"text/event-stream"} <= accepted:
        return False
    return named.get(b"content-type", b"").partition(b";")[0].strip() == b"application/json"


def _is_open(session: HttpSession | None) -> bool:
    return session is not None and session.is_open


def _is_ours(path: str) -> bool:
    return path == "/mcp" or (path.startswith("/mcp/") and is_board_name(path.removeprefix("/mcp/")))


def _is_named(headers: list[tuple[bytes, bytes]], name: bytes | None) -> bool:
    """Whether the one header that names the tool says what the body says, in so many words."""
    said = [value for key, value in headers if key == b"mcp-name"]
    if len(said) != 1 or not said[0].isascii() or b"\\" in said[0] or said[0].startswith(b"=?"):
        return False
    return name == b'"%b"' % said[0]


async def _body(receive: Receive) -> tuple[bytes | None, list[Message]]:
    """The whole body, unless it is too large, and the messages it came in."""
    message = await receive()
    messages, size = [message], len(message.get("body", b""))
    while message.get("more_body") and size <= MAX_PLAIN_BODY:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
    if message["type"] != "http.request" or message.get("more_body"):
        return None, messages
    return messages[0]["body"] if len(messages) == 1 else b"".join(each["body"] for each in messages), messages


async def _send(send: Send, admitted: HeaderVerdict, status: int, body: bytes) -> None:
    headers: list[Any] = [(b"content-length", b"%d" % len(body))]
    if body:
        headers.append((b"content-type", b"application/json"))
    if admitted.session_header is not None:
        headers.append((b"mcp-session-id", admitted.session_header))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
