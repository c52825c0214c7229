"""The part of a memory that a query is about, with the words that matched marked."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.search.excerpt import cut, highlight
from pegboard.toolsets.memory.fulltext import Phrase


def excerpt(parts: Sequence[str], matched: Sequence[Sequence[Phrase]]) -> str:
    """As much as is worth showing of a text, a summary or a key: the first in which some of what matched is."""
    text, summary, key = parts
    for part, found in zip(parts, matched, strict=True):
        words = {word for phrase in found for word in phrase}
        if shown := highlight(part, words, [phrase for phrase in found if len(phrase) > 1]):
            return shown
    return cut(summary or text or key)
