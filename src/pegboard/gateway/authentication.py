"""Authentication of requests over HTTP: nothing behind it sees a request whose principal is not known.

When a principal is revoked, whatever is under way for it ends; when its token expires, its standing streams do.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.access.principal import ANONYMOUS, Principal
from pegboard.access.settings import AuthSettings
from pegboard.audit.audit import Audit, acting_principal
from pegboard.audit.composer import address_class
from pegboard.audit.record import REFUSED
from pegboard.audit.refusals import Refusal
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.refused import AuthRefused, invalid_token
from pegboard.clients.endpoint import PRINCIPAL_KEY
from pegboard.clients.locality import share_holder
from pegboard.gateway.protected_resource import WELL_KNOWN, challenge
from pegboard.metrics import Metrics
from pegboard.result import ToolError, ToolErrorCode, ToolResult

# What has to be there for whoever is not known yet.
_OPEN = frozenset({"/health"})
_TOKENS = "/api/tokens"
# Characters of a path that a record has.
_LONGEST_PATH = 200
_OPEN_BELOW = (WELL_KNOWN,)


class Authentication:
    """Stands before every route, behind the guard."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        settings: Callable[[], AuthSettings],
        metrics: Metrics,
        audit: Audit,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._settings = settings
        self._metrics = metrics
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_open(scope["path"]):
            scope[PRINCIPAL_KEY] = ANONYMOUS
            await self._app(scope, receive, send)
            return
        try:
            principal = await self._authenticator.authenticate(scope)
        except AuthRefused as exc:
            await self._refuse(exc, scope, receive, send)
            return
        scope[PRINCIPAL_KEY] = principal
        acting_principal.set(principal)
        if principal.kind in {"local", "anonymous"} and principal.access is None:
            await self._app(scope, receive, send)
        else:
            await self._answer_while_valid(principal, scope, receive, send)

    async def _answer_while_valid(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        loop, begun = asyncio.get_running_loop(), False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        left = principal.valid_until - time.time()
        # A call that is under way may finish; what would stand for ever ends.
        limit = asyncio.timeout(None if left == math.inf or not _stands(scope) else max(left, 0.0))

        def end() -> None:
            # A limit that has just run out ends the request by itself.
            with contextlib.suppress(RuntimeError):
                if _is_cut(scope):
                    limit.reschedule(loop.time())

        try:
            async with limit:
                forget = principal.on_end(end)
                try:
                    await self._app(scope, receive, sending)
                finally:
                    forget()
        except TimeoutError:
            if not limit.expired():
                raise
            if begun:
                # What has begun as a stream ends as one, so that its client comes back with another token.
                with contextlib.suppress(RuntimeError):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                refused = invalid_token("the bearer token is not valid any more")
                await self._refuse(refused, scope, receive, send)

    async def _refuse(self, refused: AuthRefused, scope: Scope, receive: Receive, send: Send) -> None:
        self._metrics.refused[refused.kind] += 1
        note_refusal(self._audit, refused.status, refused.error, scope)
        await refusal_response(refused, scope, self._settings())(scope, receive, send)


def _stands(scope: Scope) -> bool:
    """Whether a request is for a stream that would stand for ever; what its header says, its body says too."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


def _is_cut(scope: Scope) -> bool:
    """Whether a request ends with its principal. Whoever gives its own token another secret has to be told it."""
    return not str(scope["path"]).startswith(_TOKENS)


def is_open(path: str) -> bool:
    """Whether an address is there for everybody."""
    return path in _OPEN or any(path == each or path.startswith(f"{each}/") for each in _OPEN_BELOW)


def note_refusal(audit: Audit, status: int, error: str, scope: Scope, principal: Principal = ANONYMOUS) -> None:
    """Record that somebody was not let in; nothing of what they brought."""
    peer = scope.get("client")
    holder = share_holder(str(peer[0]) if peer else "")
    path: str = scope["path"]
    detail = f"{scope['method']} {path if len(path) <= _LONGEST_PATH else f'{path[: _LONGEST_PATH - 1]}…'}"
    reason = error or {401: "no_credentials", 403: "forbidden", 429: "limit"}.get(status, str(status))
    audit.note_refusal(holder, Refusal(principal, f"{REFUSED}{reason}", address_class(holder), detail))


def refusal_response(refused: AuthRefused, scope: Scope, settings: AuthSettings) -> Response:
    """The refusal as HTTP says it, in the one shape of our errors."""
    headers: dict[str, str] = {}
    if refused.status in {401, 403}:
        headers["www-authenticate"] = challenge(refused, scope, settings)
    if refused.retry_after is not None:
        headers["retry-after"] = str(max(math.ceil(refused.retry_after), 1))
    code = ToolErrorCode.RATE_LIMITED if refused.status == 429 else ToolErrorCode.UNAVAILABLE
    if refused.status == 400:
        code = ToolErrorCode.INVALID_INPUT
    error = ToolError(code, refused.reason, retryable=refused.status in {429, 503})
    return JSONResponse(ToolResult[None].failed(error).to_dict(), refused.status, headers)
