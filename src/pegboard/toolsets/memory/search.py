"""Searching: the index chooses those that cover most of a query, and these are ranked by how well they answer it.

The best `WINDOW` are ranked against each other; behind them the index's own order holds, so that any page of any
length is the same whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.toolsets.memory.fulltext import Fields, FullText
from pegboard.toolsets.memory.query import Query
from pegboard.toolsets.memory.relevance import Ranking

WINDOW = 64
# Those that cover as much as the last one are ranked too, up to so many: which of them is best only the ranking tells.
_WIDEST = 128
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class RankedMemory:
    """A memory's number, how well it fits, and the words that it is compared by."""

    memory: int
    relevance: float
    fields: Fields


def search(query: Query, ranking: Ranking, index: FullText, limit: int, offset: int) -> tuple[list[RankedMemory], int]:
    """One page of what fits, the best first, and how many fit at all."""
    if query.impossible:
        return [], 0
    total = index.total(query.groups) if query.total is None else query.total
    if not total:
        return [], 0
    chosen = _choose(query, index, total)
    window = _rank([memory for memory, _ in chosen], ranking, index)
    page = window[offset : offset + limit]
    missing = min(limit, total - offset) - len(page)
    if missing > 0:
        page += _behind(query, index, chosen, window[-1].relevance, offset + len(page) - len(window), missing)
    return page, total


def _rank(memories: Sequence[int], ranking: Ranking, index: FullText) -> list[RankedMemory]:
    fields = index.fields(memories)
    found = [RankedMemory(memory, ranking.relevance(fields[memory]), fields[memory]) for memory in memories]
    return sorted(found, key=lambda each: (-each.relevance, each.fields.key, each.memory))


def _choose(query: Query, index: FullText, total: int) -> list[tuple[int, float]]:
    """Those that cover most, and how much that is."""
    chosen: list[tuple[int, float]] = []
    for pool in query.pools(index.size):
        chosen = index.covering(pool, query.terms, _WIDEST)
        if len(chosen) >= min(WINDOW, total):
            break
    least = chosen[min(WINDOW, len(chosen)) - 1][1] - _EQUAL
    return [each for at, each in enumerate(chosen) if at < WINDOW or each[1] >= least]


def _behind(
    query: Query, index: FullText, chosen: Sequence[tuple[int, float]], relevance: float, start: int, number: int
) -> list[RankedMemory]:
    """What comes after the window: of the last one's relevance, so much less as it covers less."""
    ahead = dict(chosen)
    covered = min(ahead.values())
    everything = query.pools(index.size)[-1]
    rest = [
        (memory, worth)
        for memory, worth in index.covering(everything, query.terms, start + number + len(ahead))
        if memory not in ahead
    ]
    page = rest[start : start + number]
    fields = index.fields([memory for memory, _ in page])
    return [RankedMemory(memory, relevance * min(worth / covered, 1.0), fields[memory]) for memory, worth in page]
