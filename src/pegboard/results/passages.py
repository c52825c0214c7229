"""Passages: where in a long text some words stand, each with its place. The text comes in pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pegboard.result import invalid
from pegboard.results.hits import Hits, Passage

# A line that is longer counts as several.
LONGEST_LINE = 1000
_AROUND = 120
_MOST_WORDS = 20


def split_words(query: str) -> list[re.Pattern[str]]:
    """The words of a query, each to be looked for whatever its letters' case."""
    words = list(dict.fromkeys(query.split()))
    if not words or len(words) > _MOST_WORDS:
        raise invalid(f"query must have 1 to {_MOST_WORDS} words")
    return [re.compile(re.escape(word), re.IGNORECASE) for word in words]


class PassageSearch:
    """Looks through the pieces of a text for words, and tells the hits of each line that has some."""

    def __init__(self, words: Sequence[re.Pattern[str]], hits: Hits) -> None:
        self._words = words
        self._hits = hits
        self._rest = ""
        self._rest_at = 0
        self._line = 1

    def feed(self, piece: str) -> None:
        """Look through the next piece; what is not a whole line yet waits for the one after it."""
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
        if not any(word.search(text) for word in self._words):
            self._line += text.count("\n")
            return
        for number, line in enumerate(text.split("\n")):
            self._line += number > 0
            for at in range(0, len(line), LONGEST_LINE):
                self._look(line if len(line) <= LONGEST_LINE else line[at : at + LONGEST_LINE], start + at)
            start += len(line) + 1

    def _look(self, segment: str, start: int) -> None:
        places = [found.start() for word in self._words if (found := word.search(segment)) is not None]
        if places and self._hits.count(len(places)):
            first = min(places)
            shown = segment[max(first - _AROUND, 0) : max(places) + 2 * _AROUND].strip()
            self._hits.show(Passage(self._line, start + first, shown))
