"""Markdown as far as it matters here: the lines that are text, and not code or comment.

A list item may hold a code fence of its own, which ends with the item at the latest; so columns are followed as
CommonMark does, and one fence that nobody closed cannot swallow the tasks behind its item.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"(`{3,}+)[^`]*+$|(~{3,}+)")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
# What ends a paragraph without a blank line before it.
_BREAK = re.compile(r"[-*+>#]|\d{1,9}[.)]|`{3}|~{3}|<!--")
# A file in a cloned repository may hold anything: whatever is matched here must cost no more than its length.
_HEADING = re.compile(r"(#{1,6}+)[ \t]++(.*)")
_BLANKS = re.compile(r"[ \t]*+")
_COMMENT, _COMMENT_END = "<!--", "-->"
# More columns than this before it, and it is code by its indentation.
_INDENT = 3
_TAB = 4


@dataclass(slots=True)
class Line:
    """A line of text: its number from 1, where it begins, and its words without the line's end."""

    number: int
    start: int
    text: str


@dataclass(slots=True)
class Lines:
    """The lines that are text, those that are a comment, and the line of a fence or comment that nobody closed."""

    plain: list[Line]
    comments: list[Line]
    unclosed: int | None = None


@dataclass(slots=True)
class Heading:
    """A heading, and where it stands."""

    level: int
    title: str
    line: int


@dataclass(slots=True)
class _Fence:
    """An open fence, or comment, inside a list item whose text begins at a column."""

    mark: str
    length: int
    column: int
    line: int


def plain_lines(text: str) -> Lines:
    """The lines of a text whose ends are all `\\n` or `\\r\\n`."""
    plain: list[Line] = []
    comments: list[Line] = []
    columns: list[int] = []
    fence: _Fence | None = None
    start, in_paragraph = 0, False
    for number, raw in enumerate(text.split("\n"), 1):
        at, start = start, start + len(raw) + 1
        words = raw.removesuffix("\r")
        rest = words.lstrip(" \t")
        if fence is not None:
            if not _is_item_over(fence, words, rest):
                fence = None if _closes(fence, words, rest) else fence
                continue
            fence = None
        # The words of a paragraph may stand less deep than the item that it belongs to.
        if rest and not (in_paragraph and _BREAK.match(rest) is None):
            fence = _open_fence(columns, words, rest, number)
            if fence is not None or rest.startswith(_COMMENT):
                in_paragraph = False
                if fence is None:
                    comments.append(Line(number, at, words))
                continue
        in_paragraph = bool(rest) and not rest.startswith("#")
        plain.append(Line(number, at, words))
    return Lines(plain, comments, fence.line if fence is not None else None)


def headings(lines: list[Line]) -> list[Heading]:
    """The headings among these lines."""
    found = ((line, _HEADING.match(line.text)) for line in lines if line.text.startswith("#"))
    return [Heading(len(match[1]), _title(match[2]), line.number) for line, match in found if match is not None]


def _title(words: str) -> str:
    """The words of a heading without the marks that may close it."""
    words = words.rstrip(" \t")
    bare = words.rstrip("#")
    return (bare if bare.endswith((" ", "\t")) else words).strip()


def one_ending(text: str) -> str:
    """The same text with `\\n` where a line ended with `\\r` alone; nothing changes its place."""
    return re.sub(r"\r(?!\n)", "\n", text) if "\r" in text else text


def _open_fence(columns: list[int], words: str, rest: str, number: int) -> _Fence | None:
    """The fence or comment that a line opens. What it says of lists is kept in `columns`."""
    column = _width(words[: len(words) - len(rest)])
    while columns and columns[-1] > column:
        columns.pop()
    at = 0
    # A line may hold a hundred thousand markers: what is left of it is not copied for each.
    while (marker := _MARKER.match(rest, at)) is not None:
        length, blanks = marker.end() - at, _BLANKS.match(rest, marker.end())
        assert blanks is not None
        space = _width(blanks[0], column + length)
        at = blanks.end()
        column += length + (space if 1 <= space <= _INDENT + 1 and at < len(rest) else 1)
        columns.append(column)
    rest = rest[at:]
    inner = columns[-1] if columns else 0
    if column - inner > _INDENT:
        return None
    if (mark := _FENCE.match(rest)) is not None:
        return _Fence(rest[0], mark.end(1) if mark[1] else mark.end(2), inner, number)
    if rest.startswith(_COMMENT) and _COMMENT_END not in rest[len(_COMMENT) :]:
        return _Fence(_COMMENT, 0, inner, number)
    return None


def _is_item_over(fence: _Fence, words: str, rest: str) -> bool:
    """Whether the item that a fence stands in is over."""
    return bool(rest) and _width(words[: len(words) - len(rest)]) < fence.column


def _closes(fence: _Fence, words: str, rest: str) -> bool:
    if fence.mark == _COMMENT:
        return _COMMENT_END in rest
    bare = rest.rstrip(" \t")
    indent = _width(words[: len(words) - len(rest)]) - fence.column
    return len(bare) >= fence.length and not bare.strip(fence.mark) and indent <= _INDENT


def _width(space: str, column: int = 0) -> int:
    """How many columns some white space takes."""
    if "\t" not in space:
        return len(space)
    at = column
    for character in space:
        at += _TAB - at % _TAB if character == "\t" else 1
    return at - column
