"""Authentication of requests over HTTP: nothing behind it sees a request whose principal is not known.

Who sends a request is asked at its head, so that nothing is kept for whoever is not let in, and again when its body is
whole: a body can be held back for minutes, and the token be removed meanwhile.
When a principal is revoked, whatever is under way for it ends; when its token expires, its standing streams do, and
those of a page end with the session of its cookie. Other rules hold from the next request on.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.access.principal import ANONYMOUS, Principal
from pegboard.access.settings import AuthSettings
from pegboard.audit.audit import Audit, acting_principal
from pegboard.audit.composer import address_class
from pegboard.audit.record import REFUSED
from pegboard.audit.refusals import Refusal
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.page_cookie import headers_to_forget, list_cookies
from pegboard.auth.refused import AuthRefused, invalid_token
from pegboard.clients.endpoint import PRINCIPAL_KEY
from pegboard.clients.locality import share_holder
from pegboard.clients.request_context import STARTED_CALL
from pegboard.gateway import guard
from pegboard.gateway.body import ClientGone, TooLarge, has_body, read_body, replay
from pegboard.gateway.connect_links import CONNECT
from pegboard.gateway.oauth_callback import CALLBACK, LOOPBACK_CALLBACK
from pegboard.gateway.oauth_client_document import CLIENT_DOCUMENT
from pegboard.gateway.page.static_files import HEADERS, STATIC
from pegboard.gateway.protected_resource import WELL_KNOWN, challenge
from pegboard.gateway.rest.pages import page
from pegboard.metrics import Metrics
from pegboard.oauth.issuer_addresses import CLIENT_DOCUMENTS
from pegboard.result import ToolError, ToolErrorCode, ToolResult
from pegboard.secret_forms import redact_text

# What has to be there for whoever is not known yet.
# The page is a client of REST: it has nothing of its own that is not in the package.
_OPEN = frozenset({"/", "/health", CLIENT_DOCUMENT})
_TOKENS = "/api/tokens"
_API = "/api/"
# What REST answers is data for whoever asked, and nobody else's: no page, no script, and nothing to keep.
_PRIVATE = {
    b"cache-control": b"no-store",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
}
# Characters of a path that a record has.
_LONGEST_PATH = 200
_OPEN_BELOW = (WELL_KNOWN, CONNECT, CALLBACK, LOOPBACK_CALLBACK, CLIENT_DOCUMENTS, STATIC)
_REVOKED = "the bearer token is not valid any more"
_NO_BODY = "a request for this address may have no body"
# How long the answer to a call may take that says why the call ends.
LAST_WORDS = 1.0


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
        if scope["path"].startswith(_API):
            send = _sending_private(send)
        if is_open(scope["path"]):
            await self._answer_anybody(scope, receive, send)
            return
        try:
            principal, receive = await self._let_in(scope, receive)
        except AuthRefused as exc:
            await self._refuse(exc, scope, receive, send)
        except TooLarge as exc:
            await guard.refusal_response(413, str(exc))(scope, receive, send)
        except ClientGone:
            # Nobody waits for an answer.
            return
        else:
            scope[PRINCIPAL_KEY] = principal
            acting_principal.set(principal)
            await self._answer_while_valid(principal, scope, receive, send)

    async def _answer_anybody(self, scope: Scope, receive: Receive, send: Send) -> None:
        if has_body(scope["headers"]):
            # Nothing is kept for whoever is not known.
            await guard.refusal_response(413, _NO_BODY, {"connection": "close"})(scope, receive, send)
            return
        scope[PRINCIPAL_KEY] = ANONYMOUS
        await self._app(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive) -> tuple[Principal, Receive]:
        """Who sends a request, and what receives its body, which is whole by then."""
        is_let_in = STARTED_CALL in scope
        if is_let_in:
            # The fast path has begun a call of this one.
            principal: Principal = scope[PRINCIPAL_KEY]
        else:
            principal = await self._authenticator.authenticate(scope)
            if has_body(scope["headers"]):
                generation = self._authenticator.generation
                receive = replay(await _read_while_let_in(principal, receive), receive)
                if not self._authenticator.is_current(principal, generation):
                    principal = await self._authenticator.authenticate(scope)
        if principal.is_revoked:
            raise invalid_token(_REVOKED)
        return principal, receive

    async def _answer_while_valid(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        loop, begun = asyncio.get_running_loop(), False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        left = principal.valid_until - time.time()
        # A call that is under way may finish; what would stand for ever ends.
        limit = asyncio.timeout(None if left == math.inf or not _stands(scope) else max(left, 0.0))

        def end(successor: Principal | None) -> None:
            # A limit that has just run out ends the request by itself.
            with contextlib.suppress(RuntimeError):
                if successor is None:
                    if _is_cut(scope):
                        # What has begun to be answered is told why it ends, before it is cut.
                        limit.reschedule(loop.time() + (LAST_WORDS if begun and not _stands(scope) else 0.0))
                elif _stands(scope):
                    left = successor.valid_until - time.time()
                    is_over = successor.has_other_secret or not self._authenticator.keeps(successor, scope)
                    after = 0.0 if is_over else None if left == math.inf else max(left, 0.0)
                    limit.reschedule(None if after is None else loop.time() + after)

        def end_session() -> None:
            if _stands(scope):
                with contextlib.suppress(RuntimeError):
                    limit.reschedule(loop.time())

        try:
            async with limit:
                forget, cookie = principal.on_end(end), self._authenticator.cookie
                forget_session = None if cookie is None else cookie.on_end(scope, end_session)
                try:
                    await self._app(scope, receive, sending)
                finally:
                    forget()
                    if forget_session is not None:
                        forget_session()
        except TimeoutError:
            if not limit.expired():
                raise
            if begun:
                # What has begun as a stream ends as one, so that its client comes back with another token.
                with contextlib.suppress(RuntimeError):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await self._refuse(invalid_token(_REVOKED, principal=principal), scope, receive, send)

    async def _refuse(self, refused: AuthRefused, scope: Scope, receive: Receive, send: Send) -> None:
        self._metrics.refused[refused.kind] += 1
        note_refusal(self._audit, refused, scope)
        response = refusal_response(refused, scope, self._settings())
        if refused.status == 401 and _is_browser(scope):
            challenged = {"www-authenticate": response.headers["www-authenticate"]}
            response = HTMLResponse(page("locked"), 401, {**HEADERS, **challenged})
        if refused.status == 401 and list_cookies(scope):
            # What lets nobody in need not be sent again.
            for header in headers_to_forget(scope):
                response.headers.append("set-cookie", header)
        await response(scope, receive, send)


def _sending_private(send: Send) -> Send:
    """Send answers with what keeps them to whoever asked."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            others = [(name, value) for name, value in message["headers"] if name.lower() not in _PRIVATE]
            message = {**message, "headers": [*others, *_PRIVATE.items()]}
        await send(message)

    return sending


async def _read_while_let_in(principal: Principal, receive: Receive) -> list[Message]:
    """All of a body; that of a principal that is revoked meanwhile is not waited for."""
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

    def end(successor: Principal | None) -> None:
        with contextlib.suppress(RuntimeError):
            if successor is None:
                limit.reschedule(loop.time())

    forget = principal.on_end(end)
    try:
        async with limit:
            return await read_body(receive)
    except TimeoutError:
        if not limit.expired():
            raise
        raise invalid_token(_REVOKED, principal=principal) from None
    finally:
        forget()


def _is_browser(scope: Scope) -> bool:
    """Whether a person waits for a page; nothing that speaks MCP or REST asks for HTML."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return scope["method"] == "GET" and b"text/html" in accepted.lower()


def _stands(scope: Scope) -> bool:
    """Whether a request is for a stream that would stand for ever; what its header says, its body says too."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


def _is_cut(scope: Scope) -> bool:
    """Whether a request ends with its principal. Whoever gives its own token another secret has to be told it."""
    return not str(scope["path"]).startswith(_TOKENS)


def is_open(path: str) -> bool:
    """Whether an address is there for everybody."""
    return path in _OPEN or any(path == each or path.startswith(f"{each}/") for each in _OPEN_BELOW)


def note_refusal(audit: Audit, refused: AuthRefused, scope: Scope) -> None:
    """Record that somebody was not let in; nothing of what they brought but whom they claim to be."""
    peer = scope.get("client")
    holder = share_holder(str(peer[0]) if peer else "")
    # Somebody may have put a token there.
    path = redact_text(scope["path"])
    detail = f"{scope['method']} {path if len(path) <= _LONGEST_PATH else f'{path[: _LONGEST_PATH - 1]}…'}"
    detail = f"{detail}; {refused.claim}" if refused.claim else detail
    audit.note_refusal(holder, Refusal(refused.principal, f"{REFUSED}{refused.word}", address_class(holder), detail))


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
