"""Answers stay small: what is too long is cut, with words that say how to read on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pegboard import exactjson

DEFAULT = 25_000
_MARK = "… [cut: characters {start}-{end} of {total}; read on with memory_get, offset {end}]"
_MARK_LENGTH = 120
_LEAST = 200
MOST_LINKS = 100
MOST_LINKS_OF_MANY = 20


def cut(text: str, room: int, offset: int = 0) -> str:
    """As much of a text as there is room for, from a place on."""
    end = offset + max(room, _LEAST)
    if len(text) <= end:
        return text[offset:]
    return text[offset:end] + _MARK.format(start=offset, end=end, total=len(text))


def few_links(row: dict[str, Any], most: int) -> dict[str, Any]:
    """A row with the first of its links, and how many more there are."""
    links = row["links"]
    if len(links) <= most:
        return row
    return {**row, "links": links[:most], "moreLinks": len(links) - most}


def fitted(texts: Sequence[str], budget: int, render: Callable[[Sequence[int]], Any]) -> Any:
    """An answer within the budget. `render` makes it, given the room that each of its texts has."""
    answer = render([len(text) for text in texts])
    size = len(exactjson.dump(answer).decode())
    bare = len(exactjson.dump(render([0] * len(texts))).decode())
    room = budget - bare
    for _ in range(6):
        if size <= budget:
            break
        answer = render(_shares(texts, room))
        size = len(exactjson.dump(answer).decode())
        # Quotes and line ends take two characters where they are written.
        room -= size - budget
    return answer


def _shares(texts: Sequence[str], room: int) -> list[int]:
    """The same room for each text, save what short ones leave to the others."""
    shares = [0] * len(texts)
    left = max(room - _MARK_LENGTH * len(texts), 0)
    waiting = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    for place, at in enumerate(waiting):
        shares[at] = min(len(texts[at]), left // (len(waiting) - place))
        left -= shares[at]
    return shares


def first_that_fit(rows: Sequence[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """As many rows as fit, but one at least."""
    fit: list[dict[str, Any]] = []
    for row in rows:
        budget -= len(exactjson.dump(row).decode()) + 1
        if fit and budget < 0:
            break
        fit.append(row)
    return fit
