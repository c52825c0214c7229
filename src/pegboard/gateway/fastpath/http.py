"""The fast path over HTTP: which requests the guard and the sessions let in, and whose they are.

What a client says in its headers is mostly the same from request to request, so what follows from it is found out
once: whether the request may come in, and whose it is. Only what differs is looked at each time.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from weakref import ref

from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.access.principal import Principal
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.proof import PROOF_HEADER
from pegboard.clients.cache import ClientCache
from pegboard.clients.client import Client
from pegboard.clients.endpoint import PRINCIPAL_KEY, Endpoint, endpoint_of, query_problem
from pegboard.clients.peer_user import PEER_KEY
from pegboard.clients.request_context import STARTED_CALL, Handover
from pegboard.clients.sessions import ClientSessions
from pegboard.gateway.body import has_too_many_values
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.fastpath.rules import Answer, Begun, FastPath, cancelled_id, refusal
from pegboard.gateway.guard import Guard
from pegboard.gateway.shutdown import Shutdown
from pegboard.lru_dict import LruDict
from pegboard.names import is_board_name
from pegboard.protocol import raw_json
from pegboard.protocol.codes import REQUEST_CANCELLED
from pegboard.protocol.eras import HANDSHAKE_VERSIONS, LATEST_MODERN
from pegboard.protocol.raw_json import Request
from pegboard.sdk.sessions import HttpSession, HttpSessions
from pegboard.servers.raw_call import CallCancelled, RawCall

# A larger body takes the full path.
MAX_PLAIN_BODY = 1024 * 1024
_MAX_VERDICTS = 4096
# A head that is larger than this is not worth keeping.
_MAX_HEAD = 8192
# These differ from request to request; each is looked at by itself.
_OWN_TO_EACH = frozenset({b"content-length", b"mcp-name", b"traceparent", b"tracestate", b"x-request-id"})
_PROOF = PROOF_HEADER.encode()
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


@dataclass(eq=False)
class HeaderVerdict:
    """What follows from a request's headers, for as long as its principal is let in."""

    principal: Principal
    # As of which settings the principal is known.
    generation: int
    method: bytes | None = None
    # In the handshake era: the session, which is not to be kept for our sake, and its client.
    session: ref[HttpSession] | None = None
    session_header: bytes | None = None
    client: Client | None = None
    # In the modern era: where its clients come in.
    endpoint: Endpoint | None = None

    @cached_property
    def head(self) -> bytes:
        """The line of every answer's head that names the session."""
        return b"" if self.session_header is None else b"mcp-session-id: %b\r\n" % self.session_header


class HttpFastPath:
    """Decides which requests take the fast path, and begins with them."""

    def __init__(
        self,
        full_path: ASGIApp,
        *,
        guard: Guard,
        authenticator: Authenticator,
        sessions: HttpSessions,
        ready: ClientSessions,
        clients: ClientCache,
        rules: FastPath,
        shutdown: Shutdown,
    ) -> None:
        self._full_path = full_path
        self._shutdown = shutdown
        self._guard = guard
        self._authenticator = authenticator
        self._sessions = sessions
        self._ready = ready
        self._clients = clients
        self.rules = rules
        self.verdicts: LruDict[object, HeaderVerdict] = LruDict(_MAX_VERDICTS)

    def judge(self, scope: Scope) -> HeaderVerdict | Decline:
        """What follows from a request's headers."""
        if self._shutdown.has_begun:
            return Decline.STOPPING
        headers = scope["headers"]
        peer = scope.get("client")
        key = (
            scope["path"],
            scope["query_string"],
            peer[0] if peer else None,
            scope[PEER_KEY].is_own,
            *[header for header in headers if header[0] not in _OWN_TO_EACH],
        )
        verdict = self.verdicts.get(key)
        if verdict is not None and self.holds(verdict):
            self.verdicts.move_to_end(key)
            return verdict
        found = self._judge(scope)
        if not isinstance(found, Decline) and _size(scope) <= _MAX_HEAD:
            self._remember(key, found)
        return found

    def holds(self, verdict: HeaderVerdict) -> bool:
        """Whether what was found out is still so."""
        if not (verdict.session is None or _is_open(verdict.session())):
            return False
        if verdict.generation != self._authenticator.generation:
            return False
        principal = verdict.principal
        principal.was_used = True
        # As `Authenticator.is_current` has it.
        return principal.valid_until == math.inf or time.time() < min(principal.valid_until, principal.recheck_at)

    def begin(self, scope: Scope, verdict: HeaderVerdict, body: bytes) -> tuple[Request, Begun] | Decline:
        """Begin with a request."""
        request = raw_json.request(body) if not has_too_many_values(body) else None
        if request is None:
            return Decline.BODY
        client = verdict.client if verdict.endpoint is None else self._modern_client(scope, verdict, request)
        if client is None:
            return Decline.CLIENT
        if client.endpoint.principal is not verdict.principal:
            client.bind(verdict.principal)
        begun = self.rules.begin(client, request)
        return begun if isinstance(begun, Decline) else (request, begun)

    async def outcome(self, verdict: HeaderVerdict, request: Request, begun: Begun) -> Answer | RawCall | None:
        """The answer to a request, or what has to go on the full path."""
        self._shutdown.begin()
        try:
            answer = await begun
        except CallCancelled:
            return refusal(request, REQUEST_CANCELLED, "Request cancelled")
        finally:
            self._shutdown.end()
        if verdict.session is not None and (session := verdict.session()) is not None:
            session.touch()
        return answer

    def cancels(self, verdict: HeaderVerdict, body: bytes) -> bool:
        """Whether a body cancels a call that is on the fast path; that is done then."""
        if verdict.client is None or verdict.client.session is None:
            return False
        called = cancelled_id(body)
        return called is not None and self.rules.cancel(verdict.client.session, called)

    async def go_on(
        self, verdict: HeaderVerdict, call: RawCall | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Go on the full path, with the call that is under way, if one is, and whose it is."""
        self.rules.count(Decline.HANDED_OVER)
        if call is not None:
            scope = {**scope, STARTED_CALL: Handover(call), PRINCIPAL_KEY: verdict.principal}
        await self._full_path(scope, receive, send)

    def _remember(self, key: object, verdict: HeaderVerdict) -> None:
        self.verdicts[key] = verdict
        if verdict.session is not None and (session := verdict.session()) is not None:
            # What was found out about a session is of no use after it.
            verdict.session = ref(session, lambda _: self.verdicts.pop(key, None))

    def _judge(self, scope: Scope) -> HeaderVerdict | Decline:
        stripped = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope = {**scope, "headers": stripped}
        if self._guard.refusal(scope) is not None or not _is_plain(stripped) or not _is_ours(scope["path"]):
            return Decline.HEADERS
        principal = self._authenticator.recognize(scope)
        if principal is None:
            return Decline.PRINCIPAL
        scope[PRINCIPAL_KEY] = principal
        endpoint, headers = endpoint_of(scope), dict(stripped)
        if query_problem(endpoint.query) is not None:
            return Decline.HEADERS
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        session_id = headers.get(b"mcp-session-id", b"").decode("latin-1")
        if version == LATEST_MODERN and not session_id:
            generation = self._authenticator.generation
            return HeaderVerdict(principal, generation, headers.get(b"mcp-method"), endpoint=endpoint)
        if version and version not in HANDSHAKE_VERSIONS:
            return Decline.SESSION
        return self._judge_session(session_id, endpoint)

    def _judge_session(self, session_id: str, endpoint: Endpoint) -> HeaderVerdict | Decline:
        session = self._sessions.open_session(session_id, endpoint)
        client = self._ready.get(session_id)
        if session is None or client is None or not session.is_open:
            return Decline.SESSION
        return HeaderVerdict(
            endpoint.principal,
            self._authenticator.generation,
            session_header=session_id.encode("latin-1"),
            session=ref(session),
            client=client,
        )

    def _modern_client(self, scope: Scope, verdict: HeaderVerdict, request: Request) -> Client | None:
        """Whose request this is; `None` where that takes the full path to tell."""
        if verdict.endpoint is None or verdict.method != request.method.encode():
            return None
        params = raw_json.members(request.params) if isinstance(request.params, raw_json.Raw) else None
        meta = (params or {}).get("_meta")
        if params is None or meta is None:
            return None
        if request.method == "tools/call" and not _is_named(scope["headers"], params.get("name")):
            return None
        return self._clients.get(verdict.endpoint, meta)


def _is_plain(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether nothing about the headers is out of the ordinary."""
    names = [name for name, _ in headers]
    if any(names.count(name) > 1 for name in _ONCE) or any(name.startswith(b"mcp-param-") for name in names):
        return False
    if _PROOF in names:
        # It is good for a minute, and a verdict for longer.
        return False
    named = dict(headers)
    accepted = {kind.partition(b";")[0].strip() for kind in named.get(b"accept", b"").lower().split(b",")}
    if not {b"application/json", b"text/event-stream"} <= accepted:
        return False
    return named.get(b"content-type", b"").partition(b";")[0].strip() == b"application/json"


def _size(scope: Scope) -> int:
    head = sum(len(name) + len(value) for name, value in scope["headers"])
    return head + len(scope["path"]) + len(scope["query_string"])


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
