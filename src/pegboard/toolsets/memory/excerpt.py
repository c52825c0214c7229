"""The part of a memory that a query is about, with the words that matched marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from pegboard.search.tokens import spans

LENGTH = 240
_OPEN, _CLOSE = "<mark>", "</mark>"
_BEFORE = 60
_SPACE = re.compile(r"\s+")


def excerpt(key: str, summary: str, text: str, words: Collection[str]) -> str:
    """Of the first part in which a word is, text, summary or key, as much as is worth showing."""
    for part in (text, summary, key):
        if shown := _marked(part, words):
            return shown
    return _cut(summary or text or key)


def _marked(text: str, words: Collection[str]) -> str | None:
    text = unicodedata.normalize("NFC", text)
    places = _places(text, words)
    first = next(places, None)
    if first is None:
        return None
    start = _start(text, first[0])
    end = start + LENGTH
    marked: list[str] = ["…"] if start else []
    at = start
    for begin, stop in _joined(first, places, end):
        marked += [text[at:begin], _OPEN, text[begin:stop], _CLOSE]
        at = stop
    end = max(min(end, len(text)), at)
    marked += [text[at:end], "…" if end < len(text) else ""]
    return _SPACE.sub(" ", "".join(marked)).strip()


def _places(text: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where words stand that the index knows as one of these."""
    for begin, end, terms in spans(text, words):
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


def _cut(text: str) -> str:
    line = _SPACE.sub(" ", text[: 2 * LENGTH]).strip()
    return line if len(line) <= LENGTH else line[: LENGTH - 1].rstrip() + "…"
