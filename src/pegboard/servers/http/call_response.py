"""The response to a call that was posted: it is taken as it comes, without a task that would wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from pegboard import exactjson
from pegboard.protocol.portions import LARGE
from pegboard.servers import large
from pegboard.servers.backlog import work_off
from pegboard.servers.errors import unusable_answer
from pegboard.servers.gathered_bytes import GatheredBytes
from pegboard.servers.http.client import Redirected, Unreachable, media_type
from pegboard.servers.http.pool import ConnectionFailed, Exchange
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import MAX_ERROR_TEXT, MAX_MESSAGE_BYTES
from pegboard.servers.sse_parser import EventTooLarge, SseParser

# How long a stream that has brought its answer may take to end, so that its connection can be used again.
_LAST_WORDS = 1.0
NOT_ANSWERED = "no answer to the request that was sent"


class CallSender(Protocol):
    """The transport that a call was posted on."""

    is_redirected: bool

    def remember(self, headers: Mapping[str, str]) -> None: ...

    def refusal(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, used: str | None = None
    ) -> Exception: ...

    def resume(self, request_id: int, stream: SseParser) -> None: ...

    def forget(self, request_id: int) -> None: ...


class CallResponse:
    """The answer of one call: JSON, a stream of events, or a refusal."""

    exchange: Exchange
    # What was sent as `Authorization` by a sign-in.
    used: str | None = None

    def __init__(self, transport: CallSender, peer: JsonRpcPeer, label: str, request_id: int) -> None:
        self._wire = transport
        self._peer = peer
        self._label = label
        self._request_id = request_id
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._body = GatheredBytes()
        self._size = 0
        self._stream: SseParser | None = None
        self._ending: asyncio.TimerHandle | None = None

    @property
    def principal_id(self) -> str:
        """Whom the call is for."""
        return self._peer.principal_of(self._request_id)

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        if self._ending is not None:
            self._ending.cancel()
        self.exchange.abandon()

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        """What kind of answer it is."""
        self._status, self._headers = status, headers
        if status >= 300:
            return
        self._wire.remember(headers)
        kind = media_type(headers)
        if kind == "text/event-stream":
            self._stream = SseParser(MAX_MESSAGE_BYTES)
        elif kind != "application/json":
            self._fail(unusable_answer(self._label, f"content of type {kind or 'unknown'}"))

    def on_data(self, part: bytes) -> Iterable[object]:
        """A part of it."""
        if self._stream is not None:
            return self._read(self._stream, part)
        self._size += len(part)
        if self._status < 300 or self._size - len(part) <= MAX_ERROR_TEXT:
            self._body.add(part)
        if self._size > MAX_MESSAGE_BYTES:
            self._fail(unusable_answer(self._label, f"larger than {MAX_MESSAGE_BYTES:,} bytes"))
        return ()

    def _read(self, stream: SseParser, part: bytes) -> Iterator[object]:
        try:
            for event in stream.feed(part):
                if event is not None and event.data and event.name == "message":
                    yield from self._peer.deliver_text(event.data, self._request_id)
                yield None
        except EventTooLarge as exc:
            self._fail(unusable_answer(self._label, str(exc)))
            return
        if self._ending is None and not self._peer.waits_for(self._request_id):
            self._ending = asyncio.get_running_loop().call_later(_LAST_WORDS, self._leave)

    def on_complete(self) -> None:
        """All of it was there."""
        self._close()
        if self._status in {301, 302, 303, 307, 308}:
            self._wire.is_redirected = True
            self._peer.fail(self._request_id, Redirected(self._label))
        elif self._status >= 300:
            body = self._body.take()
            refusal = self._wire.refusal(self._status, body, self._headers, used=self.used)
            self._peer.fail(self._request_id, refusal)
        elif self._stream is not None:
            self._resume_stream(self._stream, "the stream ended before the answer came")
        else:
            body = self._body.take()
            # What is usual takes one short step.
            if len(body) > LARGE or not self._peer.settle_verbatim(body, self._request_id):
                work_off(self._deliver(body))

    def on_failure(self, error: ConnectionFailed) -> None:
        """The connection broke, or there was none."""
        self._close()
        if self._stream is not None and not error.refused:
            self._resume_stream(self._stream, str(error))
        else:
            self._peer.fail(self._request_id, Unreachable(self._label, str(error), refused=error.refused))

    def _deliver(self, body: bytes) -> Iterator[None]:
        try:
            yield from deliver_body(self._peer, self._label, body, self._request_id)
        except Exception as exc:
            self._peer.fail(self._request_id, exc)

    def _resume_stream(self, stream: SseParser, reason: str) -> None:
        if not self._peer.waits_for(self._request_id):
            return
        if stream.last_id is not None:
            self._wire.resume(self._request_id, stream)
        else:
            self._peer.fail(self._request_id, Unreachable(self._label, reason))

    def _leave(self) -> None:
        self._close()
        self.exchange.abandon()

    def _fail(self, exc: Exception) -> None:
        self._leave()
        self._peer.fail(self._request_id, exc)

    def _close(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._wire.forget(self._request_id)


def deliver_body(peer: JsonRpcPeer, label: str, body: bytes, request_id: int) -> Iterator[None]:
    """Take a whole body, which has to bring the answer to its request; in small steps."""
    if len(body) > large.SURELY_FEW:
        yield from peer.deliver_text(body, request_id)
    elif not peer.settle_verbatim(body):
        yield from _read(peer, label, body, request_id)
    if peer.waits_for(request_id):
        raise unusable_answer(label, NOT_ANSWERED)


def _read(peer: JsonRpcPeer, label: str, body: bytes, request_id: int) -> Iterator[None]:
    try:
        message = yield from exactjson.parse_in_steps(body)
    except exactjson.NotJson as exc:
        raise unusable_answer(label, f"not valid JSON ({exc})") from None
    for single in exactjson.as_list(message) or [message]:
        peer.deliver(single, request_id)
        yield
