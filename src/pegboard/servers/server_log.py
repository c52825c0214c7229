"""The log of a server: what it wrote on its stderr last, and what became of its connections. A ring in memory.

It outlives a connection: why a server ended is what people look for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from pegboard.log import Redactor

_MOST_LINES = 2000
_MOST_CHARACTERS = 500_000
_LONGEST_LINE = 4000
# A shorter part of a secret is no secret.
_SHORTEST_PART = 6
SERVER, PEGBOARD = "server", "pegboard"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: its number, which only grows, when it came, and who wrote it (`server` or `pegboard`)."""

    number: int
    time: float
    source: str
    text: str


class ServerLog:
    """The newest lines of one server, without its secrets."""

    def __init__(self, redactor: Callable[[], Redactor], clock: Callable[[], float] = time.time) -> None:
        self.redactor = redactor
        self._clock = clock
        self._lines: deque[LogLine] = deque()
        self._size = 0
        self.last_number = 0

    def write(self, text: str) -> None:
        """A line that the server wrote."""
        self._add(SERVER, text)

    def note(self, text: str) -> None:
        """Something that happened to the server."""
        self._add(PEGBOARD, text)

    def read(self, most: int, after: int = 0) -> list[LogLine]:
        """The newest lines, at most so many, of those with a number beyond `after`."""
        newer = [line for line in self._lines if line.number > after]
        return newer[-most:] if most else []

    def _add(self, source: str, text: str) -> None:
        kept = _by_lines(self.redactor()).clean(text, _LONGEST_LINE)
        self.last_number += 1
        self._lines.append(LogLine(self.last_number, self._clock(), source, kept))
        self._size += len(kept)
        while len(self._lines) > _MOST_LINES or self._size > _MOST_CHARACTERS:
            self._size -= len(self._lines.popleft().text)


@lru_cache(maxsize=256)
def _by_lines(redactor: Redactor) -> Redactor:
    """A redactor for single lines: of a secret of several, a server may write one after another."""
    parts = {part.strip() for secret in redactor.secrets for part in secret.splitlines()}
    return Redactor(redactor.secrets | {part for part in parts if len(part) >= _SHORTEST_PART})
