"""Searching: the index chooses candidates, and those are ranked by how much of the query they answer.

The best `WINDOW` are ranked against each other; behind them the index's own order holds, so that any page of any
length is the same whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.toolsets.memory.fulltext import Fields, FullText
from pegboard.toolsets.memory.query import Query
from pegboard.toolsets.memory.ranking import Ranking

WINDOW = 64


@dataclass(frozen=True, slots=True)
class Found:
    """A memory's number, how well it fits, and the words that it is compared by."""

    memory: int
    relevance: float
    fields: Fields


def search(query: Query, index: FullText, limit: int, offset: int) -> tuple[list[Found], int]:
    """One page of what fits, the best first, and how many fit at all."""
    if query.impossible:
        return [], 0
    total = index.total(query.wanted) if query.total is None else query.total
    window = _ranked(query, index)
    page = window[offset : offset + limit]
    missing = min(limit, total - offset) - len(page)
    if missing > 0:
        page += _behind(query, index, window, offset + len(page) - len(window), missing)
    return page, total


def _ranked(query: Query, index: FullText) -> list[Found]:
    chosen = _chosen(query, index) or index.best(query.wanted, WINDOW)
    fields = index.fields(chosen)
    ranking = Ranking(query)
    found = [Found(memory, ranking.relevance(fields[memory]), fields[memory]) for memory in chosen]
    return sorted(found, key=lambda each: (-each.relevance, each.fields.key, each.memory))


def _chosen(query: Query, index: FullText) -> list[int]:
    found: dict[int, None] = {}
    for choice in query.candidates(index.size):
        found.update(dict.fromkeys(index.best(choice.wanted, WINDOW, titled=choice.titled)))
        if len(found) >= WINDOW:
            break
    return list(found)[:WINDOW]


def _behind(query: Query, index: FullText, window: Sequence[Found], start: int, number: int) -> list[Found]:
    """What comes after the window: its relevance is told by its place alone."""
    ahead = {found.memory for found in window}
    memories = [memory for memory in index.best(query.wanted, start + number + len(window)) if memory not in ahead]
    page = memories[start : start + number]
    fields = index.fields(page)
    return [
        Found(memory, window[-1].relevance * len(window) / (len(window) + at + 1), fields[memory])
        for at, memory in enumerate(page, start)
    ]
