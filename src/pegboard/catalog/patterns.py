"""Patterns: the templates of all servers, by the text that they begin with, so that few are compared with a URI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from pegboard.catalog.template import Template, Uri

T = TypeVar("T")


class Patterns(Generic[T]):
    """Templates, each with whatever it stands for."""

    def __init__(self, pairs: Iterable[tuple[Template, T]] = ()) -> None:
        self._by_beginning: dict[str, list[tuple[Template, T]]] = {}
        for pair in pairs:
            for beginning in pair[0].forms[0]:
                self._by_beginning.setdefault(beginning, []).append(pair)
        self._lengths = sorted(set(map(len, self._by_beginning)))

    def likely(self, uri: Uri) -> list[tuple[Template, T]]:
        """Those whose first text is the beginning of a URI, the heaviest first."""
        text = uri.text
        if uri.is_too_long:
            return []
        beginnings = (text[:length] for length in self._lengths if length <= len(text))
        found = [pair for beginning in beginnings for pair in self._by_beginning.get(beginning, ())]
        return sorted(found, key=_weight, reverse=True)


def _weight(pair: tuple[Template, object]) -> int:
    return pair[0].weight
