"""What the transports over HTTP share: an address, a client for it, what signs the requests, and messages sent beside
everything else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypedDict

from pegboard.config import ServerSpec
from pegboard.servers.authorization import Authorization
from pegboard.servers.http.client import HttpResponse, exchange, make_client, read_start
from pegboard.servers.http.pool import ConnectionFailed
from pegboard.servers.http.refusal import REFUSALS, AccessRefused, NeedsAuth, NeedsScope, RequestForbidden, refusal_of
from pegboard.servers.limit import Limit
from pegboard.servers.message import MAX_ERROR_TEXT, cancellation
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.transports.transport import Transport
from pegboard.task_set import TaskSet

AUTHORIZATION = "authorization"
# How long the rest of a refusal is waited for, so that its connection can be used again.
_LAST_WORDS = 1.0


def _ignore(news: object) -> None:
    """Nobody has to know."""


class _KnownSignIn(TypedDict):
    signs_in: bool
    has_sign_in: bool


class HttpTransport(Transport):
    """One server behind an address."""

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper | None = None) -> None:
        del reaper
        assert spec.url is not None
        self._spec = spec
        self._url = spec.url
        self._label = spec.name
        self._client = make_client(spec)
        # What runs beside the requests until the transport is closed.
        self._tasks = TaskSet()
        # The version that every message names once it is negotiated.
        self._version: str | None = None
        # Where the credentials come from, if a sign-in gives them.
        self._authorization: Authorization | None = None
        self._on_sent: Callable[[str], None] = _ignore
        self._on_needs_auth: Callable[[NeedsAuth], None] = _ignore
        self._on_renewal: Callable[[bool], None] = _ignore

    def sign_by(self, authorization: Authorization, on_sent: Callable[[str], None]) -> None:
        """Have every request carry what a sign-in gives."""
        self._authorization, self._on_sent = authorization, on_sent

    def on_needs_auth(self, told: Callable[[NeedsAuth], None]) -> None:
        """Who has to know that nothing goes on before somebody has signed in."""
        self._on_needs_auth = told

    def on_renewal(self, told: Callable[[bool], None]) -> None:
        """Who has to know that other credentials are being fetched."""
        self._on_renewal = told

    async def renew(self, refused: AccessRefused) -> bool:
        """Whether a request that was refused is worth sending once more; if not, whoever has to know is told."""
        refused.is_renewed = await self._renew(refused)
        if not refused.is_renewed:
            self._give_up(refused)
        return refused.is_renewed

    def cancel(self, request_id: int, reason: str) -> None:
        """POST it beside everything else."""
        self._tasks.spawn(self._post_cancellation(request_id, reason))

    async def _post_cancellation(self, request_id: int, reason: str) -> None:
        with contextlib.suppress(Exception):
            async with Limit(30):
                await self.send(cancellation(request_id, reason), None)

    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        principal_id: str = "",
        *,
        may_repeat: bool = True,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """One HTTP exchange; a request whose credentials are refused is sent once more if there are others."""
        if self._authorization is None:
            return exchange(self._client, self._label, method, url, headers, body, principal_id)
        return self._exchange_with(self._authorization, method, url, headers, body, principal_id, may_repeat)

    @asynccontextmanager
    async def _exchange_with(
        self,
        authorization: Authorization,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        principal_id: str,
        may_repeat: bool,
    ) -> AsyncGenerator[HttpResponse]:
        while True:
            if not authorization.is_fresh:
                await authorization.prepare()
            used = self._sign(authorization)
            signed = headers if used is None else {**headers, AUTHORIZATION: used}
            async with exchange(self._client, self._label, method, url, signed, body, principal_id) as response:
                refused = self._refusal_in(response, used)
                if refused is None:
                    yield response
                    return
                await _read_off(response)
            # Of a second refusal only what it wants is noted: fetching one token after another would help nobody.
            is_over = not may_repeat and isinstance(refused, NeedsAuth)
            if is_over or not await self._renew(refused) or not may_repeat:
                # A server may well refuse a stream for reasons of its own.
                if method == "POST" or authorization.needs_sign_in() is not None:
                    self._give_up(refused)
                raise refused
            may_repeat = False

    def _sign(self, authorization: Authorization) -> str | None:
        if (header := authorization.header) is not None:
            self._on_sent(header)
        return header

    def _refusal_in(self, response: HttpResponse, used: str | None) -> AccessRefused | None:
        if response.status_code not in REFUSALS:
            return None
        refused = refusal_of(self._label, response.status_code, response.headers, used, **self._sign_in_known())
        # Other credentials would not help; what else the response says is for whoever asked.
        return None if isinstance(refused, RequestForbidden) else refused

    def _sign_in_known(self) -> _KnownSignIn:
        """Whether a sign-in would be used, and whether there is one as far as the config and earlier ones say."""
        if self._authorization is None:
            return {"signs_in": False, "has_sign_in": False}
        need = self._authorization.needs_sign_in()
        was_used = need is not None and need.reason != "never"
        return {"signs_in": True, "has_sign_in": was_used or self._spec.oauth is not None}

    async def _renew(self, refused: AccessRefused) -> bool:
        if self._authorization is None or isinstance(refused, RequestForbidden):
            return False
        self._on_renewal(True)
        try:
            return await self._authorization.renew(refused.challenge, refused.used)
        finally:
            self._on_renewal(False)

    def _give_up(self, refused: AccessRefused) -> None:
        if self._authorization is None:
            return
        if isinstance(refused, NeedsAuth):
            self._on_needs_auth(refused)
        elif isinstance(refused, NeedsScope) and self._authorization.needs_sign_in() is None:
            refused.withdraw_offer()


async def _read_off(response: HttpResponse) -> None:
    """Read what is left of a refusal, if that is little."""
    with contextlib.suppress(TimeoutError, ConnectionFailed):
        async with Limit(_LAST_WORDS):
            await read_start(response, MAX_ERROR_TEXT)
