"""Answers stay small: what is too long is cut, with words that say how to read on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pegboard.toolsets.answer_size import Row, first_that_fit, json_size
from pegboard.toolsets.memory.settings import MemorySettings

DEFAULT = MemorySettings().answer_size
_MARK = "… [cut: characters {start}-{end} of {total}; read on with memory_get, offset {end}]"
_SHORTENED = "… [cut: {end} of {total} characters; memory_get or a larger memory.answerSize shows more]"
_LEAST = 200
# What stands around the rows of an answer: whether it went well, pagination, a message.
_FRAME = 300
MOST_LINKS = 100
MOST_LINKS_OF_MANY = 20


def cut(text: str, room: int, offset: int = 0) -> str:
    """As much of a text as there is room for, from a place on."""
    end = offset + max(room, _LEAST)
    if len(text) <= end:
        return text[offset:]
    return text[offset:end] + _MARK.format(start=offset, end=end, total=len(text))


def truncate(text: str, room: int) -> str:
    """As much of a text as there is room for, when it is written."""
    if json_size(text) <= room:
        return text
    # Among many there is no room to say it of each.
    mark = _SHORTENED if room > _LEAST + len(_SHORTENED) else "…"
    room -= len(mark)
    end = max(room, 0)
    while end and json_size(text[:end]) > room:
        end = end * 3 // 4
    return text[:end] + mark.format(end=end, total=len(text))


def trim_rows(rows: Sequence[Row], budget: int, most_links: int, first_link: int = 0) -> list[Row]:
    """Rows whose summaries and links leave a third of the budget to the rest; and how many more links there are."""
    of_summaries = _shares([json_size(row["summary"]) for row in rows], budget // 3)
    of_links = _shares([json_size(row["links"]) for row in rows], budget // 3)
    return [
        _few_links({**row, "summary": truncate(row["summary"], of_summary)}, of_its_links, most_links, first_link)
        for row, of_summary, of_its_links in zip(rows, of_summaries, of_links, strict=True)
    ]


def fit_texts(rows: Sequence[Row], texts: Sequence[str], budget: int, offset: int = 0) -> list[Row]:
    """As many rows as fit, each with as much of its text as fits, but one at least."""
    rows = first_rows([_with_text(*pair, 0, offset) for pair in zip(rows, texts, strict=True)], budget)
    texts = texts[: len(rows)]
    lengths = [max(len(text) - offset, 0) for text in texts]

    def full(room: int) -> list[Row]:
        return [_with_text(*each, offset) for each in zip(rows, texts, _shares(lengths, room), strict=True)]

    budget -= _FRAME
    room = sum(lengths)
    if json_size(full(room)) > budget:
        # Quotes and line ends take two characters where they are written, and some characters more: it is tried out.
        room = bisect_right(range(min(room, budget)), budget, key=lambda room: json_size(full(room))) - 1
    return full(room)


def first_rows(rows: Sequence[Row], budget: int) -> list[Row]:
    """As many rows as fit into an answer, but one at least."""
    return first_that_fit(rows, budget - _FRAME)


def _with_text(row: Row, text: str, room: int, offset: int) -> Row:
    return {**row, "text": cut(text, room, offset)}


def _few_links(row: Row, room: int, most: int, first: int) -> Row:
    """A row with some of its links, as far as there is room, and how many come after them."""
    links: Sequence[Row] = row["links"]
    shown = first_that_fit(links[first : first + most], room)
    more = len(links) - first - len(shown)
    return {**row, "links": shown, "moreLinks": more} if more > 0 else {**row, "links": shown}


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """The same room for each, save what short ones leave to the others."""
    shares = [0] * len(lengths)
    left = max(room, 0)
    waiting = sorted(range(len(lengths)), key=lambda at: lengths[at])
    for place, at in enumerate(waiting):
        shares[at] = min(lengths[at], left // (len(waiting) - place))
        left -= shares[at]
    return shares
