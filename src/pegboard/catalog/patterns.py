"""Patterns: the templates of all servers, by the text that they begin with, so that few are compared with a URI."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import Generic, TypeVar

from pegboard.catalog.uri_template import Template, Uri

T = TypeVar("T")


class Patterns(Generic[T]):
    """Templates, each with whatever it stands for, in the order in which they are asked."""

    def __init__(self) -> None:
        self._count = 0
        # With what it is sorted by: whose turn it is, how much it says, and a number of its own.
        self._by_beginning: dict[str, list[tuple[int, int, int, Template, T]]] = {}
        self._lengths: list[int] = []
        self._turn = 0

    def add(self, pairs: Iterable[tuple[Template, T]]) -> None:
        """Add those of one server, to be asked after those before them, the one that says most first."""
        self._turn += 1
        for template, value in pairs:
            self._count += 1
            for beginning in template.forms[0]:
                if beginning not in self._by_beginning:
                    self._by_beginning[beginning] = []
                    self._add_length(len(beginning))
                pattern = (self._turn, -template.weight, self._count, template, value)
                self._by_beginning[beginning].append(pattern)

    def likely(self, uri: Uri) -> list[tuple[Template, T]]:
        """Those whose first text is the beginning of a URI, in whatever case its scheme and host are."""
        if uri.is_too_long:
            return []
        found: dict[int, tuple[int, int, int, Template, T]] = {}
        for text in {uri.text, uri.case_folded.text}:
            for length in self._lengths[: bisect_right(self._lengths, len(text))]:
                found.update((pattern[2], pattern) for pattern in self._by_beginning.get(text[:length], ()))
        return [(template, value) for _, _, _, template, value in sorted(found.values(), key=_order)]

    def _add_length(self, length: int) -> None:
        if length not in self._lengths:
            insort(self._lengths, length)


def _order(pattern: tuple[int, int, int, Template, object]) -> tuple[int, int, int]:
    return pattern[:3]
