"""The fast path: plain requests over HTTP are answered where their bytes come in; all others are uvicorn's.

A request that may be plain is read to its end without an application being started for it. If it is plain, its
answer is written at once. If it is not, or turns out not to be, uvicorn goes on with it as if nothing had been.
Built on inner parts of uvicorn's `HttpToolsProtocol` and its `RequestResponseCycle`, which tests/gateway/fastpath
watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from pegboard.gateway.body import replay
from pegboard.gateway.bounds import BoundedProtocol
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.fastpath.http import MAX_PLAIN_BODY, HeaderVerdict, HttpFastPath
from pegboard.gateway.fastpath.rules import Answer, Begun
from pegboard.protocol.portions import LARGE, portions_of
from pegboard.protocol.raw_json import Part, Request

# Up to this size it is quicker to copy an answer's pieces into one than to have each of them written.
_SMALL = 64 * 1024


class _BufferedRequest:
    """One plain request, in the place of uvicorn's cycle: as far as uvicorn looks at that, it is one."""

    __slots__ = ("disconnected", "keep_alive", "parts", "received", "response_complete", "scope", "size", "verdict")

    def __init__(self, verdict: HeaderVerdict, scope: Scope, received: int, *, keep_alive: bool) -> None:
        self.verdict = verdict
        # How many bytes had come on its connection when its head was there.
        self.received = received
        self.scope = scope
        self.keep_alive = keep_alive
        self.parts: list[bytes] = []
        self.size = 0
        self.disconnected = self.response_complete = False

    @property
    def message_event(self) -> _BufferedRequest:
        """Whom to tell of a message: nobody waits for one here."""
        return self

    def set(self) -> None:
        """Nobody waits."""

    @property
    def body(self) -> bytes:
        """All of the request's body that was read."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


class FastPathProtocol(BoundedProtocol):
    """uvicorn's protocol with its bounds, which answers plain requests itself."""

    fast_path: HttpFastPath
    _buffered: _BufferedRequest | None = None

    def on_headers_complete(self) -> None:
        """A request's head is there: it is buffered if it may be plain and nothing is before it."""
        self.end_head()
        parser = cast("Any", self.parser)
        if parser.get_method() != b"POST" or not self.url.startswith(b"/mcp") or parser.should_upgrade():
            super().on_headers_complete()
            return
        verdict = self._judge(parser)
        if isinstance(verdict, Decline):
            self.fast_path.rules.count(verdict)
            super().on_headers_complete()
        else:
            keep_alive = parser.should_keep_alive()
            self._buffered = _BufferedRequest(verdict, cast("Scope", self.scope), self._received, keep_alive=keep_alive)

    def on_body(self, body: bytes) -> None:
        """A part of a request's body; one that is too large is left to uvicorn."""
        buffered = self._buffered
        if buffered is None:
            super().on_body(body)
            return
        buffered.parts.append(body)
        buffered.size += len(body)
        if buffered.size > MAX_PLAIN_BODY:
            self._leave(buffered, Decline.BODY)

    def on_message_complete(self) -> None:
        """A request is there."""
        buffered = self._buffered
        if buffered is None:
            super().on_message_complete()
            return
        self.end_body()
        if self._received != buffered.received and not self.fast_path.holds(buffered.verdict):
            # The full path asks who it is now.
            self._leave(buffered, Decline.PRINCIPAL)
            super().on_message_complete()
            return
        begun = self.fast_path.begin(buffered.scope, buffered.verdict, buffered.body)
        if begun is Decline.BODY and self.fast_path.cancels(buffered.verdict, buffered.body):
            self._buffered, self.cycle = None, cast("RequestResponseCycle", buffered)
            self._write(buffered, self._answer_head(buffered, b"202 Accepted", 0), 0)
            return
        if isinstance(begun, Decline):
            self._leave(buffered, begun)
            super().on_message_complete()
            return
        self._buffered = None
        # Whatever comes behind it on this connection waits for its turn.
        self.cycle = cast("RequestResponseCycle", buffered)
        task = self.loop.create_task(self._answer(buffered, *begun))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _has_begun_answer(self) -> bool:
        # While a request is buffered, the cycle is that of the one before it.
        return self._buffered is None and super()._has_begun_answer()

    def _is_free(self) -> bool:
        """Whether a request may be buffered: none is before it, and the client reads what it is sent."""
        busy = cast("Any", self.cycle)
        return (busy is None or busy.response_complete) and not self.flow.write_paused and not self.expect_100_continue

    def _judge(self, parser: Any) -> HeaderVerdict | Decline:
        url = self.url
        if not self._is_free() or b"%" in url or b"#" in url:
            return Decline.CONNECTION
        if parser.get_http_version() != "1.1" or self.root_path:
            return Decline.CONNECTION
        path, _, query = url.partition(b"?")
        scope = cast("Scope", self.scope)
        scope["method"], scope["path"], scope["raw_path"], scope["query_string"] = (
            "POST",
            path.decode("latin-1"),
            path,
            query,
        )
        return self.fast_path.judge(scope)

    def _leave(self, buffered: _BufferedRequest, reason: Decline) -> None:
        """Give a request to uvicorn, with what was read of it so far."""
        self.fast_path.rules.count(reason)
        self._buffered = None
        super().on_headers_complete()
        # In one piece: a client may have sent it in a million.
        super().on_body(buffered.body)

    async def _answer(self, buffered: _BufferedRequest, request: Request, begun: Begun) -> None:
        answer = await self.fast_path.outcome(buffered.verdict, request, begun)
        if isinstance(answer, list):
            size = sum(map(len, answer))
            pieces = [*self._answer_head(buffered, b"200 OK", size), *answer]
            if size > LARGE:
                await self._write_large(buffered, pieces)
            else:
                self._write(buffered, pieces, size)
            return
        cycle = self._cycle(buffered)
        if cast("object", self.cycle) is buffered:
            self.cycle = cycle

        async def go_on(scope: Scope, receive: Receive, send: Send) -> None:
            # The body comes first, also if the client has gone away by now: not every client's leaving ends its call.
            read: Message = {"type": "http.request", "body": buffered.body, "more_body": False}
            await self.fast_path.go_on(buffered.verdict, answer, scope, replay([read], receive), send)

        await cycle.run_asgi(cast("Any", go_on))

    def _write(self, buffered: _BufferedRequest, pieces: Sequence[Part], size: int) -> None:
        buffered.response_complete = True
        if buffered.disconnected or self.transport.is_closing():
            return
        if size > _SMALL:
            self.transport.writelines(pieces)
        else:
            self.transport.write(b"".join(pieces))
        if not buffered.keep_alive:
            self.transport.close()
        self.on_response_complete()

    async def _write_large(self, buffered: _BufferedRequest, pieces: Answer) -> None:
        """Write no faster than the client reads: what waits in the transport may be a copy."""
        for portion in portions_of(pieces):
            if buffered.disconnected or self.transport.is_closing():
                return
            self.transport.writelines(portion)
            await self.flow.drain()
            # Everybody else has a turn, also if the client reads at once.
            await asyncio.sleep(0)
        buffered.response_complete = True
        if not buffered.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _answer_head(self, buffered: _BufferedRequest, status: bytes, size: int) -> list[bytes]:
        own = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        closing = b"" if buffered.keep_alive else b"connection: close\r\n"
        length = b"content-length: %d\r\n\r\n" % size
        kind = b"content-type: application/json\r\n" if size else b""
        return [b"HTTP/1.1 %b\r\n" % status, *own, kind, buffered.verdict.head, closing, length]

    def _cycle(self, buffered: _BufferedRequest) -> RequestResponseCycle:
        """uvicorn's own idea of a request that has been read."""
        cycle = RequestResponseCycle(
            scope=cast("Any", buffered.scope),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=buffered.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.more_body, cycle.disconnected = False, buffered.disconnected
        return cycle
