"""Step-up: a call of a tool that needs more scopes than its token has is refused as HTTP says it (403 with
`insufficient_scope`), so that the client can get a better token. Other calls go on.

It is judged before the SDK, which has begun its answer when it hears of the call. Where the body can be read in two
ways, `Calls` has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard import exactjson
from pegboard.access.principal import Principal
from pegboard.access.settings import AuthSettings
from pegboard.auth.refused import AuthRefused
from pegboard.board import Board
from pegboard.clients.client import Client
from pegboard.clients.endpoint import PRINCIPAL_KEY, endpoint_of
from pegboard.gateway import guard
from pegboard.gateway.authentication import note_refusal, refusal_response
from pegboard.gateway.body import TooLarge, read_body, replay
from pegboard.listing.view import EVERYTHING
from pegboard.protocol import raw_json
from pegboard.tool import RelayingTool

_REST, _CALL = "/api/tools/", "/call"
# A call: the tool's name, and its arguments as they stand in the body.
_Call = tuple[str, bytes]


class StepUp:
    """Stands behind authentication, and before whatever calls tools."""

    def __init__(self, app: ASGIApp, *, board: Board) -> None:
        self._app = app
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not _needs_scopes(scope[PRINCIPAL_KEY]):
            await self._app(scope, receive, send)
            return
        try:
            messages = await read_body(receive)
        except TooLarge as exc:
            await guard.refusal_response(413, str(exc))(scope, receive, send)
            return
        body = b"".join(message.get("body", b"") for message in messages)
        if missing := self._missing_scopes(scope, body):
            wanted = " ".join(sorted(missing))
            refused = AuthRefused(
                403,
                f"this call needs these scopes: {wanted}",
                error="insufficient_scope",
                scopes=missing,
                principal=scope[PRINCIPAL_KEY],
            )
            self._board.metrics.refused[refused.kind] += 1
            note_refusal(self._board.audit, refused, scope)
            await refusal_response(refused, scope, self._settings())(scope, receive, send)
            return
        await self._app(scope, replay(messages, receive), send)

    def _settings(self) -> AuthSettings:
        return self._board.settings.auth

    def _missing_scopes(self, scope: Scope, body: bytes) -> frozenset[str]:
        endpoint = endpoint_of(scope)
        client = Client(endpoint, filter=replace(EVERYTHING, access=endpoint.principal.access))
        missing = (self._missing_for(client, name, arguments) for name, arguments in _calls(scope["path"], body))
        return frozenset[str]().union(*missing)

    def _missing_for(self, client: Client, name: str, arguments: bytes) -> frozenset[str]:
        """By the name that was said, be there such a tool or not, and by the tool's own."""
        tool = self._board.gate.tool(name, client.filter)
        missing = client.missing_scopes(tool or name)
        if tool is not None and isinstance(tool.tool, RelayingTool):
            inner = _text((raw_json.members(arguments) or {}).get("name", b""))
            other = self._board.gate.tool(inner, client.filter)
            missing |= client.missing_scopes(other or inner)
        return missing


def _needs_scopes(principal: Principal) -> bool:
    return principal.kind == "jwt" and principal.access is not None and principal.access.needs_scopes


def _calls(path: str, body: bytes) -> Iterator[_Call]:
    """The calls that a request asks for."""
    if path.startswith(_REST) and path.endswith(_CALL):
        name = path.removeprefix(_REST).removesuffix(_CALL)
        yield name, (raw_json.members(body) or {}).get("arguments", b"")
    elif path.startswith("/mcp"):
        batch = raw_json.batch(body)
        for message in [body] if batch is None else map(bytes, batch):
            envelope = raw_json.members(message) or {}
            params = raw_json.members(envelope.get("params", b"")) or {}
            if _text(envelope.get("method", b"")) == "tools/call":
                yield _text(params.get("name", b"")), params.get("arguments", b"")


def _text(value: bytes) -> str:
    """The text that a value is; none if it is another."""
    try:
        text = exactjson.parse(value)
    except exactjson.NotJson:
        return ""
    return text if isinstance(text, str) else ""
