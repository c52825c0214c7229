"""Texts for people: cut to a length, put on one line; a place in JSON as they write it."""

from __future__ import annotations

from collections.abc import Iterable

ELLIPSIS = "…"


def count(number: int, what: str) -> str:
    """So many of a thing, in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def truncate(text: str, length: int) -> str:
    """The text, or as much of it as fits with an ellipsis into this length."""
    return text if len(text) <= length else text[: length - 1].rstrip() + ELLIPSIS


def quote_start(text: str, length: int) -> str:
    """The text, or so many characters of it and an ellipsis: for a value that is quoted in a message."""
    return text if len(text) <= length else text[:length] + ELLIPSIS


def one_line(text: str, length: int | None = None) -> str:
    """The text on one line, every run of white space as one space; truncated where a length is given."""
    if length is None:
        return " ".join(text.split())
    if length <= 0:
        return ""
    # Of a text of megabytes only the beginning is looked at.
    start = text[: 8 * length + 200]
    line = " ".join(start.split())
    return line if len(line) <= length and len(start) == len(text) else line[: length - 1].rstrip() + ELLIPSIS


def json_path(steps: Iterable[str | int]) -> str:
    """A place in JSON by the steps that lead there: `auth.rules[0].who`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
