"""Memories: every operation on them, the same for MCP, REST, the command line and Python.

An operation is one transaction. Whatever is wrong with its input is found before anything is changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pegboard.log import logger
from pegboard.normalization import normalize
from pegboard.result import Conflict, invalid
from pegboard.storage.database import Connection, Database, StorageError
from pegboard.toolsets.checked import checked_choice, checked_number, checked_text
from pegboard.toolsets.memory.check import (
    MAX_KEY,
    MAX_KEYWORDS,
    MAX_OFFSET,
    MAX_QUERY,
    MAX_SUMMARY,
    MAX_TEXT,
    checked_key,
    checked_links,
    checked_namespace,
)
from pegboard.toolsets.memory.desk import Desk, Outcome, Step
from pegboard.toolsets.memory.excerpt import excerpt
from pegboard.toolsets.memory.fulltext import Fields, FullText
from pegboard.toolsets.memory.memory import Brief, Link, Memory, ordered
from pegboard.toolsets.memory.query import OPERATORS, Operator, Query, keywords, natural
from pegboard.toolsets.memory.ranking import Ranking
from pegboard.toolsets.memory.saved import Saved
from pegboard.toolsets.memory.score import START
from pegboard.toolsets.memory.search import search
from pegboard.toolsets.memory.table import namespaces

T = TypeVar("T")
ORDERS = ("key", "recent")
MAX_LIMIT = 100
# Seconds that a count of accesses waits for its turn.
_COUNTING = 0.25
MAX_DEPTH, MAX_BREADTH, MAX_TOTAL = 6, 20, 50


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found."""

    key: str
    summary: str
    excerpt: str
    relevance: float
    score: float
    links: Sequence[Link]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what there is."""

    items: Sequence[T]
    total: int
    limit: int
    offset: int


class Memories:
    """The memories of all namespaces in one database."""

    def __init__(
        self, database: Database, *, namespace: str = "default", clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._clock = clock
        self.namespace = namespace

    async def add(
        self,
        key: str,
        summary: str = "",
        text: str = "",
        links: Iterable[Link] = (),
        *,
        namespace: str | None = None,
        replace: bool = False,
    ) -> tuple[Memory, bool]:
        """Write a memory; and whether it is a new one. One of that key is an error unless it is to be replaced."""
        wanted = checked_links(links)
        key = checked_key(key)
        _check_words(summary, text)

        def work(desk: Desk) -> tuple[Memory, bool]:
            known = desk.table.get(key)
            if known is None:
                desk.table.make_space()
                number = desk.table.insert(key, summary, text, START, desk.now)
                desk.write(number, key, summary, text, wanted)
                return desk.memory(desk.existing(key)), True
            if not replace:
                there = f'there is a memory "{key}" in namespace "{desk.namespace}" already'
                raise Conflict(f"{there}: use memory_update, or replace: true")
            desk.table.rewrite(known.id, summary, text, desk.now)
            desk.write(known.id, key, summary, text, wanted)
            return desk.memory(desk.existing(key)), False

        return await self._write(namespace, work)

    async def get(self, key: str, *, namespace: str | None = None, sort_links: bool = True) -> Memory:
        """One memory in full; that it was looked at counts for its score."""
        key = checked_key(key)

        def work(desk: Desk) -> tuple[int, Memory]:
            kept = desk.existing(key).accessed(desk.now)
            return kept.id, desk.memory(kept, sort_links=sort_links)

        number, memory = await self._read(namespace, work)
        await self._count(namespace, lambda desk: desk.table.accessed(number, desk.now))
        return memory

    async def update(
        self,
        key: str,
        *,
        summary: str | None = None,
        text: str | None = None,
        links: Iterable[Link] | None = None,
        version: int | None = None,
        namespace: str | None = None,
    ) -> Memory:
        """Change parts of a memory; with `version` only if nobody else did since that one."""
        key = checked_key(key)
        wanted = None if links is None else checked_links(links)
        if summary is None and text is None and wanted is None:
            raise invalid("nothing to change: give summary, text or links")
        _check_words(summary or "", text or "")

        def work(desk: Desk) -> Memory:
            known = desk.existing(key)
            if version is not None and version != known.version:
                raise Conflict(
                    f'memory "{key}" is at version {known.version}, not {version}: somebody changed it; read it again'
                )
            new_summary = known.summary if summary is None else summary
            new_text = known.text if text is None else text
            desk.table.rewrite(known.id, new_summary, new_text, desk.now)
            desk.write(known.id, key, new_summary, new_text, wanted)
            return desk.memory(desk.existing(key))

        return await self._write(namespace, work)

    async def rename(self, old_key: str, new_key: str, *, namespace: str | None = None) -> Memory:
        """Another key for a memory, which keeps its links, score and history."""
        old_key, new_key = checked_key(old_key, "old_key"), checked_key(new_key, "new_key")

        def work(desk: Desk) -> Memory:
            known = desk.existing(old_key, "old_key")
            if new_key != old_key:
                if desk.table.get(new_key) is not None:
                    raise Conflict(f'new_key: there is a memory "{new_key}" in namespace "{desk.namespace}" already')
                desk.table.rename(known.id, old_key, new_key, desk.now)
                desk.index.put(known.id, Fields.of(new_key, known.summary, known.text))
            return desk.memory(desk.existing(new_key))

        return await self._write(namespace, work)

    async def delete(self, key: str, *, namespace: str | None = None) -> Memory:
        """Take a memory out; links that lead to it stay, and join up again should it come back."""
        key = checked_key(key)

        def work(desk: Desk) -> Memory:
            known = desk.existing(key)
            memory = desk.memory(known)
            desk.index.drop(known.id)
            desk.table.delete(known.id)
            return memory

        return await self._write(namespace, work)

    async def list(
        self, prefix: str = "", order: str = "key", limit: int = 50, offset: int = 0, *, namespace: str | None = None
    ) -> Page[Brief]:
        """Memories by key, or the latest first, without their texts and links."""
        begin = normalize("NFC", checked_text(prefix, "prefix", MAX_KEY))
        checked_choice(order, "order", ORDERS)
        most, start = _checked_place(limit, offset)

        def work(desk: Desk) -> Page[Brief]:
            entries, total = desk.table.page(begin, order, most, start)
            return Page(desk.briefs(entries), total, most, start)

        return await self._read(namespace, work)

    async def search(
        self, query: str, limit: int = 10, offset: int = 0, *, sort_links: bool = True, namespace: str | None = None
    ) -> Page[Hit]:
        """What a question in plain words is about."""
        checked_text(query, "query", MAX_QUERY)
        return await self._search(lambda index: natural(query, index), limit, offset, sort_links, namespace)

    async def fulltext(
        self,
        words: Sequence[str],
        operator: Operator = "OR",
        limit: int = 10,
        offset: int = 0,
        *,
        sort_links: bool = True,
        namespace: str | None = None,
    ) -> Page[Hit]:
        """What has these keywords, any of them or all."""
        checked_choice(operator, "operator", OPERATORS)
        if len(words) > MAX_KEYWORDS:
            raise invalid(f"keywords: {MAX_KEYWORDS} at most, found {len(words):,}")
        for word in words:
            checked_text(word, "keywords", MAX_QUERY)
        return await self._search(lambda index: keywords(words, operator, index), limit, offset, sort_links, namespace)

    async def linked(
        self,
        key: str,
        depth: int = 3,
        breadth: int = 5,
        total: int = 20,
        *,
        sort_links: bool = True,
        namespace: str | None = None,
    ) -> Sequence[Step]:
        """A memory and those that its links lead to, the nearest first, each once."""
        key = checked_key(key)
        far = checked_number(depth, "depth", 1, MAX_DEPTH)
        wide = checked_number(breadth, "breadth", 1, MAX_BREADTH)
        most = checked_number(total, "total", 1, MAX_TOTAL)

        def work(desk: Desk) -> list[tuple[int, Step]]:
            return desk.walk(desk.existing(key).accessed(desk.now), far, wide, most, sort_links=sort_links)

        steps = await self._read(namespace, work)
        numbers = [number for number, _ in steps]

        def count(desk: Desk) -> None:
            desk.table.accessed(numbers[0], desk.now)
            desk.table.traversed(numbers[1:])

        await self._count(namespace, count)
        return [step for _, step in steps]

    def now(self) -> float:
        """The time as memories have it."""
        return self._clock()

    async def visit(
        self, begin: Callable[[], None], show: Callable[[Saved], None], namespace: str | None = None
    ) -> None:
        """Show every memory, or every one of a namespace, as they are at one moment.

        Both are called in a thread of the database's; `begin` again, should it have to be done again.
        """
        only = None if namespace is None else checked_namespace(namespace)
        now = self._clock()

        def work(connection: Connection) -> None:
            begin()
            for space in namespaces(connection) if only is None else [only]:
                for saved in Desk(connection, space, now).saved():
                    show(saved)

        await self._database.read(work)

    async def restore(
        self, batch: Sequence[Saved], *, replace: bool = False, dry_run: bool = False
    ) -> Sequence[Outcome]:
        """Write saved memories that were checked, all or none, and tell what became of each."""
        places: dict[str, list[int]] = {}
        for at, saved in enumerate(batch):
            places.setdefault(saved.namespace, []).append(at)
        now = self._clock()

        def work(connection: Connection) -> list[Outcome]:
            outcomes: dict[int, Outcome] = {}
            for space, own in sorted(places.items()):
                desk = Desk(connection, space, now)
                found = desk.restore([batch[at] for at in own], replace=replace, dry_run=dry_run)
                outcomes.update(zip(own, found, strict=True))
            return [outcomes[at] for at in range(len(batch))]

        return await (self._database.read(work) if dry_run else self._database.write(work))

    async def _search(
        self, ask: Callable[[FullText], Query], limit: int, offset: int, sort_links: bool, namespace: str | None
    ) -> Page[Hit]:
        most, start = _checked_place(limit, offset)

        def work(desk: Desk) -> Page[Hit]:
            query = ask(desk.index)
            ranking = Ranking(query)
            found, total = search(query, ranking, desk.index, most, start)
            kept = desk.table.by_ids(each.memory for each in found)
            links = desk.table.links(list(kept))
            targets = (link.key for each in links.values() for link in each)
            scores = desk.scores([*targets, *(each.key for each in kept.values())])
            hits = [
                Hit(
                    memory.key,
                    memory.summary,
                    excerpt((memory.text, memory.summary, memory.key), ranking.matched(each.fields)),
                    each.relevance,
                    scores[memory.key],
                    ordered(links[memory.id], scores) if sort_links else links[memory.id],
                )
                for each in found
                if (memory := kept.get(each.memory)) is not None
            ]
            return Page(hits, total, most, start)

        return await self._read(namespace, work)

    async def _read(self, namespace: str | None, work: Callable[[Desk], T]) -> T:
        return await self._database.read(self._at_desk(namespace, work))

    async def _write(self, namespace: str | None, work: Callable[[Desk], T]) -> T:
        return await self._database.write(self._at_desk(namespace, work))

    async def _count(self, namespace: str | None, work: Callable[[Desk], None]) -> None:
        """Count that memories were looked at, where that can be done at once: who reads does not wait for who writes,
        and can read on where nothing can be written."""
        try:
            await self._database.write(self._at_desk(namespace, work), _COUNTING)
        except StorageError as exc:
            logger().debug("memory.access.not_counted", reason=str(exc))

    def _at_desk(self, namespace: str | None, work: Callable[[Desk], T]) -> Callable[[Connection], T]:
        space = checked_namespace(self.namespace if namespace is None else namespace)
        now = self._clock()
        return lambda connection: work(Desk(connection, space, now))


def _checked_place(limit: int, offset: int) -> tuple[int, int]:
    return checked_number(limit, "limit", 1, MAX_LIMIT), checked_number(offset, "offset", 0, MAX_OFFSET)


def _check_words(summary: str, text: str) -> None:
    checked_text(summary, "summary", MAX_SUMMARY)
    checked_text(text, "text", MAX_TEXT, "; write several memories and link them")
