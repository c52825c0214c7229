"""Passages: where in a long text some words stand, each with its place. The text comes in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.results.hits import Hits, Passage
from pegboard.results.words import PORTION, fold

# A line that is longer counts as several.
LONGEST_LINE = 1000
_AROUND = 120


class PassageSearch:
    """Looks through the pieces of a text for words, and tells the hits of each line that has some."""

    def __init__(self, words: Sequence[str], hits: Hits) -> None:
        self._words = words
        self._hits = hits
        self._rest = ""
        self._rest_at = 0
        self._line = 1

    def feed(self, piece: str) -> None:
        """Look through the next piece; what is not a whole line yet waits for the one after it."""
        for at in range(0, len(piece), PORTION):
            self._feed(piece[at : at + PORTION])

    def _feed(self, piece: str) -> None:
        text, start = self._rest + piece, self._rest_at
        end = text.rfind("\n") + 1
        if len(text) - end > LONGEST_LINE:
            end += (len(text) - end) // LONGEST_LINE * LONGEST_LINE
        self._rest, self._rest_at = text[end:], start + end
        self._search(text[:end], start)

    def finish(self) -> None:
        """Look through what is left."""
        self._search(self._rest, self._rest_at)

    def _search(self, text: str, start: int) -> None:
        folded = fold(text)
        words = [word for word in self._words if word in folded]
        if not words:
            self._line += text.count("\n")
            return
        for number, line in enumerate(text.split("\n")):
            self._line += number > 0
            for at in range(0, len(line), LONGEST_LINE):
                self._look(words, line if len(line) <= LONGEST_LINE else line[at : at + LONGEST_LINE], start + at)
            start += len(line) + 1

    def _look(self, words: Sequence[str], segment: str, start: int) -> None:
        folded = fold(segment)
        places = [place for word in words if (place := folded.find(word)) >= 0]
        if places and self._hits.count(len(places)):
            first = min(places)
            shown = segment[max(first - _AROUND, 0) : max(places) + 2 * _AROUND].strip()
            self._hits.show(Passage(self._line, start + first, shown))
