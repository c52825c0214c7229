"""What an operation on memories works with: one namespace, within one transaction, at one moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.storage.database import DatabaseConnection
from pegboard.toolsets.memory.fulltext import Fields, FullText
from pegboard.toolsets.memory.importance import score, status_of
from pegboard.toolsets.memory.memory import Brief, Link, Memory, Meta, order_links
from pegboard.toolsets.memory.saved import History, Saved
from pegboard.toolsets.memory.table import BriefRow, Degrees, MemoryRow, MemoryTable


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A memory on a walk along links, and how many links it is away from the first."""

    memory: Memory
    depth: int


Outcome: TypeAlias = Literal["added", "replaced", "skipped"] | ToolFailure
_PAGE = 500


class MemoryTransaction:
    """What an operation works with: one namespace, within one transaction, at one moment."""

    def __init__(self, connection: DatabaseConnection, namespace: str, now: float) -> None:
        self.table = MemoryTable(connection, namespace)
        self.namespace = namespace
        self.now = now
        self._connection = connection
        self._index: FullText | None = None

    @property
    def index(self) -> FullText:
        """The index of the namespace, which has a number only after something was written into it."""
        if self._index is None or self._index.space != self.table.space:
            self._index = FullText(self._connection, self.table.space)
        return self._index

    def existing(self, key: str, parameter: str = "key") -> MemoryRow:
        known = self.table.get(key)
        if known is None:
            raise ToolFailure(
                ToolErrorCode.NOT_FOUND,
                f'{parameter}: there is no memory "{key}" in namespace "{self.namespace}"; memory_search finds others',
                retryable=False,
            )
        return known

    def write(self, number: int, key: str, summary: str, text: str, links: Sequence[Link] | None) -> None:
        if links is not None:
            self.table.relink(number, links)
        self.index.put(number, Fields.of(key, summary, text))

    def memory(self, kept: MemoryRow, *, sort_links: bool = True) -> Memory:
        return self.memories([kept], sort_links=sort_links)[0]

    def memories(self, kept: Sequence[MemoryRow], *, sort_links: bool = True) -> list[Memory]:
        links = self.table.links([each.id for each in kept])
        scores = self.scores(link.key for each in links.values() for link in each if sort_links)
        degrees = self.table.degrees(kept)
        return [
            Memory(
                key=each.key,
                namespace=self.namespace,
                summary=each.summary,
                text=each.text,
                version=each.version,
                meta=self._meta(each, degrees[each.id]),
                links=order_links(links[each.id], scores) if sort_links else links[each.id],
            )
            for each in kept
        ]

    def briefs(self, entries: Sequence[BriefRow]) -> list[Brief]:
        degrees = self.table.degrees(entries)
        return [
            Brief(
                key=each.key,
                namespace=self.namespace,
                summary=each.summary,
                version=each.version,
                meta=self._meta(each, degrees[each.id]),
            )
            for each in entries
        ]

    def export(self) -> Iterator[Saved]:
        """Every memory by key, as it is saved in a file, read some hundred at a time."""
        last = ""
        while page := self.table.after(last, _PAGE):
            links = self.table.links([each.id for each in page])
            for each in page:
                yield Saved(
                    namespace=self.namespace,
                    key=each.key,
                    summary=each.summary,
                    text=each.text,
                    links=links[each.id],
                    history=_history(each),
                )
            last = page[-1].key

    def restore(self, batch: Sequence[Saved], *, replace: bool, dry_run: bool) -> list[Outcome]:
        """Write saved memories, as they are kept, and tell what became of each."""
        if not dry_run:
            self.table.make_space()
        known = self.table.by_keys(each.key for each in batch)
        links = self._links_of(known.values()) if replace else {}
        entered: dict[int, Fields] = {}
        outcomes: list[Outcome] = []
        for each in batch:
            there = known.get(each.key)
            if there is not None and not replace:
                outcomes.append("skipped")
                continue
            try:
                fields = Fields.of(each.key, each.summary, each.text)
            except ToolFailure as failure:
                outcomes.append(failure)
                continue
            kept = self._row_of(each, there, has_same_links=links.get(each.key) == each.links)
            if not dry_run:
                kept = self._store(kept, each.links)
                entered[kept.id] = fields
            known[each.key], links[each.key] = kept, each.links
            outcomes.append("added" if there is None else "replaced")
        if entered:
            self.index.put_all(entered)
        return outcomes

    def _links_of(self, memories: Collection[MemoryRow]) -> dict[str, Sequence[Link]]:
        links = self.table.links([each.id for each in memories])
        return {each.key: links[each.id] for each in memories}

    def _row_of(self, saved: Saved, there: MemoryRow | None, *, has_same_links: bool) -> MemoryRow:
        """The row that a saved memory becomes; a version that somebody read never stands for other words or links."""
        if there is None:
            history = saved.history or History.new(self.now)
        else:
            history = saved.history or dataclasses.replace(_history(there), updated_at=self.now)
            is_same = has_same_links and (saved.summary, saved.text) == (there.summary, there.text)
            history = dataclasses.replace(history, version=max(history.version, there.version + (not is_same)))
        return MemoryRow(
            0 if there is None else there.id,
            saved.key,
            saved.summary,
            history.version,
            history.base,
            history.access_count,
            history.traverse_count,
            history.created_at,
            history.updated_at,
            history.last_accessed_at,
            saved.text,
        )

    def _store(self, kept: MemoryRow, links: Sequence[Link]) -> MemoryRow:
        if kept.id:
            self.table.restore(kept)
        else:
            kept = dataclasses.replace(kept, id=self.table.enter(kept))
        self.table.relink(kept.id, links)
        return kept

    def scores(self, keys: Iterable[str]) -> Mapping[str, float]:
        """The scores of memories by key; of one that is not written there is none."""
        facts = self.table.facts(keys)
        degrees = self.table.degrees(facts)
        return {
            each.key: score(each.base, each.access_count, degrees[each.id].sum, self.now - each.last_accessed_at)
            for each in facts
        }

    def walk(
        self, root: MemoryRow, depth: int, breadth: int, total: int, *, sort_links: bool
    ) -> list[tuple[int, LinkedMemory]]:
        first = self.memory(root, sort_links=sort_links)
        steps = [(root.id, LinkedMemory(first, 0))]
        seen, edge = {root.key}, [first]
        for level in range(1, depth + 1):
            there = {facts.key for facts in self.table.facts(link.key for memory in edge for link in memory.links)}
            keys: dict[str, None] = {}
            there -= seen
            for memory in edge:
                near = dict.fromkeys(link.key for link in memory.links if link.key in there)
                keys.update(dict.fromkeys(list(near)[:breadth]))
            wanted = list(keys)[: total - len(steps)]
            found = self.table.by_keys(wanted)
            kept = [found[key] for key in wanted]
            edge = self.memories(kept, sort_links=sort_links)
            seen.update(keys)
            steps += [(each.id, LinkedMemory(memory, level)) for each, memory in zip(kept, edge, strict=True)]
            if len(steps) >= total or not edge:
                break
        return steps

    def _meta(self, kept: BriefRow, degrees: Degrees) -> Meta:
        value = score(kept.base, kept.access_count, degrees.sum, self.now - kept.last_accessed_at)
        return Meta(
            created_at=kept.created_at,
            updated_at=kept.updated_at,
            last_accessed_at=kept.last_accessed_at,
            access_count=kept.access_count,
            traverse_count=kept.traverse_count,
            in_degree=degrees.incoming,
            out_degree=degrees.outgoing,
            score=value,
            status=status_of(value, self.now - kept.created_at),
        )


def _history(kept: MemoryRow) -> History:
    return History(
        version=kept.version,
        base=kept.base,
        access_count=kept.access_count,
        traverse_count=kept.traverse_count,
        created_at=kept.created_at,
        updated_at=kept.updated_at,
        last_accessed_at=kept.last_accessed_at,
    )
