"""Answers stay small: a list that does not fit ends earlier, a text is cut, and both say how to read on."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.toolsets.answer_size import Row, first_that_fit, json_size

ANSWER = 25_000
# What stands around the rows of an answer.
_FRAME = 600


def first_rows(rows: Sequence[Row], taken: int = 0) -> list[Row]:
    """As many rows as fit beside what is taken already, but one at least."""
    return first_that_fit(rows, ANSWER - _FRAME - taken)


def truncate(text: str, most: int) -> str:
    """As much of a text as there is room for, when it is written."""
    if len(text) < most // 6 or json_size(text) <= most + 2:
        return text
    end = most
    while end and json_size(text[:end]) > most:
        end = end * 3 // 4
    return text[:end] + "…"


def cut(text: str, offset: int, taken: int = 0) -> tuple[str, int]:
    """As much of a text as there is room for from a place on, and where the rest begins."""
    room = ANSWER - _FRAME - taken
    end = min(len(text), offset + room)
    # Quotes and line ends take two characters where they are written, and some characters more.
    while end > offset + 1 and json_size(text[offset:end]) > room:
        end = offset + (end - offset) * 9 // 10
    return text[offset:end], end
