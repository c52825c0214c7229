"""The part of a text that a query is about, with the words that matched marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from pegboard.search.tokens import spans

LENGTH = 240
_OPEN, _CLOSE = "<mark>", "</mark>"
_BEFORE = 60
_SPACE = re.compile(r"\s+")


def marked(text: str, words: Collection[str]) -> str | None:
    """As much of a text as is worth showing, from the first word on that the index knows as one of these."""
    text = unicodedata.normalize("NFC", text)
    places = _places(text, words)
    first = next(places, None)
    if first is None:
        return None
    start = _start(text, first[0])
    end = start + LENGTH
    shown: list[str] = ["…"] if start else []
    at = start
    for begin, stop in _joined(first, places, end):
        shown += [text[at:begin], _OPEN, text[begin:stop], _CLOSE]
        at = stop
    end = max(min(end, len(text)), at)
    shown += [text[at:end], "…" if end < len(text) else ""]
    return _SPACE.sub(" ", "".join(shown)).strip()


def _places(text: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where words stand that the index knows as one of these."""
    for begin, end, terms in spans(text):
        if not terms.isdisjoint(words):
            yield begin, end


def _joined(first: tuple[int, int], rest: Iterator[tuple[int, int]], limit: int) -> Iterator[tuple[int, int]]:
    """Places up to a limit; those that touch or overlap, as pairs of characters do, are one."""
    begin, end = first
    for next_begin, next_end in rest:
        if next_begin >= limit:
            break
        if next_begin <= end:
            end = max(end, next_end)
        else:
            yield begin, end
            begin, end = next_begin, next_end
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
