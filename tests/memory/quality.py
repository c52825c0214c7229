"""How well searches find what somebody meant: a labelled set, and what is measured on it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pegboard.toolsets.memory.memories import Memories

_FILE = Path(__file__).with_name("quality_set.json")


@dataclass(frozen=True)
class Asked:
    """A query, of which kind it is, and the key of the memory that it is about."""

    kind: str
    query: str
    right: str


@dataclass(frozen=True)
class Measured:
    """Of how many queries the right memory is among the first five, and the mean of 1 / its place."""

    recall: float
    mrr: float


@dataclass(frozen=True)
class QualitySet:
    """Memories, and queries for them."""

    memories: Mapping[str, tuple[str, str]]
    queries: list[Asked]

    @classmethod
    def read(cls) -> QualitySet:
        """The set that comes with the checkout."""
        held = json.loads(_FILE.read_text("utf-8"))
        memories = {row["key"]: (row["summary"], row["text"]) for row in held["memories"]}
        return cls(memories, [Asked(**row) for row in held["queries"]])

    async def write(self, memories: Memories) -> None:
        """Write all of them."""
        for key, (summary, text) in self.memories.items():
            await memories.add(key, summary, text)

    async def places(self, memories: Memories) -> dict[Asked, int]:
        """Where the right memory stands for each query, from 1; 0 where it is not among the first hundred."""
        found: dict[Asked, int] = {}
        for asked in self.queries:
            keys = [hit.key for hit in (await memories.search(asked.query, 100)).items]
            found[asked] = keys.index(asked.right) + 1 if asked.right in keys else 0
        return found


def measured(places: Mapping[Asked, int]) -> Measured:
    """Recall and mean reciprocal rank."""
    return Measured(
        sum(0 < place <= 5 for place in places.values()) / len(places),
        sum(1 / place for place in places.values() if place) / len(places),
    )


def by_kind(places: Mapping[Asked, int]) -> dict[str, Measured]:
    """The same for each kind of query."""
    kinds: dict[str, dict[Asked, int]] = defaultdict(dict)
    for asked, place in places.items():
        kinds[asked.kind][asked] = place
    return {kind: measured(own) for kind, own in kinds.items()}
