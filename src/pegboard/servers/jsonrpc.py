"""A JSON-RPC peer: one conversation with a server, whatever transport carries it.

A `Transport` (stdio, streamable HTTP, SSE) moves messages; the peer pairs answers with requests, keeps time limits,
and hands on what the server says by itself. A broken answer costs the call it belongs to, nothing else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any

from pegboard import exactjson
from pegboard.log import Redactor, logger
from pegboard.lru_dict import LruDict
from pegboard.protocol import raw_json
from pegboard.protocol.codes import INVALID_REQUEST, METHOD_NOT_FOUND
from pegboard.protocol.eras import SUBSCRIPTION_KEY
from pegboard.protocol.portions import LARGE
from pegboard.servers import large
from pegboard.servers.errors import AnswerTooLarge, ConnectionLost, RpcError, TimedOut, rpc_error, unusable_answer
from pegboard.servers.limit import Limit
from pegboard.servers.message import Message, Params
from pegboard.servers.pending import Pending
from pegboard.servers.question_owners import InFlight
from pegboard.servers.replies import MAX_QUESTIONS, Answer, Replies
from pegboard.servers.token_bucket import TokenBucket
from pegboard.servers.transports.transport import Transport

_MAX_ABANDONED = 1000
# Log lines and words of progress: so many at once, so many a second after that; and log lines of ours about a server.
_CHATTER_BURST, _CHATTER_RATE = 2000, 500
_COMPLAINT_BURST, _COMPLAINT_RATE = 5, 0.1

_ID_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*"?(\d+)')
_ID_LAST = re.compile(rb'"id"\s*:\s*"?(\d+)"?\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$')
_RESULT = re.compile(rb'^\s*\{(?:\s*"(?:jsonrpc|id)"\s*:\s*"?[\d.]+"?\s*,)*\s*"result"\s*:')

OnNotification = Callable[[str, Params, int | None], None]
OnRequest = Callable[[str, Params, int | None], Awaitable[Message]]


def ignore(method: str, params: Params, origin: int | None) -> None:
    """What is done about news that nobody waits for."""


async def refuse(method: str, params: Params, origin: int | None) -> Message:
    """The answer to a question that nobody here can take."""
    del params, origin
    raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported by this client")


class JsonRpcPeer:
    """One JSON-RPC conversation with a server."""

    def __init__(
        self,
        transport: Transport,
        *,
        label: str,
        on_notification: OnNotification = ignore,
        on_request: OnRequest = refuse,
        redactor: Callable[[], Redactor] = Redactor,
    ) -> None:
        self.transport = transport
        self.label = label
        self._redactor = redactor
        # How the first thing begins that was no message, as long as there was none.
        self.unreadable: str | None = None
        self._has_received = False
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # Whoever takes over the conversation puts itself in here.
        self.on_notification = on_notification
        self.on_request = on_request
        self._pending: dict[int, Pending] = {}
        self.loop = asyncio.get_running_loop()
        self._last_id = 0
        # How many open requests want their answers as the bytes they come in.
        self._verbatim = 0
        self._replies = Replies(transport, label, self.lost.done)
        # Log lines and progress, which can be left out without harm if they come too fast; and our complaints.
        self._chatter = TokenBucket(_CHATTER_RATE, _CHATTER_BURST)
        self._complaints = TokenBucket(_COMPLAINT_RATE, _COMPLAINT_BURST)
        # Requests that were given up, for whoever still wants to know whether they were answered.
        self._abandoned: LruDict[int, InFlight] = LruDict(_MAX_ABANDONED)

    def excerpt(self, said: object) -> str:
        """What may be logged of what a server said: without its secrets, and not all of a long text."""
        return self._redactor().clean(str(said), 200)

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
        on_progress: Callable[[Params], None] | None = None,
        cancellable: bool = True,
        in_flight: InFlight | None = None,
        most: int | None = None,
    ) -> Any:
        """Send a request and give its result; raises `RpcError`, or `ToolFailure` for what is not the server's word.

        With `most`, the result is given as the bytes it came in, where that is possible, and an answer of more than so
        many bytes is not even read: it fails with `AnswerTooLarge`.
        """
        verbatim = most is not None
        request_id, pending = self.open(timeout, on_progress=on_progress, in_flight=in_flight, verbatim=verbatim)
        pending.most = most
        message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None or on_progress is not None:
            message["params"] = _with_token(params, request_id) if on_progress is not None else params
        sending = self.transport.send(message, headers)
        return await self.outcome(request_id, pending, method, timeout, sending=sending, cancellable=cancellable)

    def open(
        self,
        timeout: float | None,
        *,
        on_progress: Callable[[Params], None] | None = None,
        in_flight: InFlight | None = None,
        verbatim: bool = False,
    ) -> tuple[int, Pending]:
        """A number for a request, and the place where its answer will be."""
        if self.lost.done():
            raise ConnectionLost(self.lost.result())
        self._last_id += 1
        pending = Pending(self.loop.create_future(), on_progress, timeout, in_flight=in_flight, verbatim=verbatim)
        if in_flight is not None:
            in_flight.extend = pending.extend
        self._pending[self._last_id] = pending
        self._verbatim += verbatim
        return self._last_id, pending

    async def outcome(
        self,
        request_id: int,
        pending: Pending,
        method: str,
        timeout: float | None,
        *,
        sending: Awaitable[None] | None = None,
        cancellable: bool = True,
    ) -> Any:
        """Wait for the answer to an open request, as long as it may take, and close it."""
        try:
            async with Limit(timeout) as limit:
                pending.limit = limit
                if sending is not None:
                    await sending
                return await pending.future
        except TimeoutError:
            if cancellable:
                self.transport.cancel(request_id, f"timed out after {pending.timeout:g} s")
            reason = f"{self.label} timed out: no answer to {method} within {pending.timeout:g} s"
            raise TimedOut(reason, silent=pending.is_silent) from None
        except asyncio.CancelledError:
            if cancellable:
                self.transport.cancel(request_id, "cancelled by the client")
            raise
        finally:
            self.finish(request_id, pending)

    def finish(self, request_id: int, pending: Pending) -> None:
        """Nobody waits for this answer any more, whether it came or not."""
        del self._pending[request_id]
        self._verbatim -= pending.verbatim
        if pending.in_flight is not None:
            # They know each other: the answer, which may be large, would stay until garbage is collected.
            pending.in_flight.extend = _do_nothing
        answered = pending.future.done() and not pending.future.cancelled()
        if answered:
            pending.future.exception()
        elif pending.in_flight is not None:
            self._abandoned[request_id] = pending.in_flight

    @property
    def is_silent(self) -> bool:
        """Whether nothing has shown that the server works on any of the open requests."""
        return all(pending.is_silent for pending in self._pending.values())

    def fail(self, request_id: int, exc: Exception) -> None:
        """An open request has failed."""
        if (pending := self._pending.get(request_id)) is not None:
            pending.fail(exc)

    async def notify(self, method: str, params: Params | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Send a notification."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self.transport.send(message, headers)

    async def close(self) -> None:
        """End the conversation; whoever still waits is told."""
        self.close_with("the connection was closed by Pegboard")
        self._replies.cancel()
        await self.transport.close()

    def close_with(self, reason: str) -> None:
        """The conversation is over: fail everyone who waits. Only the first reason counts."""
        if self.lost.done():
            return
        self.lost.set_result(reason)
        for pending in self._pending.values():
            pending.fail(ConnectionLost(f"{self.label}: {reason}"))

    def deliver_text(self, text: bytes, origin: int | None = None) -> Iterator[None]:
        """Take one message as it came over the transport; in small steps."""
        if len(text) > LARGE:
            if self._verbatim and self.refuse_large(text):
                return
            if (reason := (yield from large.fault(text))) is not None:
                self.report_unreadable(text[:4096], text[-4096:], reason)
                return
        if self._verbatim and self.settle_verbatim(text):
            return
        if len(text) > large.SURELY_FEW:
            if (batch := raw_json.batch(text)) is not None:
                yield from self._deliver_batch(batch, origin)
                return
            if (yield from self._refuse_unread(text)):
                return
        try:
            message = yield from exactjson.parse_in_steps(text)
        except exactjson.NotJson as exc:
            self.report_unreadable(text[:4096], text[-4096:], f"not valid JSON ({exc})")
            return
        for single in exactjson.as_list(message) or [message]:
            try:
                self.deliver(single, origin)
            except Exception as exc:
                # One message must never cost those that came behind it.
                logger().error(
                    "server.message.failed", server=self.label, error=self.excerpt(f"{type(exc).__name__}: {exc}")
                )
            yield

    def _deliver_batch(self, batch: list[raw_json.Raw], origin: int | None) -> Iterator[None]:
        """A long batch is not read at once: each message in it may be long."""
        for text in map(bytes, batch):
            if text.startswith(b"{"):
                yield from self.deliver_text(text, origin)
            else:
                self.report_unreadable(b"", b"", "a message that is no JSON object")
            yield

    def _refuse_unread(self, text: bytes) -> Generator[None, None, bool]:
        """Refuse a long message that nobody waits for, before it is made into objects: that takes long."""
        opened = raw_json.envelope(text)
        if opened is None and self._is_awaited(text):
            # It has half of a surrogate pair, which only our own parser reads, or it is no JSON.
            return False
        if opened is not None and opened.is_result:
            if opened.number is None or self.waits_for(opened.number):
                return False
            self._settle({"id": opened.number})
            return True
        reason = f"it has {len(text):,} bytes; the limit is {LARGE:,}" if len(text) > LARGE else None
        # What a server asks a model may have pictures in it.
        if reason is None or (opened is not None and opened.is_question):
            reason = yield from large.fault(text, large.MAX_VALUES_OF_OTHERS)
        if reason is None:
            return False
        if opened is not None and opened.is_question:
            self._refuse_question(opened.question_id, f"the question cannot be read: {reason}")
        elif opened is not None and opened.number is not None:
            self.fail(opened.number, unusable_answer(self.label, f"an error that cannot be read: {reason}"))
        elif opened is not None:
            self.report_unreadable(b"", b"", reason)
        else:
            # It may be an answer all the same, one that is nested too deeply to be opened.
            self.report_unreadable(text[:4096], text[-4096:], reason)
        return True

    def settle_verbatim(self, text: bytes, request_id: int | None = None) -> bool:
        """Hand a result on as it is to a request that wants it so; anything else is for the general way.

        So is an answer to another request than `request_id`. A large text has been looked at before.
        """
        answer = raw_json.answer(text, checked=len(text) > LARGE)
        if answer is None or (request_id is not None and answer[0] != request_id):
            return False
        pending = self._pending.get(answer[0])
        if pending is None or not pending.verbatim or pending.future.done():
            return False
        pending.future.set_result(answer[1])
        return True

    def refuse_large(self, text: bytes) -> bool:
        """Fail the request that an answer is too large for, without opening it."""
        pending = self._pending_of(text[:4096], text[-4096:])
        if pending is None or pending.most is None or len(text) <= pending.most:
            return False
        pending.fail(AnswerTooLarge(self.label))
        return True

    def _is_awaited(self, text: bytes) -> bool:
        """Whether a text that was not opened seems to be the result of an open request."""
        pending = self._pending_of(text[:4096], text[-4096:]) if _RESULT.match(text[:4096]) else None
        return pending is not None and not pending.future.done()

    def _pending_of(self, head: bytes, tail: bytes) -> Pending | None:
        """The request that a text answers, as far as its beginning or its end shows it."""
        match = _ID_FIRST.search(head) or _ID_LAST.search(tail)
        return self._pending.get(int(match.group(1))) if match else None

    def report_unreadable(self, head: bytes, tail: bytes, reason: str) -> None:
        """Something came that cannot be read; if it shows which request it answers, that one fails."""
        if not self._has_received and self.unreadable is None:
            self.unreadable = self.excerpt(head.decode("utf-8", "replace").strip())[:100] or None
        pending = self._pending_of(head, tail)
        if self._complaints.take():
            left_out = self._complaints.take_refused()
            more = {"leftOut": left_out} if left_out else {}
            logger().warning(
                "server.message.unreadable",
                server=self.label,
                reason=self.excerpt(reason),
                answer=bool(pending),
                **more,
            )
        if pending is not None:
            pending.fail(unusable_answer(self.label, reason))

    def deliver(self, message: Any, origin: int | None = None) -> None:
        """Take one message: an answer, a notification or a question."""
        message = exactjson.as_object(message)
        if message is None:
            self.report_unreadable(b"", b"", "a message that is no JSON object")
            return
        self._has_received, self.unreadable = True, None
        method = message.get("method")
        if not isinstance(method, str):
            self._settle(message)
        elif "id" in message and not isinstance(message["id"], (str, int)):
            self.report_unreadable(b"", b"", "a question without a usable id")
        elif "id" in message:
            self._handle_request(message, method, origin)
        else:
            self._handle_notification(method, _params(message), origin)

    def in_flight(self, origin: int | None) -> InFlight | None:
        """Who the request is made for that something came with, if it came with one."""
        pending = self._pending.get(origin) if origin is not None else None
        return pending.in_flight if pending is not None else None

    def principal_of(self, request_id: int | None) -> str:
        """The principal that a request is made for; empty if it is none of a client's."""
        in_flight = self.in_flight(request_id)
        return "" if in_flight is None else in_flight.requester.principal_id

    def is_repetition(self, request_id: int | None) -> bool:
        """Whether a request was sent once already, and refused because of its credentials."""
        in_flight = self.in_flight(request_id)
        return in_flight is not None and in_flight.is_repetition

    def waits_for(self, request_id: int) -> bool:
        """Whether this request is still without an answer."""
        pending = self._pending.get(request_id)
        return pending is not None and not pending.future.done()

    def _settle(self, message: Message) -> None:
        pending = self._pending.get(_as_id(message.get("id")))
        if pending is None or pending.future.done():
            # Late, twice, or for an id nobody asked with: the call it was meant for has its outcome.
            late = self._abandoned.pop(_as_id(message.get("id")), None)
            if late is not None:
                late.answered = True
            logger().debug("server.answer.unmatched", server=self.label)
            return
        result, error = exactjson.as_object(message.get("result")), exactjson.as_object(message.get("error"))
        if result is not None:
            # What could not be taken verbatim has been read in full, and is its own best form.
            pending.future.set_result(result)
        elif error is not None:
            pending.future.set_exception(rpc_error(error))
        else:
            pending.fail(unusable_answer(self.label, "neither a result object nor an error object"))

    def _handle_notification(self, method: str, params: Params, origin: int | None) -> None:
        if method == "notifications/progress":
            if pending := self._pending.get(_as_id(params.get("progressToken"))):
                pending.note_progress(params, tell=self._may_talk())
            return
        if method == "notifications/message" and not self._may_talk():
            return
        if method == "notifications/cancelled":
            self._replies.withdraw(params.get("requestId"))
            return
        self.on_notification(method, params, _stream_id(params) if origin is None else origin)

    def _may_talk(self) -> bool:
        """Whether one more log line or word of progress is passed on."""
        if self._chatter.take():
            if left_out := self._chatter.take_refused():
                logger().warning("server.notifications.dropped", server=self.label, leftOut=left_out)
            return True
        return False

    def _handle_request(self, message: Message, method: str, origin: int | None) -> None:
        async def answer() -> Message:
            return {} if method == "ping" else await self.on_request(method, _params(message), origin)

        self._start_reply(message["id"], method, answer)

    def _refuse_question(self, request_id: Any, reason: str) -> None:
        async def refuse() -> Message:
            raise RpcError(INVALID_REQUEST, reason)

        if isinstance(request_id, (str, int)):
            self._start_reply(request_id, "", refuse)

    def _start_reply(self, request_id: Any, method: str, answer: Answer) -> None:
        # Hundreds of calls may wait for their clients' answers, each with a question.
        if len(self._replies) >= (most := MAX_QUESTIONS + len(self._pending)):
            self.close_with(f"it asked more than {most:,} questions at once")
        elif request_id in self._replies:
            # An answer of any kind would be taken for that of the question that is open.
            self.report_unreadable(b"", b"", "a question with the id of one that is still open")
        else:
            self._replies.start(request_id, method, answer)


def _do_nothing() -> None:
    """There is nothing to extend any more."""


def _with_token(params: Params | None, token: int) -> Params:
    meta = dict(exactjson.as_object((params or {}).get("_meta")) or {})
    meta["progressToken"] = token
    return {**(params or {}), "_meta": meta}


def _params(message: Message) -> Params:
    return exactjson.as_object(message.get("params")) or {}


def _stream_id(params: Params) -> int | None:
    """The subscription that a notification names as its own, which is the request that opened it."""
    given = (exactjson.as_object(params.get("_meta")) or {}).get(SUBSCRIPTION_KEY)
    return None if given is None else _as_id(given)


def _as_id(value: Any) -> int:
    """The id as we gave it; some servers send a number back as a text or with a point."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
