"""Messages over streamable HTTP: each request is a POST whose answer is JSON or a stream of events.

In the handshake era a session id goes along and a standing GET stream carries what the server says by
itself. In 2026-07-28 every POST stands alone and closing it is how a call is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.log import logger
from pegboard.pace import Pace
from pegboard.protocol.eras import LATEST_MODERN, Era
from pegboard.protocol.headers import request_headers
from pegboard.result import ToolFailure
from pegboard.servers.errors import RpcError, rpc_error, unusable_answer
from pegboard.servers.http.call_response import CallResponse, deliver_body
from pegboard.servers.http.client import (
    DirectClient,
    HttpResponse,
    SessionExpired,
    Unreachable,
    WrongStatus,
    check_status,
    media_type,
    read_body,
    read_start,
)
from pegboard.servers.http.pool import ConnectionFailed
from pegboard.servers.http.refusal import REFUSALS, refusal_of
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.limit import Limit
from pegboard.servers.message import MAX_ERROR_TEXT, MAX_MESSAGE_BYTES, Message
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.sse_parser import EventTooLarge, SseParser
from pegboard.servers.transports.http_transport import AUTHORIZATION, HttpTransport

_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_LAST_EVENT = "last-event-id"
_RESUME_TRIES = 2
_RESUME_PAUSE = 1.0
_SHORTEST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0
# What servers of the older HTTP+SSE transport answer to a POST at their address.
_NOT_STREAMABLE = frozenset({400, 404, 405, 406})
_SENT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class StreamableHttpTransport(HttpTransport):
    """One server behind an address; each message of it comes with the request that it belongs to, or with none."""

    is_duplex = False
    takes_headers = True
    needs_heartbeat = True

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper | None = None) -> None:
        super().__init__(spec, reaper)
        self._peer: JsonRpcPeer | None = None
        self._session: str | None = None
        self._direct = self._client if isinstance(self._client, DirectClient) else None
        self._responses: dict[int, CallResponse] = {}
        # What takes up a stream that broke off before the answer of a request that was put.
        self._resuming: dict[int, asyncio.Task[None]] = {}
        self._kept_head: tuple[object, bytes] | None = None
        # Whether it answered with a redirect, which only the full path follows.
        self.is_redirected = False
        # Where each request stands alone, to close its response is to cancel it.
        self._is_modern = False

    async def start(self, peer: JsonRpcPeer) -> None:
        """Nothing is opened before the first message."""
        self._peer = peer

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        """POST one message; a request's answer has been delivered when this returns."""
        request_id = message.get("id") if "method" in message else None
        sent = {**_SENT, **self._session_headers(), **(headers or {})}
        assert self._peer is not None
        whose, may_repeat = self._peer.principal_of(request_id), not self._peer.is_repetition(request_id)
        text = exactjson.dump(message)
        async with self._exchange("POST", self._url, sent, text, whose, may_repeat=may_repeat) as response:
            if response.status_code >= 400:
                await self._raise_refusal(response, request_id)
                return
            if session := response.headers.get(_SESSION):
                self._session = session
            if request_id is None:
                return
            stream = await self._receive(response, request_id)
        if stream is not None:
            await self._resume(request_id, stream)

    @property
    def is_ready(self) -> bool:
        """Whether a request can be posted without more ado: no proxy, no redirect to be followed, no token to fetch."""
        return (
            self._direct is not None
            and not self.is_redirected
            and (self._authorization is None or self._authorization.is_fresh)
        )

    def send_raw(self, request_id: int, text: bytes, name: str | None) -> None:
        """POST a request that is ready to go; `name` is the tool's, where the era wants it in a header."""
        assert self._direct is not None
        assert self._peer is not None
        response = CallResponse(self, self._peer, self._label, request_id)
        self._responses[request_id] = response
        if self._authorization is not None:
            response.used = self._authorization.header
        try:
            response.exchange = self._direct.send(self._head(name), text, response)
        except ConnectionFailed as exc:
            response.on_failure(exc)

    def forget(self, request_id: int) -> None:
        """Nothing more comes of a request that was put."""
        self._responses.pop(request_id, None)

    def remember(self, headers: Mapping[str, str]) -> None:
        """Keep what an answer wants to hear again."""
        if session := headers.get(_SESSION):
            self._session = session
        if self._direct is not None and "set-cookie" in headers:
            self._direct.remember(headers)

    def _head(self, name: str | None) -> bytes:
        """The head of a POST; it changes with the session and the credentials alone, and is written once."""
        assert self._direct is not None
        authorization = self._authorization
        version = None if authorization is None else authorization.version
        made_of = (self._session, self._version, self._direct.changes, name is None, version)
        if self._kept_head is None or self._kept_head[0] != made_of:
            headers = {**_SENT, **self._session_headers()}
            if name is not None:
                headers |= {_VERSION: LATEST_MODERN, "mcp-method": "tools/call"}
            if authorization is not None and (used := self._sign(authorization)) is not None:
                headers[AUTHORIZATION] = used
            self._kept_head = (made_of, self._direct.head("POST", self._url, headers))
        head = self._kept_head[1]
        return head if name is None else b"%bmcp-name: %b\r\n" % (head, header_name(name))

    def cancel(self, request_id: int, reason: str) -> None:
        """In the handshake era a notification says so; later on, the closed stream has said it."""
        if (response := self._responses.pop(request_id, None)) is not None:
            response.abandon()
        if (resuming := self._resuming.pop(request_id, None)) is not None:
            resuming.cancel()
        if not self._is_modern:
            super().cancel(request_id, reason)

    def on_negotiated(self, era: Era, version: str) -> None:
        """In the handshake era every later message names the version; later on, each says it by itself."""
        self._is_modern = era == "modern"
        self._version = None if self._is_modern else version

    def listen(self, on_gap: Callable[[], None] = lambda: None) -> None:
        """Open the standing stream of the handshake era; `on_gap` is told when something may have been missed."""
        self._tasks.spawn(self._standing_stream(on_gap))

    def alternative(self, failure: ToolFailure, era: Era | None) -> tuple[ServerSpec, Era] | None:
        """An address without a `type` may be one of the older HTTP+SSE servers."""
        del era
        if not self._spec.transport_guessed or not isinstance(failure, WrongStatus):
            return None
        return (replace(self._spec, transport="sse"), "handshake") if failure.status in _NOT_STREAMABLE else None

    async def close(self) -> None:
        """End the session politely, and the connections."""
        await self._tasks.close()
        if self._session is not None:
            with contextlib.suppress(Exception):
                async with Limit(2), self._exchange("DELETE", self._url, self._session_headers()) as response:
                    await read_body(response, self._label)
        await self._client.close()

    def _session_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self._session is not None:
            headers[_SESSION] = self._session
        if self._version is not None:
            headers[_VERSION] = self._version
        return headers

    async def _raise_refusal(self, response: HttpResponse, request_id: int | None) -> None:
        body = await read_start(response, MAX_ERROR_TEXT)
        raise self.refusal(response.status_code, body, response.headers, is_request=request_id is not None)

    def refusal(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        is_request: bool = True,
        used: str | None = None,
    ) -> Exception:
        """A 4xx or 5xx: the server's own JSON-RPC error if there is one, with the pause that the status asks for; else
        what the status means."""
        if status == 404 and self._session is not None:
            return SessionExpired(self._label)
        error = _error_in(body)
        if status in REFUSALS:
            words = error.message if error is not None else ""
            return refusal_of(self._label, status, headers, used, words=words, **self._sign_in_known())
        if error is None or not is_request:
            return WrongStatus(self._label, status, headers)
        refusal = WrongStatus(self._label, status, headers, error.message)
        if refusal.error.retry_after:
            error.refusal = refusal
        return error

    async def _receive(self, response: HttpResponse, request_id: int) -> SseParser | None:
        """Deliver the answer; a stream that broke off before it is given back."""
        assert self._peer is not None
        kind = media_type(response.headers)
        if kind == "application/json":
            body = await read_body(response, self._label)
            await Pace().through(deliver_body(self._peer, self._label, body, request_id))
            return None
        if kind != "text/event-stream":
            raise unusable_answer(self._label, f"content of type {kind or 'unknown'}")
        stream = SseParser(MAX_MESSAGE_BYTES)
        await self._read_events(response, stream, request_id)
        return stream if self._peer.waits_for(request_id) else None

    async def _read_events(self, response: HttpResponse, stream: SseParser, request_id: int | None) -> None:
        assert self._peer is not None
        try:
            async for part in response.aiter_bytes():
                pace = Pace()
                for event in stream.feed(part):
                    if event is not None and event.data and event.name == "message":
                        await pace.through(self._peer.deliver_text(event.data, request_id))
                    if pace.is_over:
                        await pace.rest()
                if request_id is not None and not self._peer.waits_for(request_id):
                    return
        except EventTooLarge as exc:
            raise unusable_answer(self._label, str(exc)) from None
        except ConnectionFailed as exc:
            if stream.last_id is None:
                raise Unreachable(self._label, str(exc) or type(exc).__name__) from exc

    def resume(self, request_id: int, stream: SseParser) -> None:
        """Take up a stream that ended before its answer, beside everything else."""
        task = self._resuming[request_id] = self._tasks.spawn(self._resume_or_fail(request_id, stream))
        task.add_done_callback(lambda _: self._resuming.pop(request_id, None))

    async def _resume_or_fail(self, request_id: int, stream: SseParser) -> None:
        assert self._peer is not None
        try:
            await self._resume(request_id, stream)
        except Exception as exc:
            self._peer.fail(request_id, exc)

    async def _resume(self, request_id: int, stream: SseParser) -> None:
        """A stream that ended before the answer is taken up again where it broke off, as often as it gets further."""
        assert self._peer is not None
        failures = 0
        while stream.last_id is not None and failures < _RESUME_TRIES:
            await asyncio.sleep(_pause(stream))
            before = stream.last_id
            with contextlib.suppress(WrongStatus, Unreachable):
                await self._read_standing(stream, request_id)
            if not self._peer.waits_for(request_id):
                return
            failures = 0 if stream.last_id != before else failures + 1
        raise Unreachable(self._label, "the stream ended before the answer came")

    async def _read_standing(self, stream: SseParser, request_id: int | None) -> None:
        headers = {"accept": "text/event-stream", **self._session_headers()}
        if stream.last_id is not None:
            headers[_LAST_EVENT] = stream.last_id
        async with self._exchange("GET", self._url, headers) as response:
            check_status(response, self._label)
            if media_type(response.headers) != "text/event-stream":
                raise WrongStatus(self._label, 405)
            await self._read_events(response, stream, request_id)

    async def _standing_stream(self, on_gap: Callable[[], None]) -> None:
        """What the server says by itself; a server that offers no such stream answers 405 and is fine."""
        assert self._peer is not None
        stream = SseParser(MAX_MESSAGE_BYTES)
        failures = 0
        while not self._peer.lost.done():
            try:
                await self._read_standing(stream, None)
                failures = 0
            except (WrongStatus, Unreachable) as exc:
                failures += 1
                if not self._goes_on(exc, failures):
                    return
            except Exception as exc:
                failures += 1
                logger().warning("server.stream.ended", server=self._label, error=self._peer.excerpt(exc))
            await asyncio.sleep(min(_pause(stream) * 2**failures, _LONGEST_PAUSE))
            if stream.last_id is None:
                # What was said meanwhile cannot be had again.
                on_gap()

    def _goes_on(self, exc: WrongStatus | Unreachable, failures: int) -> bool:
        """Whether the standing stream is worth another try; a server that is gone is lost."""
        assert self._peer is not None
        if isinstance(exc, WrongStatus):
            if exc.status == 404 and self._session is not None:
                self._peer.close_with("it ended the session")
            return exc.status >= 500 or exc.status == 429
        if failures > _RESUME_TRIES:
            self._peer.close_with(str(exc))
        return failures <= _RESUME_TRIES


@lru_cache(maxsize=4096)
def header_name(tool: str) -> bytes:
    """A tool's name as the header that names it."""
    return request_headers(LATEST_MODERN, "tools/call", {"name": tool})["mcp-name"].encode("latin-1")


def _pause(stream: SseParser) -> float:
    """How long to wait before a stream is opened again: as the server wishes, within reason."""
    return _RESUME_PAUSE if stream.retry is None else min(max(stream.retry, _SHORTEST_PAUSE), _LONGEST_PAUSE)


def _error_in(body: bytes) -> RpcError | None:
    if len(body) > MAX_ERROR_TEXT:
        return None
    try:
        message = exactjson.parse_object(body)
    except exactjson.NotJson:
        return None
    error = exactjson.as_object(message.get("error"))
    return rpc_error(error) if error and isinstance(error.get("code"), int) else None
