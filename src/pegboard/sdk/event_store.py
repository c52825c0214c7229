"""The event store: what a session's streams said, kept for a while for a client whose connection broke.

One `SessionEventStore` belongs to one session: the SDK names a stream by its request's id alone, and every client
counts from one.
Of a stream, what is kept is always its newest part without a gap. So whoever reads on from an event that is still kept
misses nothing, and an event that was forgotten is as unknown as one that never was.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

from pegboard import exactjson
from pegboard.protocol.weight import weight
from pegboard.sdk.exact_message import write_message

SESSION_EVENTS = 1024
SESSION_BYTES = 8 * 1024 * 1024
TOTAL_BYTES = 64 * 1024 * 1024
# A delivered answer can still be lost on its way; clients notice a dead connection within five minutes.
AFTERLIFE = 600.0

# What an event takes besides its text.
_OVERHEAD = 512


@dataclass(slots=True, eq=False)
class _Stream:
    """What is sent in answer to one request, or without any: the standing stream."""

    name: str
    shelves: tuple[EventBuffer, ...]
    ended: bool = False
    events: dict[str, _Event] = field(default_factory=dict[str, "_Event"])
    reader: _Reader | None = None


@dataclass(slots=True, eq=False)
class _Event:
    """One message as it was written; one without text marks a place that can be read on from."""

    id: str
    stream: _Stream
    text: str
    is_answer: bool

    @property
    def size(self) -> int:
        return sys.getsizeof(self.text) + _OVERHEAD


class EventBuffer:
    """Events in the order in which they came, and how much room they take."""

    def __init__(
        self, *, max_events: int = sys.maxsize, max_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_bytes = max_bytes
        self.events: OrderedDict[str, _Event] = OrderedDict()
        self.bytes = 0
        self._max_events = max_events
        self._clock = clock
        # Streams that have handed out their answer, and when.
        self._done: OrderedDict[_Stream, float] = OrderedDict()

    def put(self, event: _Event) -> None:
        """Take in one event."""
        self.events[event.id] = event
        self.bytes += event.size

    def remove(self, event: _Event) -> None:
        """Let go of one event."""
        del self.events[event.id]
        self.bytes -= event.size

    def finish(self, stream: _Stream) -> None:
        """This stream has handed out its answer: it is the first to go."""
        self._done.setdefault(stream, self._clock())

    def forget(self, stream: _Stream) -> None:
        """Nothing of this stream is left."""
        self._done.pop(stream, None)

    def surplus(self) -> list[_Event]:
        """What has to go next: the oldest, but calls that are over before calls that run."""
        full = len(self.events) > self._max_events or self.bytes > self.max_bytes
        oldest = next(iter(self._done), None)
        if oldest is not None and (full or self._clock() - self._done[oldest] > AFTERLIFE):
            return list(oldest.events.values())
        return [next(iter(self.events.values()))] if full else []


class SessionEventStore(EventStore):
    """The SDK's event store for one session; `total` is what all sessions together may keep."""

    def __init__(
        self,
        total: EventBuffer,
        *,
        max_events: int = SESSION_EVENTS,
        max_bytes: int = SESSION_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own = EventBuffer(max_events=max_events, max_bytes=max_bytes, clock=clock)
        self._buffers = (self._own, total)
        self._max_events = max_events
        self._running: dict[str, _Stream] = {}
        self._closed = False
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep what is about to be sent; no message means that a new stream begins."""
        if message is None:
            self._end(stream_id)
            return self.mark(stream_id)
        is_answer = isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None
        event = self._add(stream_id, self._text(stream_id, message), is_answer=is_answer)
        if event.stream.reader is not None:
            event.stream.reader.add(event)
        if is_answer:
            # The next request with this id is another stream.
            self._end(stream_id)
        return event.id

    def mark(self, stream_id: str) -> str:
        """A place to read on from: where the stream is now."""
        return self._add(stream_id, "", is_answer=False).id

    def knows(self, event_id: str) -> bool:
        """Whether it can be read on from there."""
        return event_id in self._own.events

    def is_answer(self, event_id: str) -> bool:
        """Whether nothing can come after this event."""
        event = self._own.events.get(event_id)
        return event is not None and event.is_answer

    def running(self, event_id: str) -> str | None:
        """The id of the stream that this event is of, if that one still waits for its answer."""
        event = self._own.events.get(event_id)
        return None if event is None or event.stream.ended else event.stream.name

    def hand_out(self, event_id: str | None) -> str | None:
        """The text of an event that goes over the wire now."""
        event = self._own.events.get(event_id or "")
        if event is None:
            return None
        if event.is_answer:
            for buffer in self._buffers:
                buffer.finish(event.stream)
        return event.text

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after this event, and go on sending what comes until the stream is over.

        The SDK would go on by itself if it were told the stream's name, but it loses what is said between the last
        event of the past and the first of the future, and does not stop at the answer.
        """
        last = self._own.events.get(last_event_id)
        if last is None:
            return None
        stream = last.stream
        if stream.reader is not None:
            # The server learns late, or never, that a connection is dead: the newest is the one that lives.
            stream.reader.dismiss()
        kept = list(stream.events.values())
        missed = [event for event in kept[kept.index(last) + 1 :] if event.text]
        reader = stream.reader = _Reader(missed, self._max_events)
        if stream.ended:
            reader.end()
        try:
            while (event := await reader.next()) is not None:
                await send_callback(EventMessage(_read(event.text), event.id))
        finally:
            if stream.reader is reader:
                stream.reader = None
        return None

    def close(self) -> None:
        """The session is over: nothing can be asked for any more."""
        self._closed = True
        for name in list(self._running):
            self._end(name)
        self._forget(list(self._own.events.values()))

    def _add(self, stream_id: str, text: str | None, *, is_answer: bool) -> _Event:
        stream = self._running.setdefault(stream_id, _Stream(stream_id, self._buffers))
        event = _Event(f"{self._prefix}-{next(self._numbers)}", stream, text or "", is_answer)
        if self._closed:
            return event
        if text is None or event.size > self._own.max_bytes:
            # It would push out everything else and then itself; what came before it cannot be read on from now.
            self._forget(list(stream.events.values()))
            return event
        stream.events[event.id] = event
        for buffer in self._buffers:
            buffer.put(event)
        for buffer in self._buffers:
            while surplus := buffer.surplus():
                self._forget(surplus)
        return event

    def _text(self, stream_id: str, message: JSONRPCMessage) -> str | None:
        """What is kept of a message; none of one that is too large, unless somebody reads on from here."""
        stream = self._running.get(stream_id)
        has_reader = stream is not None and stream.reader is not None
        return None if size(message) > self._own.max_bytes and not has_reader else write_message(message).decode()

    def _end(self, stream_id: str) -> None:
        stream = self._running.pop(stream_id, None)
        if stream is None:
            return
        stream.ended = True
        if stream.reader is not None:
            stream.reader.end()

    @staticmethod
    def _forget(events: Iterable[_Event]) -> None:
        for event in events:
            stream = event.stream
            del stream.events[event.id]
            for buffer in stream.shelves:
                buffer.remove(event)
                if not stream.events:
                    buffer.forget(stream)


class _Reader:
    """A connection that reads a stream on: first what it missed, then what comes."""

    def __init__(self, missed: Iterable[_Event], limit: int) -> None:
        self._waiting = deque(missed)
        self._limit = limit
        self._over = False
        self._news = asyncio.Event()

    def add(self, event: _Event) -> None:
        """There is one more."""
        if len(self._waiting) >= self._limit:
            # It reads too slowly. What it has is without a gap, so it can come again and read on.
            self.end()
        if not self._over:
            self._waiting.append(event)
            self._news.set()

    def end(self) -> None:
        """There will be no more."""
        self._over = True
        self._news.set()

    def dismiss(self) -> None:
        """Another connection reads instead."""
        self._waiting.clear()
        self.end()

    async def next(self) -> _Event | None:
        """The next event, or none when the stream is over."""
        while not self._waiting:
            if self._over:
                return None
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


def size(message: JSONRPCMessage) -> int:
    """How large a message is, roughly."""
    return weight(message.result if isinstance(message, JSONRPCResponse) else getattr(message, "params", None))


def _read(text: str) -> JSONRPCMessage:
    """The message that was kept as this text."""
    value = exactjson.parse_object(text)
    if (error := exactjson.as_object(value.get("error"))) is not None:
        # Pydantic takes half of a surrogate pair in a plain text alone.
        value = {**value, "error": {**error, "message": str(error["message"])}}
    return jsonrpc_message_adapter.validate_python(value, by_name=False)
