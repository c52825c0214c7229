"""Cuts a byte stream into lines, and never holds more of one than it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pegboard.servers.gathered_bytes import GatheredBytes

_KEPT_OF_A_GIANT = 4096


@dataclass(slots=True)
class LineSplitter:
    """Feeds complete lines to `line`, and what is left of one that was too long to `giant` (head, tail, size)."""

    line: Callable[[bytes], Iterable[object]]
    giant: Callable[[bytes, bytes, int], None]
    limit: int
    _line: GatheredBytes = field(default_factory=GatheredBytes)
    _size: int = 0
    _head: bytes = b""
    _tail: bytes = b""

    def feed(self, data: bytes) -> Iterator[object]:
        """Take the next bytes of the stream, in small steps."""
        first, end, rest = data.partition(b"\n")
        if end and not self._size and len(first) <= self.limit:
            # The usual: a whole line.
            yield from self._pass_on(first)
        else:
            if first:
                self._take(first)
            if not end:
                return
            yield from self._finish()
        yield None
        if not rest:
            return
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
            self._line.add(part)
            return
        if self._line.size:
            whole = self._line.take()
            self._head, self._tail = whole[:_KEPT_OF_A_GIANT], whole[-_KEPT_OF_A_GIANT:]
        if len(self._head) < _KEPT_OF_A_GIANT:
            self._head = (self._head + part[:_KEPT_OF_A_GIANT])[:_KEPT_OF_A_GIANT]
        self._tail = (self._tail + part[-_KEPT_OF_A_GIANT:])[-_KEPT_OF_A_GIANT:]

    def _finish(self) -> Iterable[object]:
        size, self._size = self._size, 0
        if size > self.limit:
            head, tail, self._head, self._tail = self._head, self._tail, b"", b""
            self.giant(head, tail, size)
            return ()
        return self._pass_on(self._line.take())

    def _pass_on(self, whole: bytes) -> Iterable[object]:
        # Blanks alone are no line. To strip a large one would copy it.
        return self.line(whole) if whole[:_KEPT_OF_A_GIANT].strip() or whole.strip() else ()
