"""A client at the other end of a byte stream, one JSON text a line.

What is plain is answered by a fast path. The rest goes to the SDK, which takes a second to load: whoever comes to a
process that has just started gets its handshake answered before the SDK is there, which hears of it later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.clients.channel import LAST_ANSWERS
from pegboard.clients.client import Client
from pegboard.exactjson import NotJson
from pegboard.log import logger
from pegboard.protocol.message import NotAMessage, fault, is_batch, parse_error, refusal
from pegboard.protocol.raw_json import one_line
from pegboard.task_set import TaskSet

if TYPE_CHECKING:
    from pegboard.sdk.batch import Batch
    from pegboard.sdk.exact_message import ExactMessage

# How long after the greeting the SDK is loaded, unless it is needed before: by then the first list is out.
_SETTLED = 0.3
_PARSE_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a line must be one JSON-RPC message"}}'
)
_TOO_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message may have 4,194,304 bytes at most"}}'
)


class PipeAnswerer(Protocol):
    """Who answers what is plain without the SDK."""

    session: str
    """The id of the session that a handshake opens here."""

    def greet(self, text: bytes) -> bytes | None:
        """The answer to a greeting, empty where there is none to give; `None` if a line is no greeting."""
        ...

    def on_initialized(self, client: Client) -> None:
        """The client's handshake is complete, and the SDK knows it."""
        ...

    def begin(self, text: bytes) -> tuple[bytes, Awaitable[Any]] | None:
        """A request's id, and what comes of it: its answer (empty if it gets none), a call that goes on the full path,
        or `None` to begin there; `None` at once if a line has to take the full path."""
        ...

    def is_cancel(self, text: bytes) -> bool:
        """Whether a line cancels a call that is under way."""
        ...


class Stream(Protocol):
    """The SDK's side of the conversation."""

    version: str | None
    """The protocol version of a handshake client, once it was answered."""

    async def take(self, text: bytes, under_way: Any) -> object | None:
        """Give it a line, with the call of it that is under way; the id of what it will answer. `NotJson` or
        `NotAMessage`."""
        ...

    async def take_message(self, read: ExactMessage, under_way: Any) -> object | None:
        """Give it a message that was read already."""
        ...

    async def run(self) -> None:
        """Answer until the client is gone."""
        ...

    def close(self) -> None:
        """The client will say no more."""
        ...


# Opens the SDK's side; it is given what writes a line that answers this id, or none.
Open = Callable[[Callable[[bytes, object], Awaitable[None]], "PipeAnswerer | None"], Awaitable[Stream]]


class _BatchAnswers:
    """The answers to a batch, until all are there."""

    def __init__(self, batch: Batch) -> None:
        self.given = list(batch.refusals)
        self.awaited = set[object](batch.request_ids)

    def add(self, request_id: object, answer: bytes) -> bytes:
        """Take an answer, empty for a request that gets none; gives all of them once the last is there."""
        self.awaited.discard(request_id)
        if answer:
            self.given.append(answer)
        return b"" if self.awaited else self.all()

    def all(self) -> bytes:
        """What there is to write of them."""
        from pegboard.sdk.batch import join_answers

        return join_answers(self.given) if self.given else b""


class PipeClient:
    """Takes a client's lines and writes what they are answered with."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        enter: Open,
        fast_path: PipeAnswerer | None = None,
        *,
        before_sdk: bool = False,
    ) -> None:
        self._write_line = write
        # Two lines at once would end up inside each other.
        self._writing = asyncio.Lock()
        self._enter_sdk = enter
        self._fast_path = fast_path
        # Whether the SDK is not there yet.
        self._before_sdk = before_sdk
        self._stream: Stream | None = None
        self._entering = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        # What was said and answered before the SDK was there.
        self._said: list[bytes] = []
        self._hushed: set[object] = set()
        # The batches that requests under way belong to, by their ids.
        self._batched: dict[object, _BatchAnswers] = {}
        self._tasks = TaskSet()
        self._unanswered: set[object] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()

    async def line(self, text: bytes) -> None:
        """Take one line from the client."""
        fast_path = self._fast_path
        if fast_path is not None:
            if self._before_sdk and (greeting := fast_path.greet(text)) is not None:
                await self._answer_greeting(text, greeting)
                return
            if (begun := fast_path.begin(text)) is not None:
                self._expect(begun[0])
                self._tasks.spawn(self._write_answer(text, *begun))
                return
            if fast_path.is_cancel(text):
                return
        await self._pass_on(text)

    async def too_long(self) -> None:
        """A line came that was longer than a message may be."""
        await self._write(_TOO_LONG)

    async def end(self) -> None:
        """The client will say no more; what it asked is still answered, if that does not take long."""
        await self.settle(LAST_ANSWERS)
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._stream is not None:
            self._stream.close()
        else:
            self._over.set()

    async def settle(self, limit: float) -> None:
        """Wait until everything is answered, so many seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._quiet.wait()

    async def serve(self) -> None:
        """Answer until the client is gone."""
        try:
            await self._over.wait()
        finally:
            tasks = [*self._tasks, *([self._running] if self._running is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer_greeting(self, text: bytes, answer: bytes) -> None:
        if not self._said:
            self._timer = asyncio.get_running_loop().call_later(_SETTLED, lambda: self._tasks.spawn(self._open_sdk()))
        self._said.append(text)
        if answer:
            await self._write(answer)

    async def _write_answer(self, text: bytes, request_id: bytes, begun: Awaitable[Any]) -> None:
        """Write what came of a plain request, or have the SDK go on with it."""
        answer = await begun
        if isinstance(answer, bytes):
            if answer:
                await self._write(answer)
            self._settle_request(request_id)
        else:
            await self._pass_on(text, answer)
            self._settle_request(request_id)

    async def _pass_on(self, text: bytes, under_way: Any = None) -> None:
        """Give a line to the SDK, with the call of it that is under way, if one is."""
        stream = self._stream or await self._open_sdk()
        if under_way is None:
            if is_batch(text):
                await self._take_batch(text, stream)
                return
            if (reason := fault(text)) is not None:
                await self._write(refusal(reason))
                return
        try:
            expected = await stream.take(text, under_way)
        except NotJson as exc:
            await self._write(parse_error(str(exc)))
            return
        except NotAMessage:
            logger().warning("client.message.unreadable")
            await self._write(_PARSE_ERROR)
            return
        if expected is not None:
            self._expect(expected)

    async def _take_batch(self, text: bytes, stream: Stream) -> None:
        from pegboard.sdk.batch import Batch, BatchRefused

        try:
            batch = Batch.of(text, stream.version, self._batched.__contains__)
        except BatchRefused as exc:
            await self._write(refusal(str(exc)))
            return
        except NotJson as exc:
            await self._write(parse_error(str(exc)))
            return
        answers = _BatchAnswers(batch)
        # Before the first is taken: its answer may be there at once.
        self._batched.update(dict.fromkeys(answers.awaited, answers))
        for awaited in answers.awaited:
            self._expect(awaited)
        # The answers may all be there by the time that the last is taken, and are written then.
        if not answers.awaited and (text := answers.all()):
            await self._write(text)
        for read in batch.messages:
            await stream.take_message(read, None)

    async def _open_sdk(self) -> Stream:
        """The SDK's side, which is told what was said before it was there."""
        async with self._entering:
            if self._stream is not None:
                return self._stream
            stream = await self._enter_sdk(self._write_for_sdk, self._fast_path)
            self._running = asyncio.get_running_loop().create_task(stream.run())
            self._running.add_done_callback(lambda _: self._over.set())
            for text in self._said:
                # What was taken before that was looked at closely; should the SDK see it otherwise, so be it.
                with contextlib.suppress(NotAMessage, NotJson):
                    self._hushed.add(await stream.take(text, None))
            self._said.clear()
            self._stream, self._before_sdk = stream, False
            if self._ended:
                stream.close()
            return stream

    async def _write_for_sdk(self, text: bytes, answers: object) -> None:
        """Write what the SDK says; what it answers was expected, unless it was answered before the SDK was there."""
        if answers is not None and answers in self._hushed:
            self._hushed.discard(answers)
            return
        if (batch := self._batched.pop(answers, None)) is not None:
            text = batch.add(answers, text)
        if text:
            await self._write(text)
        if answers is not None:
            self._settle_request(answers)

    async def _write(self, text: bytes) -> None:
        # A server may have written its result over several lines: here each would be taken for a message of its own.
        line = one_line(text)
        async with self._writing:
            await self._write_line(line)

    def _expect(self, request_id: object) -> None:
        self._unanswered.add(request_id)
        self._quiet.clear()

    def _settle_request(self, request_id: object) -> None:
        self._unanswered.discard(request_id)
        if not self._unanswered:
            self._quiet.set()
