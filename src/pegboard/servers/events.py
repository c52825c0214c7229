"""Server-sent events: cuts a byte stream into events, and never holds more of one than it may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


class EventTooLarge(ValueError):  # noqa: N818  it says what the event is
    """An event grew beyond its limit."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    name: str
    data: bytes
    id: str | None = None


@dataclass(slots=True)
class EventStream:
    """Feeds on bytes and yields events; remembers the last id and the server's wish for a pause before retrying."""

    limit: int
    last_id: str | None = None
    retry: float | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _searched: int = 0
    _lines: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0
    _started: bool = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take the next bytes and yield the events that they complete."""
        self._buffer += data
        while (line := self._next_line()) is not None:
            if line:
                self._size += len(line)
                self._lines.append(line)
            elif (event := self._finish()) is not None:
                yield event
        if self._size + len(self._buffer) > self.limit:
            raise EventTooLarge(f"an event of the stream is larger than {self.limit} bytes")

    def _next_line(self) -> bytes | None:
        buffer = self._buffer
        if not self._started and len(buffer) >= 3:
            self._started = True
            if buffer.startswith(b"\xef\xbb\xbf"):
                del buffer[:3]
        newline = buffer.find(b"\n", self._searched)
        carriage = buffer.find(b"\r", self._searched, newline if newline >= 0 else len(buffer))
        if carriage >= 0 and carriage + 1 == len(buffer):
            # Whether this is a lone CR or the first half of CRLF, only the next byte tells.
            self._searched = carriage
            return None
        end = carriage if carriage >= 0 else newline
        if end < 0:
            self._searched = len(buffer)
            return None
        line = bytes(buffer[:end])
        after = end + (2 if carriage >= 0 and buffer[end + 1] == 0x0A else 1)
        del buffer[:after]
        self._searched = 0
        return line

    def _finish(self) -> Event | None:
        lines, self._lines, self._size = self._lines, [], 0
        name, data, event_id = "message", list[bytes](), None
        for line in lines:
            field_name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field_name == b"data":
                data.append(value)
            elif field_name == b"event":
                name = value.decode("utf-8", "replace")
            elif field_name == b"id" and b"\0" not in value:
                event_id = value.decode("utf-8", "replace")
                self.last_id = event_id or None
            elif field_name == b"retry" and value.isdigit() and len(value) < 10:
                self.retry = int(value) / 1000
        if not lines or (not data and event_id is None):
            return None
        return Event(name, b"\n".join(data), event_id)
