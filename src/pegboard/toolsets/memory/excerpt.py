"""The part of a memory that a query is about, with the words that matched marked."""

from __future__ import annotations

from collections.abc import Collection

from pegboard.search.excerpt import cut, marked


def excerpt(key: str, summary: str, text: str, words: Collection[str]) -> str:
    """Of the first part in which a word is, text, summary or key, as much as is worth showing."""
    for part in (text, summary, key):
        if shown := marked(part, words):
            return shown
    return cut(summary or text or key)
