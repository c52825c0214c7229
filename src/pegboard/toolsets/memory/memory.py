"""A memory: what an agent wrote down, and how it hangs together with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# What a link to a memory that is not written yet counts by.
MISSING_SCORE = 50.0


@dataclass(frozen=True, slots=True)
class Link:
    """Points from one memory to another of the same namespace, which need not be written yet."""

    key: str
    type: str
    term: str = ""
    weight: float = 0.5

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {"type": self.type, "key": self.key, "term": self.term, "weight": self.weight}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What is known of a memory beside its words. The score is worked out when it is read."""

    created_at: float
    updated_at: float
    last_accessed_at: float
    access_count: int
    traverse_count: int
    in_degree: int
    out_degree: int
    score: float
    status: str

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {
            "created_at": moment(self.created_at),
            "updated_at": moment(self.updated_at),
            "last_accessed_at": moment(self.last_accessed_at),
            "access_count": self.access_count,
            "traverse_count": self.traverse_count,
            "in_degree": self.in_degree,
            "out_degree": self.out_degree,
            "score": round_score(self.score),
            "status": self.status,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A memory as a list has it: without its text and links."""

    key: str
    namespace: str
    summary: str
    version: int
    meta: Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Brief):
    """One memory in full."""

    text: str
    links: Sequence[Link] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {
            "key": self.key,
            "namespace": self.namespace,
            "summary": self.summary,
            "text": self.text,
            "links": [link.to_dict() for link in self.links],
            "version": self.version,
            "meta": self.meta.to_dict(),
        }


def moment(seconds: float) -> str:
    """A point in time as people and programs read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_PLACES = 2


def round_score(score: float) -> float:
    """A score as it is shown: two places are enough to compare by."""
    return round(score, _PLACES)


def order_links(links: Sequence[Link], scores: Mapping[str, float]) -> list[Link]:
    """Links with the most useful first: weight times the target's score, then weight, then key.

    Scores count as they are shown: what drifts behind the second place would put equals in another order each time.
    """

    def place(link: Link) -> tuple[float, float, str, str]:
        worth = round(link.weight * round_score(scores.get(link.key, MISSING_SCORE)), _PLACES)
        return -worth, -link.weight, link.key, link.type

    return sorted(links, key=place)
