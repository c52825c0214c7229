"""Memories and links as rows: every statement about them, in SQL that both databases speak.

A link names its target by key, so it may point to a memory that is not written yet and joins up when it is. Degrees are
counted when they are asked for, so they are always true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pegboard.storage.database import DatabaseConnection
from pegboard.storage.sql import marks, parts
from pegboard.toolsets.memory.memory import Link

_ENTRY = "id, key, summary, version, base, access_count, traverse_count, created_at, updated_at, last_accessed_at"
_COLUMNS = f"{_ENTRY}, text"
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class BriefRow:
    """A row of `memories`, but for the text, which may be long."""

    id: int
    key: str
    summary: str
    version: int
    base: float
    access_count: int
    traverse_count: int
    created_at: float
    updated_at: float
    last_accessed_at: float


@dataclass(frozen=True, slots=True)
class MemoryRow(BriefRow):
    """A row of `memories`."""

    text: str

    def with_access(self, now: float) -> MemoryRow:
        """The same after somebody looked at it."""
        return replace(self, access_count=self.access_count + 1, last_accessed_at=now)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a memory's score is worked out from."""

    id: int
    key: str
    base: float
    access_count: int
    last_accessed_at: float


class Numbered(Protocol):
    """A memory, as far as links are concerned."""

    @property
    def id(self) -> int: ...
    @property
    def key(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many links lead to a memory, and from it."""

    incoming: int = 0
    outgoing: int = 0

    @property
    def sum(self) -> int:
        """Both together."""
        return self.incoming + self.outgoing


def namespaces(connection: DatabaseConnection) -> list[str]:
    """Those that have memories."""
    return [row[0] for row in connection.rows("SELECT name FROM memory_spaces WHERE memories > 0 ORDER BY name")]


class MemoryTable:
    """The memories of one namespace, within one transaction."""

    def __init__(self, connection: DatabaseConnection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        row = connection.row("SELECT id FROM memory_spaces WHERE name = ?", namespace)
        # Without a row there is nothing in this namespace, and no number stands for it.
        self.space = -1 if row is None else int(row[0])

    def make_space(self) -> None:
        """Have a number for the namespace, before something is written into it."""
        if self.space >= 0:
            return
        self._connection.execute(
            "INSERT INTO memory_spaces (name, memories) VALUES (?, 0) ON CONFLICT (name) DO NOTHING", self._namespace
        )
        row = self._connection.row("SELECT id FROM memory_spaces WHERE name = ?", self._namespace)
        assert row is not None
        self.space = int(row[0])

    def get(self, key: str) -> MemoryRow | None:
        """The memory of that key."""
        row = self._connection.row(
            f"SELECT {_COLUMNS} FROM memories WHERE space = ? AND key = ?",
            self.space,
            key,
        )
        return None if row is None else MemoryRow(*row)

    def by_ids(self, ids: Iterable[int]) -> dict[int, MemoryRow]:
        """Those of these numbers that exist."""
        found: dict[int, MemoryRow] = {}
        for part in parts(list(dict.fromkeys(ids))):
            # Told the namespace as well, SQLite would go through all that it has.
            sql = f"SELECT {_COLUMNS} FROM memories WHERE id IN ({marks(part)})"
            found.update({kept.id: kept for kept in (MemoryRow(*row) for row in self._connection.rows(sql, *part))})
        return found

    def facts(self, keys: Iterable[str]) -> list[Facts]:
        """What the scores of these memories are worked out from; those that are not written are left out."""
        found: list[Facts] = []
        for part in parts(list(dict.fromkeys(keys))):
            rows = self._connection.rows(
                "SELECT id, key, base, access_count, last_accessed_at FROM memories"
                f" WHERE space = ? AND key IN ({marks(part)})",
                self.space,
                *part,
            )
            found += [Facts(*row) for row in rows]
        return found

    def page(self, prefix: str, order: str, limit: int, offset: int) -> tuple[list[BriefRow], int]:
        """Some of the memories whose keys begin so, and how many there are."""
        where, params = "space = ?", [self.space]
        if prefix:
            where, params = f"{where} AND key >= ?", [*params, prefix]
        if end := _after_all(prefix):
            where, params = f"{where} AND key < ?", [*params, end]
        by = "key" if order == "key" else "updated_at DESC, key"
        counted = self._connection.row(f"SELECT count(*) FROM memories WHERE {where}", *params)
        rows = self._connection.rows(
            f"SELECT {_ENTRY} FROM memories WHERE {where} ORDER BY {by} LIMIT ? OFFSET ?",
            *params,
            limit,
            offset,
        )
        return [BriefRow(*row) for row in rows], int(counted[0]) if counted else 0

    def by_keys(self, keys: Iterable[str]) -> dict[str, MemoryRow]:
        """Those of these keys that exist."""
        found: dict[str, MemoryRow] = {}
        for part in parts(list(dict.fromkeys(keys))):
            sql = f"SELECT {_COLUMNS} FROM memories WHERE space = ? AND key IN ({marks(part)})"
            rows = self._connection.rows(sql, self.space, *part)
            found.update({kept.key: kept for kept in (MemoryRow(*row) for row in rows)})
        return found

    def after(self, key: str, limit: int) -> list[MemoryRow]:
        """The next by key."""
        sql = f"SELECT {_COLUMNS} FROM memories WHERE space = ? AND key > ? ORDER BY key LIMIT ?"
        return [MemoryRow(*row) for row in self._connection.rows(sql, self.space, key, limit)]

    def insert(self, key: str, summary: str, text: str, base: float, now: float) -> int:
        """Write a new memory; its number."""
        return self.enter(MemoryRow(0, key, summary, 1, base, 0, 0, now, now, now, text))

    def enter(self, kept: MemoryRow) -> int:
        """Write a memory that has a history already; its number."""
        row = self._connection.row(
            "INSERT INTO memories (space, key, summary, text, version, base, access_count, traverse_count, created_at,"
            " updated_at, last_accessed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            *(self.space, kept.key, kept.summary, kept.text, kept.version, kept.base, kept.access_count),
            *(kept.traverse_count, kept.created_at, kept.updated_at, kept.last_accessed_at),
        )
        assert row is not None
        self._connection.execute("UPDATE memory_spaces SET memories = memories + 1 WHERE id = ?", self.space)
        return int(row[0])

    def rewrite(self, number: int, summary: str, text: str, now: float) -> None:
        """Other words for a memory, which is another version of it then."""
        self._connection.execute(
            "UPDATE memories SET summary = ?, text = ?, version = version + 1, updated_at = ? WHERE id = ?",
            *(summary, text, now, number),
        )

    def restore(self, kept: MemoryRow) -> None:
        """Put another memory in the place of one, with its history."""
        self._connection.execute(
            "UPDATE memories SET summary = ?, text = ?, version = ?, base = ?, access_count = ?, traverse_count = ?,"
            " created_at = ?, updated_at = ?, last_accessed_at = ? WHERE id = ?",
            *(kept.summary, kept.text, kept.version, kept.base, kept.access_count, kept.traverse_count),
            *(kept.created_at, kept.updated_at, kept.last_accessed_at, kept.id),
        )

    def rename(self, number: int, old: str, new: str, now: float) -> None:
        """Another key for a memory; links that lead to it follow."""
        self._connection.execute(
            "UPDATE memories SET key = ?, version = version + 1, updated_at = ? WHERE id = ?", new, now, number
        )
        # A memory may have waited for the new key while it had a link to the old one: the stronger one is enough.
        for there, other, is_weaker in ((new, old, "<="), (old, new, "<")):
            self._connection.execute(
                "DELETE FROM memory_links WHERE space = ? AND target = ? AND EXISTS (SELECT 1 FROM memory_links other"
                " WHERE other.source = memory_links.source AND other.target = ? AND other.type = memory_links.type"
                f" AND memory_links.weight {is_weaker} other.weight)",
                *(self.space, there, other),
            )
        self._connection.execute(
            "UPDATE memory_links SET target = ? WHERE space = ? AND target = ?", new, self.space, old
        )

    def delete(self, number: int) -> None:
        """Take a memory out, and the links that lead from it."""
        self._connection.execute("DELETE FROM memory_links WHERE source = ?", number)
        self._connection.execute("DELETE FROM memories WHERE id = ?", number)
        self._connection.execute("UPDATE memory_spaces SET memories = memories - 1 WHERE id = ?", self.space)

    def count_access(self, number: int, now: float) -> None:
        """Somebody looked at a memory."""
        self._connection.execute(
            "UPDATE memories SET access_count = access_count + 1, last_accessed_at = ? WHERE id = ?", now, number
        )

    def count_traversals(self, numbers: Sequence[int]) -> None:
        """Somebody came along, following links."""
        if numbers:
            self._connection.execute(
                f"UPDATE memories SET traverse_count = traverse_count + 1 WHERE id IN ({marks(numbers)})",
                *numbers,
            )

    def relink(self, number: int, links: Sequence[Link]) -> None:
        """Make these the links that lead from a memory, in this order."""
        self._connection.execute("DELETE FROM memory_links WHERE source = ?", number)
        self._connection.execute_many(
            "INSERT INTO memory_links (space, source, target, type, term, weight) VALUES (?, ?, ?, ?, ?, ?)",
            [(self.space, number, link.key, link.type, link.term, link.weight) for link in links],
        )

    def links(self, numbers: Sequence[int]) -> dict[int, list[Link]]:
        """The links that lead from these memories, in the order they were made."""
        found: dict[int, list[Link]] = {number: [] for number in numbers}
        for part in parts(numbers):
            for source, target, kind, term, weight in self._connection.rows(
                "SELECT source, target, type, term, weight FROM memory_links"
                f" WHERE source IN ({marks(part)}) ORDER BY id",
                *part,
            ):
                found[source].append(Link(target, kind, term, weight))
        return found

    def links_around(self, keys: Sequence[str], most: int) -> list[tuple[str, str, str]]:
        """The links that lead to and from these memories, so many at most: from where, to where, and of what type."""
        found: dict[tuple[str, str, str], None] = {}
        base = (
            "SELECT memories.key, target, type FROM memory_links JOIN memories ON memories.id = source"
            " WHERE memory_links.space = ? AND"
        )
        for part in parts(keys):
            for column in ("memories.key", "target"):
                sql = f"{base} {column} IN ({marks(part)}) ORDER BY memory_links.id LIMIT ?"
                rows = self._connection.rows(sql, self.space, *part, most - len(found))
                found.update(dict.fromkeys((str(source), str(target), str(kind)) for source, target, kind in rows))
                if len(found) >= most:
                    return list(found)
        return list(found)

    def briefs(self, keys: Iterable[str]) -> list[BriefRow]:
        """Those of these keys that exist, without their texts."""
        found: list[BriefRow] = []
        for part in parts(list(keys)):
            sql = f"SELECT {_ENTRY} FROM memories WHERE space = ? AND key IN ({marks(part)})"
            found += [BriefRow(*row) for row in self._connection.rows(sql, self.space, *part)]
        return found

    def degrees(self, memories: Iterable[Numbered]) -> dict[int, Degrees]:
        """How many links lead to and from each of these."""
        asked = list(memories)
        outgoing = self._counts("source", [kept.id for kept in asked], "")
        incoming = self._counts("target", [kept.key for kept in asked], " AND space = ?", self.space)
        return {kept.id: Degrees(incoming.get(kept.key, 0), outgoing.get(kept.id, 0)) for kept in asked}

    def _counts(self, column: str, values: Sequence[int | str], also: str, *params: int) -> dict[int | str, int]:
        found: dict[int | str, int] = {}
        for part in parts(values):
            rows = self._connection.rows(
                f"SELECT {column}, count(*) FROM memory_links WHERE {column} IN ({marks(part)}){also}"
                f" GROUP BY {column}",
                *part,
                *params,
            )
            found.update({value: int(count) for value, count in rows})
        return found


def _after_all(prefix: str) -> str | None:
    """What comes right after everything that begins so: both databases order by code point."""
    rest = prefix.rstrip(_LAST_CHARACTER)
    if not rest:
        return None
    following = ord(rest[-1]) + 1
    # Surrogates are no characters.
    return rest[:-1] + chr(0xE000 if following == 0xD800 else following)
