"""Server-sent events: cuts a byte stream into events, and never holds more of one than it may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pegboard.servers.gathered_bytes import GatheredBytes

# Fields that mean something, and rows of empty lines, each in one step: all other lines are passed over in C.
_MEANT = re.compile(rb"^(?:(data|event|id|retry)(?::[ ]?([^\n]*+))?(?=\n)|\n++)", re.MULTILINE)
# What a line costs beside its bytes: to put a million empty ones together holds everybody up.
_PER_LINE = 256
_FIELD = re.compile(rb"(data|event|id|retry)(?::[ ]?|\Z)")
_BOM = b"\xef\xbb\xbf"
# A line with so many bytes shows which field it is; what is none has no name.
_CERTAIN, _NO_FIELD = 64, b":"


class EventTooLarge(ValueError):  # noqa: N818  it says what the event is
    """An event grew beyond its limit."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    name: str
    data: bytes
    id: str | None = None


@dataclass(slots=True)
class SseParser:
    """Feeds on bytes and yields events; remembers the last id and the server's wish for a pause before retrying."""

    limit: int
    last_id: str | None = None
    retry: float | None = None
    # The line that has not ended yet, and the name of its field, where it is a long one.
    _line: GatheredBytes = field(default_factory=GatheredBytes)
    _field: bytes = b""
    # The event that has not ended yet.
    _data: list[bytes] = field(default_factory=list[bytes])
    _name: str = "message"
    _id: str | None = None
    _size: int = 0
    _after_cr: bool = False
    _started: bool = False

    @property
    def is_between_events(self) -> bool:
        """Whether nothing of a next event is there."""
        return not self._line.size and not self._field and not self._size

    def feed(self, data: bytes) -> Iterator[Event | None]:
        """Take the next bytes; a step for each line that means something, and with it the event that it completes."""
        data = self._with_plain_ends(data)
        end = data.find(b"\n")
        if end < 0:
            self._grow(data)
            return
        self._grow(data[:end])
        yield self._end_line()
        last = data.rfind(b"\n") + 1
        for found in _MEANT.finditer(data, end + 1, last):
            if found[1] is None:
                yield self._finish()
            else:
                self._take(found[1], found[2] or b"")
                yield None
        self._grow(data[last:])

    def _with_plain_ends(self, data: bytes) -> bytes:
        """The same with one kind of line end; whether a CR is half of one, only the next byte tells."""
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _grow(self, part: bytes) -> None:
        """More of the line that has not ended yet."""
        if not part:
            return
        if not self._field and self._line.size + len(part) >= _CERTAIN:
            # Before the line is long: to cut something off then is to copy it.
            self._field, part = self._split_line(self._line.take() + part)
        self._line.add(part)
        self._count(0)

    def _split_line(self, text: bytes) -> tuple[bytes, bytes]:
        """The name of a line's field, and the rest."""
        if not self._started:
            self._started = True
            text = text.removeprefix(_BOM)
        found = _FIELD.match(text)
        return (found[1], text[found.end() :]) if found else (_NO_FIELD, text)

    def _end_line(self) -> Event | None:
        """The line that was begun earlier has ended."""
        line = self._line.take()
        name, self._field = self._field, b""
        if not name:
            if not line:
                return self._finish()
            name, line = self._split_line(line)
            # A mark alone is as good as nothing.
            if not line and name == _NO_FIELD:
                return self._finish()
        if name != _NO_FIELD:
            self._take(name, line)
        return None

    def _take(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._data.append(value)
            self._count(len(value) + _PER_LINE)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
            self.last_id = self._id or None
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value) / 1000

    def _count(self, more: int) -> None:
        self._size += more
        if self._size + self._line.size > self.limit:
            raise EventTooLarge(f"an event of the stream is larger than {self.limit:,} bytes")

    def _finish(self) -> Event | None:
        self._started = True
        data, name, event_id = self._data, self._name, self._id
        self._data, self._name, self._id, self._size = [], "message", None, 0
        if not data and event_id is None:
            return None
        return Event(name, b"\n".join(data), event_id)
