"""The part of a text that a query is about, with the words that matched marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from pegboard.search.tokens import spans

LENGTH = 240
_OPEN, _CLOSE = "<mark>", "</mark>"
_BEFORE = 60
# How much of a long text is looked at for a place that is worth more than the first one.
_MOST_PLACES, _FAR = 200, 20_000
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a word stands, and as what it is looked for."""

    begin: int
    end: int
    words: frozenset[str]


def marked(text: str, words: Set[str]) -> str | None:
    """As much of a text as is worth showing, where most of these words are; `None` if none is there."""
    text = unicodedata.normalize("NFC", text)
    places = list(_places(text, words)) if words else []
    if not places:
        return None
    places = places[_richest(places, words) :]
    start = _start(text, places[0].begin)
    end = start + LENGTH
    shown: list[str] = ["…"] if start else []
    at = start
    for begin, stop in _joined(place for place in places if place.begin < end):
        # What is pasted without a space counts as one word, however long it is.
        at, before = min(stop, end), at
        shown += [text[before:begin], _OPEN, text[begin:at], _CLOSE]
    shown += [text[at:end], "…" if end < len(text) else ""]
    return _SPACE.sub(" ", "".join(shown)).strip()


def _places(text: str, words: Set[str]) -> Iterator[_Place]:
    """Where words stand that the index knows as one of these: the first of them, and what is not too far from it."""
    missing = set(words)
    found, last = 0, len(text)
    for begin, end, terms in spans(text, words):
        if begin > last or found == _MOST_PLACES:
            return
        if not terms.isdisjoint(words):
            yield _Place(begin, end, terms.intersection(words))
            found += 1
            last = min(last, begin + _FAR)
            if missing and not (missing := missing - terms):
                # Everything is there by now; an excerpt that has more of it would not end much later.
                last = min(last, begin + LENGTH)


def _richest(places: Sequence[_Place], words: Set[str]) -> int:
    """At which of these places an excerpt should begin, so that it has as many different words as can be."""
    best, most = 0, 0
    for at, first in enumerate(places):
        near = takewhile(lambda place: place.end <= first.begin + LENGTH - _BEFORE, places[at:])  # noqa: B023
        number = len(first.words.union(*(place.words for place in near)))
        if number > most:
            best, most = at, number
        if most == len(words):
            break
    return best


def _joined(places: Iterable[_Place]) -> Iterator[tuple[int, int]]:
    """Those that touch or overlap, as pairs of characters do, are one."""
    begin = end = -1
    for place in places:
        if place.begin <= end:
            end = max(end, place.end)
            continue
        if end >= 0:
            yield begin, end
        begin, end = place.begin, place.end
    yield begin, end


def _start(text: str, at: int) -> int:
    """A little before a place, at the beginning of a word."""
    if at <= _BEFORE:
        return 0
    space = text.find(" ", at - _BEFORE, at)
    return space + 1 if space >= 0 else at - min(_BEFORE, 12)


def cut(text: str) -> str:
    """The beginning of a text, on one line."""
    line = _SPACE.sub(" ", text[: 2 * LENGTH]).strip()
    return line if len(line) <= LENGTH else line[: LENGTH - 1].rstrip() + "…"
