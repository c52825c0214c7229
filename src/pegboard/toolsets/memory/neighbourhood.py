"""The neighbourhood of a memory: what links lead to and from it, a few links far, as a picture needs it.

Without a memory to begin with it is the memories that changed last, and the links between them. Looking at a picture
counts for nobody's score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard.toolsets.memory.table import BriefRow
from pegboard.toolsets.memory.transaction import MemoryTransaction

MAX_NODES = 500
MOST_FAR = 3
# Links that are looked at from one memory to the next: one with thousands is no picture.
_MOST_LINKS = 5_000


@dataclass(slots=True)
class Neighbourhood:
    """Memories, and the links between them."""

    # By key, with how many links each is away from the first.
    depths: dict[str, int] = field(default_factory=dict[str, int])
    links: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    written: dict[str, BriefRow] = field(default_factory=dict[str, BriefRow])
    # Whether there are more than are shown.
    is_cut: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As a picture is drawn from it."""
        return {
            "nodes": [self._node(key, depth) for key, depth in self.depths.items()],
            "links": [
                {"from": source, "to": target, "type": kind}
                for source, target, kind in sorted(self.links)
                if source in self.depths and target in self.depths
            ],
            "cut": self.is_cut,
        }

    def _node(self, key: str, depth: int) -> dict[str, Any]:
        kept = self.written.get(key)
        # A link may lead to a memory that nobody has written yet.
        return {"key": key, "depth": depth, "written": kept is not None, "summary": kept.summary if kept else ""}


def find_neighbourhood(desk: MemoryTransaction, key: str | None, depth: int, limit: int) -> Neighbourhood:
    """Those around one memory, the nearest first; or the newest."""
    found = Neighbourhood()
    if key is None:
        newest, total = desk.table.page("", "recent", limit, 0)
        found.depths = {row.key: 0 for row in newest}
        found.is_cut = total > limit
        _add_links(desk, found, list(found.depths))
    else:
        desk.existing(key)
        found.depths[key] = 0
        _walk(desk, found, key, depth, limit)
    found.written = {row.key: row for row in desk.table.briefs(found.depths)}
    return found


def _walk(desk: MemoryTransaction, found: Neighbourhood, key: str, depth: int, limit: int) -> None:
    edge: Sequence[str] = [key]
    for far in range(1, depth + 1):
        reached: dict[str, None] = {}
        for source, target in _add_links(desk, found, edge):
            reached.update({name: None for name in (source, target) if name not in found.depths})
        room = limit - len(found.depths)
        found.is_cut = found.is_cut or len(reached) > room
        edge = list(reached)[: max(room, 0)]
        found.depths.update(dict.fromkeys(edge, far))
        if not edge:
            return
    # Those at the rim may be linked with each other.
    _add_links(desk, found, edge)


def _add_links(desk: MemoryTransaction, found: Neighbourhood, keys: Iterable[str]) -> list[tuple[str, str]]:
    """Take in the links that lead to and from these; between whom they are."""
    links = desk.table.links_around(list(keys), _MOST_LINKS)
    found.is_cut = found.is_cut or len(links) >= _MOST_LINKS
    found.links.update(links)
    return [(source, target) for source, target, _ in links]
