"""The part of a memory that a query is about, with the words that matched marked."""

from __future__ import annotations

from collections.abc import Sequence, Set

from pegboard.search.excerpt import cut, marked


def excerpt(parts: Sequence[str], words: Sequence[Set[str]]) -> str:
    """As much as is worth showing of a text, a summary or a key: the first in which some of its words are."""
    text, summary, key = parts
    for part, found in zip(parts, words, strict=True):
        if shown := marked(part, found):
            return shown
    return cut(summary or text or key)
