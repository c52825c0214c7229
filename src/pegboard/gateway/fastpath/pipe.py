"""The fast path of one client at the other end of a byte stream, line by line, from its greeting on."""

from __future__ import annotations

from collections.abc import Awaitable
from uuid import uuid4

from pegboard import exactjson
from pegboard.clients.cache import ClientCache
from pegboard.clients.client import Client, identify, name_in, version_in
from pegboard.clients.endpoint import PipeEndpoint
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.fastpath.rules import Begun, FastPath, answer, cancelled_id
from pegboard.gateway.mcp import McpHandlers
from pegboard.protocol import raw_json
from pegboard.protocol.eras import LATEST_HANDSHAKE, VERSION_KEY
from pegboard.protocol.raw_json import Request
from pegboard.servers.raw_call import CallCancelled, RawCall
from pegboard.version import SERVER_INFO

_MODERN = VERSION_KEY.encode()
_INITIALIZED = b'"notifications/initialized"'
# What the SDK announces for us.
CAPABILITIES = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}


class PipeFastPath:
    """Answers the plain requests of one client."""

    def __init__(self, front: McpHandlers, clients: ClientCache, rules: FastPath, endpoint: PipeEndpoint) -> None:
        self._front = front
        self._clients = clients
        self._rules = rules
        self._endpoint = endpoint
        self.session = f"connection-{uuid4().hex}"
        # The client from its `initialize` on, and from its `initialized` on.
        self._greeting: Client | None = None
        self._greeted: Client | None = None

    def greet(self, text: bytes) -> bytes | None:
        """Answer a greeting of the latest version before the SDK is there; older ones differ in many ways."""
        if self._greeting is not None and self._greeted is None and _INITIALIZED in text:
            if not _is_initialized(text):
                return None
            self._greeted = self._greeting
            return b""
        request = raw_json.request(text)
        if request is None or request.method != "initialize" or self._greeting is not None:
            return None
        try:
            params = exactjson.parse_object(bytes(request.params) if isinstance(request.params, raw_json.Raw) else b"")
        except exactjson.NotJson:
            return None
        capabilities = exactjson.as_object(params.get("capabilities"))
        if not _is_plain_greeting(params) or capabilities is None:
            return None
        self._greeting = client = identify(self._endpoint.current, session=self.session, capabilities=capabilities)
        client.is_new, client.protocol_version = True, LATEST_HANDSHAKE
        info = params.get("clientInfo")
        client.name, client.version = name_in(info), version_in(info)
        result = {
            "capabilities": {**self._front.capabilities(client), **CAPABILITIES},
            "protocolVersion": LATEST_HANDSHAKE,
            "serverInfo": dict(SERVER_INFO),
            "instructions": self._front.instructions(client),
        }
        return b"".join(answer(request, exactjson.dump(result)))

    def on_initialized(self, client: Client) -> None:
        """The client's handshake is complete; what it was given before the SDK was there may be old by now."""
        before, self._greeted = self._greeted, client
        if before is not None:
            self._rules.resend_list_changed(before)

    def begin(self, text: bytes) -> tuple[bytes, Awaitable[bytes | RawCall | None]] | None:
        """A request's id, and what comes of it; `None` if a line has to take the full path."""
        request = raw_json.request(text)
        begun = self._begin(request, text) if request is not None else Decline.BODY
        if request is None or isinstance(begun, Decline):
            return None
        return bytes(request.id), self._outcome(begun)

    def _begin(self, request: Request, text: bytes) -> Begun | Decline:
        client = self._client(request, text)
        begun = self._rules.begin(client, request) if client is not None else Decline.CLIENT
        if isinstance(begun, Decline):
            self._rules.count(begun)
        return begun

    async def _outcome(self, begun: Begun) -> bytes | RawCall | None:
        """What comes of a request; over a pipe, what was cancelled is not answered."""
        try:
            outcome = await begun
        except CallCancelled:
            return b""
        if isinstance(outcome, list):
            return b"".join(outcome)
        self._rules.count(Decline.HANDED_OVER)
        return outcome

    def is_cancel(self, text: bytes) -> bool:
        """Whether a line cancels a call that is on the fast path."""
        called = cancelled_id(text)
        conversation = self._endpoint.current if self._greeted is None else self._greeted.conversation
        return called is not None and self._rules.cancel(conversation, called)

    def _client(self, request: Request, text: bytes) -> Client | None:
        endpoint = self._endpoint.current
        if self._greeted is not None:
            self._greeted.bind(endpoint.principal)
            # Whoever has greeted us in one era speaks the other only by mistake, or to find out.
            return self._greeted if _MODERN not in text else None
        params = raw_json.members(request.params) if isinstance(request.params, raw_json.Raw) else None
        meta = (params or {}).get("_meta")
        return self._clients.get(endpoint, meta) if meta is not None else None


def _is_plain_greeting(params: dict[str, object]) -> bool:
    """Whether the SDK would have nothing to say against a greeting; it is asked about any that has more to it."""
    info = exactjson.as_object(params.get("clientInfo")) or {}
    able = exactjson.as_object(params.get("capabilities")) or {}
    named = {"name", "version"} <= info.keys() <= {"name", "version", "title"}
    return (
        params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
        and params["protocolVersion"] == LATEST_HANDSHAKE
        and named
        and all(isinstance(word, str) for word in info.values())
        and all(_is_plain_ability(name, value) for name, value in able.items())
    )


def _is_plain_ability(name: str, value: object) -> bool:
    """Whether a capability is one that clients have, and is told as they do."""
    told = exactjson.as_object(value)
    if told is None:
        return False
    if name == "roots":
        return told.keys() <= {"listChanged"} and all(isinstance(flag, bool) for flag in told.values())
    return name in {"sampling", "elicitation"} and all(isinstance(inner, dict) for inner in told.values())


def _is_initialized(text: bytes) -> bool:
    message = raw_json.members(text) or {}
    return (
        message.keys() <= {"jsonrpc", "method", "params"}
        and message.get("jsonrpc") == b'"2.0"'
        and message.get("method") == _INITIALIZED
        and message.get("params", b"{}") == b"{}"
    )
