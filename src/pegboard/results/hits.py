"""Hits: of all places where words stand, those that one page shows. The others are only counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard import exactjson


@dataclass(frozen=True, slots=True)
class Passage:
    """A line with the words: which line it is, where its first word stands in the whole, and what is around that."""

    line: int
    offset: int
    text: str


class Hits:
    """The places with the most words, from one on, so many at most, as far as there is room."""

    def __init__(self, offset: int, limit: int | None, room: int) -> None:
        self.offset = offset
        self._limit, self._whole_room = limit, room
        # How many of the words the places have, how many such places there are, and those that are shown.
        self.words = self.total = 0
        self.shown: list[dict[str, Any]] = []
        self._room, self._is_full = room, False

    def count(self, words: int) -> bool:
        """Count a place with so many of the words; whether it is to be shown."""
        if words < self.words:
            return False
        if words > self.words:
            self.words, self.total, self.shown = words, 0, []
            self._room, self._is_full = self._whole_room, False
        self.total += 1
        return not self._is_full and self.total > self.offset

    def show(self, passage: Passage) -> None:
        """Show a place, if there is room for it."""
        hit = {"offset": passage.offset, "line": passage.line, "text": exactjson.well_formed(passage.text)}
        self._room -= len(exactjson.dump(hit).decode()) + 1
        if self._room >= 0 or not self.shown:
            self.shown.append(hit)
        self._is_full = self._room < 0 or len(self.shown) == self._limit
