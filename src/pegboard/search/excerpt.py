"""The part of a text that a query is about, with the words that matched marked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice, takewhile

from pegboard.normalization import normalize
from pegboard.search.tokens import spans

LENGTH = 240
_OPEN, _CLOSE = "<mark>", "</mark>"
_BEFORE = 60
# How much of a long text is looked at for a place that is worth more than the first one.
_MOST_PLACES, _FAR = 200, 20_000
# Nor is a phrase looked for among more.
_MOST_OF_PHRASES = 5_000
_SPACE = re.compile(r"\s+")
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a word stands, and as what it is looked for."""

    begin: int
    end: int
    words: frozenset[str]


def highlight(text: str, words: Set[str], phrases: Collection[Sequence[str]] = ()) -> str | None:
    """As much of a text as is worth showing, where most of these words are, and if it can be where some of them stand
    side by side as in one of the phrases; `None` if none is there."""
    text = normalize("NFC", text)
    if not words:
        return None
    places = list(_places(text, words) if not phrases else _all_places(text, words))
    if not places:
        return None
    together = (at for at in range(len(places)) if any(_stands(phrase, places, at, text) for phrase in phrases))
    starts = list(islice(together, _MOST_PLACES)) or range(min(len(places), _MOST_PLACES))
    start = _start(text, places[_richest(places, starts, words)].begin)
    end = start + LENGTH
    shown: list[str] = ["…"] if start else []
    at = start
    for begin, stop in _merge(place for place in places if start <= place.begin < end):
        # What is pasted without a space counts as one word, however long it is.
        at, before = min(stop, end), at
        shown += [text[before:begin], _OPEN, text[begin:at], _CLOSE]
    shown += [text[at:end], "…" if end < len(text) else ""]
    return _SPACE.sub(" ", "".join(shown)).strip()


def _places(text: str, words: Set[str]) -> Iterator[_Place]:
    """Where words stand that the index knows as one of these: the first of them, and what is not too far from it."""
    missing = set(words)
    last = len(text)
    for begin, end, terms in islice(spans(text, words), _MOST_PLACES):
        if begin > last:
            return
        yield _Place(begin, end, terms.intersection(words))
        last = min(last, begin + _FAR)
        if missing and not (missing := missing - terms):
            # Everything is there by now; an excerpt that has more of it would not end much later.
            last = min(last, begin + LENGTH)


def _all_places(text: str, words: Set[str]) -> Iterator[_Place]:
    """Where words stand, however far from the first: a phrase may have words that are everywhere."""
    for begin, end, terms in islice(spans(text, words), _MOST_OF_PHRASES):
        yield _Place(begin, end, terms.intersection(words))


def _stands(phrase: Sequence[str], places: Sequence[_Place], at: int, text: str) -> bool:
    """Whether the words of a phrase stand side by side, the first of them at this place."""
    if phrase[0] not in places[at].words:
        return False
    for word in phrase[1:]:
        near = next((near for near in _next(places, at, text) if word in places[near].words), None)
        if near is not None:
            at = near
        # A name with accents is one place for all of its parts.
        elif word not in places[at].words:
            return False
    return True


def _next(places: Sequence[_Place], at: int, text: str) -> Iterator[int]:
    """The places that nothing but blanks and punctuation parts from this one, or that overlap with it."""
    end = places[at].end
    for near in range(at + 1, len(places)):
        if _LETTER.search(text, end, places[near].begin):
            return
        yield near


def _richest(places: Sequence[_Place], starts: Sequence[int], words: Set[str]) -> int:
    """At which of these places an excerpt should begin, so that it has as many different words as can be."""
    best, most = starts[0], 0
    for at in starts:
        first = places[at]
        near = takewhile(lambda place: place.end <= first.begin + LENGTH - _BEFORE, places[at:])  # noqa: B023
        number = len(first.words.union(*(place.words for place in near)))
        if number > most:
            best, most = at, number
        if most == len(words):
            break
    return best


def _merge(places: Iterable[_Place]) -> Iterator[tuple[int, int]]:
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
