"""Memories: every operation on them, the same for MCP, REST, the command line and Python.

An operation is one transaction. Whatever is wrong with its input is found before anything is changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pegboard.log import logger
from pegboard.lru_dict import LruDict
from pegboard.normalization import normalize
from pegboard.result import Conflict, invalid
from pegboard.storage.database import Database, DatabaseConnection, StorageError
from pegboard.toolsets.memory.excerpt import excerpt
from pegboard.toolsets.memory.fulltext import Fields, FullText
from pegboard.toolsets.memory.importance import START
from pegboard.toolsets.memory.limits import (
    MAX_KEY,
    MAX_KEYWORDS,
    MAX_QUERY,
    MAX_SUMMARY,
    MAX_TEXT,
    validate_key,
    validate_links,
    validate_namespace,
)
from pegboard.toolsets.memory.memory import Brief, Link, Memory, order_links
from pegboard.toolsets.memory.neighbourhood import MAX_NODES, MOST_FAR, Neighbourhood, find_neighbourhood
from pegboard.toolsets.memory.query import OPERATORS, Operator, Query, keywords, natural
from pegboard.toolsets.memory.relevance import Ranking
from pegboard.toolsets.memory.saved import Saved
from pegboard.toolsets.memory.search import search
from pegboard.toolsets.memory.table import namespaces
from pegboard.toolsets.memory.transaction import LinkedMemory, MemoryTransaction, Outcome
from pegboard.toolsets.page import Page, validate_page
from pegboard.toolsets.validation import validate_choice, validate_number, validate_text

T = TypeVar("T")
ORDERS = ("key", "recent")
MAX_LIMIT = 100
# Seconds that a count of accesses waits for its turn.
_COUNTING = 0.25
# Of which it is known when something was written there last.
_MOST_NAMESPACES = 1000
MAX_DEPTH, MAX_BREADTH, MAX_TOTAL = 6, 20, 50


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that was found."""

    key: str
    summary: str
    excerpt: str
    relevance: float
    score: float
    links: Sequence[Link]


class Memories:
    """The memories of all namespaces in one database."""

    def __init__(
        self, database: Database, *, namespace: str = "default", clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._clock = clock
        self.namespace = namespace
        # By namespace, which write was the last there: another number is news.
        self.last_writes: LruDict[str, int] = LruDict(_MOST_NAMESPACES)
        self._writes = 0

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
        wanted = validate_links(links)
        key = validate_key(key)
        _validate_words(summary, text)

        def work(desk: MemoryTransaction) -> tuple[Memory, bool]:
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
        key = validate_key(key)

        def work(desk: MemoryTransaction) -> tuple[int, Memory]:
            kept = desk.existing(key).with_access(desk.now)
            return kept.id, desk.memory(kept, sort_links=sort_links)

        number, memory = await self._read(namespace, work)
        await self._count(namespace, lambda desk: desk.table.count_access(number, desk.now))
        return memory

    async def whole(self, key: str, *, namespace: str | None = None) -> Memory:
        """One memory with its links as they were written; whoever looks so counts for nobody's score."""
        key = validate_key(key)
        return await self._read(namespace, lambda desk: desk.memory(desk.existing(key), sort_links=False))

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
        key = validate_key(key)
        wanted = None if links is None else validate_links(links)
        if summary is None and text is None and wanted is None:
            raise invalid("nothing to change: give summary, text or links")
        _validate_words(summary or "", text or "")

        def work(desk: MemoryTransaction) -> Memory:
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
        old_key, new_key = validate_key(old_key, "old_key"), validate_key(new_key, "new_key")

        def work(desk: MemoryTransaction) -> Memory:
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
        key = validate_key(key)

        def work(desk: MemoryTransaction) -> Memory:
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
        begin = normalize("NFC", validate_text(prefix, "prefix", MAX_KEY))
        validate_choice(order, "order", ORDERS)
        most, start = validate_page(limit, offset, MAX_LIMIT)

        def work(desk: MemoryTransaction) -> Page[Brief]:
            entries, total = desk.table.page(begin, order, most, start)
            return Page(desk.briefs(entries), total, most, start)

        return await self._read(namespace, work)

    async def search(
        self, query: str, limit: int = 10, offset: int = 0, *, sort_links: bool = True, namespace: str | None = None
    ) -> Page[MemoryHit]:
        """What a question in plain words is about."""
        validate_text(query, "query", MAX_QUERY)
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
    ) -> Page[MemoryHit]:
        """What has these keywords, any of them or all."""
        validate_choice(operator, "operator", OPERATORS)
        if len(words) > MAX_KEYWORDS:
            raise invalid(f"keywords: {MAX_KEYWORDS} at most, found {len(words):,}")
        for word in words:
            validate_text(word, "keywords", MAX_QUERY)
        return await self._search(lambda index: keywords(words, operator, index), limit, offset, sort_links, namespace)

    async def read_linked(
        self,
        key: str,
        depth: int = 3,
        breadth: int = 5,
        total: int = 20,
        *,
        sort_links: bool = True,
        namespace: str | None = None,
    ) -> Sequence[LinkedMemory]:
        """A memory and those that its links lead to, the nearest first, each once."""
        key = validate_key(key)
        far = validate_number(depth, "depth", 1, MAX_DEPTH)
        wide = validate_number(breadth, "breadth", 1, MAX_BREADTH)
        most = validate_number(total, "total", 1, MAX_TOTAL)

        def work(desk: MemoryTransaction) -> list[tuple[int, LinkedMemory]]:
            return desk.walk(desk.existing(key).with_access(desk.now), far, wide, most, sort_links=sort_links)

        steps = await self._read(namespace, work)
        numbers = [number for number, _ in steps]

        def count(desk: MemoryTransaction) -> None:
            desk.table.count_access(numbers[0], desk.now)
            desk.table.count_traversals(numbers[1:])

        await self._count(namespace, count)
        return [step for _, step in steps]

    async def neighbourhood(
        self, key: str | None, depth: int = 2, limit: int = 200, *, namespace: str | None = None
    ) -> Neighbourhood:
        """What is linked with a memory, for a picture; without a key, those that changed last."""
        key = None if key is None else validate_key(key)
        far = validate_number(depth, "depth", 1, MOST_FAR)
        most = validate_number(limit, "limit", 1, MAX_NODES)
        return await self._read(namespace, lambda desk: find_neighbourhood(desk, key, far, most))

    def now(self) -> float:
        """The time as memories have it."""
        return self._clock()

    async def visit(
        self, begin: Callable[[], None], show: Callable[[Saved], None], namespace: str | None = None
    ) -> None:
        """Show every memory, or every one of a namespace, as they are at one moment.

        Both are called in a thread of the database's; `begin` again, should it have to be done again.
        """
        only = None if namespace is None else validate_namespace(namespace)
        now = self._clock()

        def work(connection: DatabaseConnection) -> None:
            begin()
            for space in namespaces(connection) if only is None else [only]:
                for saved in MemoryTransaction(connection, space, now).export():
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

        def work(connection: DatabaseConnection) -> list[Outcome]:
            outcomes: dict[int, Outcome] = {}
            for space, own in sorted(places.items()):
                desk = MemoryTransaction(connection, space, now)
                found = desk.restore([batch[at] for at in own], replace=replace, dry_run=dry_run)
                outcomes.update(zip(own, found, strict=True))
            return [outcomes[at] for at in range(len(batch))]

        if dry_run:
            return await self._database.read(work)
        outcomes = await self._database.write(work)
        for space in places:
            self._note_write(space)
        return outcomes

    async def _search(
        self, ask: Callable[[FullText], Query], limit: int, offset: int, sort_links: bool, namespace: str | None
    ) -> Page[MemoryHit]:
        most, start = validate_page(limit, offset, MAX_LIMIT)

        def work(desk: MemoryTransaction) -> Page[MemoryHit]:
            query = ask(desk.index)
            ranking = Ranking(query)
            found, total = search(query, ranking, desk.index, most, start)
            kept = desk.table.by_ids(each.memory for each in found)
            links = desk.table.links(list(kept))
            targets = (link.key for each in links.values() for link in each)
            scores = desk.scores([*targets, *(each.key for each in kept.values())])
            hits = [
                MemoryHit(
                    memory.key,
                    memory.summary,
                    excerpt((memory.text, memory.summary, memory.key), ranking.matches(each.fields)),
                    each.relevance,
                    scores[memory.key],
                    order_links(links[memory.id], scores) if sort_links else links[memory.id],
                )
                for each in found
                if (memory := kept.get(each.memory)) is not None
            ]
            return Page(hits, total, most, start)

        return await self._read(namespace, work)

    async def _read(self, namespace: str | None, work: Callable[[MemoryTransaction], T]) -> T:
        return await self._database.read(self._in_transaction(namespace, work))

    async def _write(self, namespace: str | None, work: Callable[[MemoryTransaction], T]) -> T:
        answer = await self._database.write(self._in_transaction(namespace, work))
        self._note_write(self.namespace if namespace is None else namespace)
        return answer

    def _note_write(self, namespace: str) -> None:
        self._writes += 1
        self.last_writes[namespace] = self._writes

    async def _count(self, namespace: str | None, work: Callable[[MemoryTransaction], None]) -> None:
        """Count that memories were looked at, where that can be done at once: who reads does not wait for who writes,
        and can read on where nothing can be written."""
        try:
            await self._database.write(self._in_transaction(namespace, work), _COUNTING)
        except StorageError as exc:
            logger().debug("memory.access.not_counted", reason=str(exc))

    def _in_transaction(
        self, namespace: str | None, work: Callable[[MemoryTransaction], T]
    ) -> Callable[[DatabaseConnection], T]:
        space = validate_namespace(self.namespace if namespace is None else namespace)
        now = self._clock()
        return lambda connection: work(MemoryTransaction(connection, space, now))


def _validate_words(summary: str, text: str) -> None:
    validate_text(summary, "summary", MAX_SUMMARY)
    validate_text(text, "text", MAX_TEXT, "; write several memories and link them")
