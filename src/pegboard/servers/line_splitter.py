"""Cuts a byte stream into lines, and never holds more of one than it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

_KEPT_OF_A_GIANT = 4096
_SMALL = 4096


def gather(parts: list[bytes], part: bytes) -> None:
    """Add what came to what is there; small parts become one, since each costs more than its bytes."""
    if parts and len(parts[-1]) < _SMALL:
        parts[-1] += part
    else:
        parts.append(part)


@dataclass(slots=True)
class LineSplitter:
    """Feeds complete lines to `line`, and what is left of one that was too long to `giant` (head, tail, size)."""

    line: Callable[[bytes], Iterable[object]]
    giant: Callable[[bytes, bytes, int], None]
    limit: int
    _parts: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0
    _head: bytes = b""
    _tail: bytes = b""

    def feed(self, data: bytes) -> Iterator[object]:
        """Take the next bytes of the stream, in small steps."""
        first, end, rest = data.partition(b"\n")
        if first:
            self._take(first)
        if not end:
            return
        yield from self._finish()
        yield None
        *lines, last = rest.split(b"\n")
        for line in filter(None, lines):
            self._take(line)
            yield from self._finish()
            yield None
        if last:
            self._take(last)

    def finish(self) -> Iterable[object]:
        """The stream ended: what is there of a last line without an end is a line, too."""
        return self._finish() if self._size else ()

    @property
    def size(self) -> int:
        """How long the line that is being received is so far."""
        return self._size

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self.limit:
            gather(self._parts, part)
            return
        if self._parts:
            whole = b"".join(self._parts)
            self._head, self._tail = whole[:_KEPT_OF_A_GIANT], whole[-_KEPT_OF_A_GIANT:]
            self._parts.clear()
        if len(self._head) < _KEPT_OF_A_GIANT:
            self._head = (self._head + part[:_KEPT_OF_A_GIANT])[:_KEPT_OF_A_GIANT]
        self._tail = (self._tail + part[-_KEPT_OF_A_GIANT:])[-_KEPT_OF_A_GIANT:]

    def _finish(self) -> Iterable[object]:
        size, self._size = self._size, 0
        if size > self.limit:
            head, tail, self._head, self._tail = self._head, self._tail, b"", b""
            self.giant(head, tail, size)
            return ()
        whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return self.line(whole) if whole.strip() else ()
