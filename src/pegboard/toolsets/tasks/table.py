"""Tasks as rows: every statement about them, in SQL that both databases speak.

A row stands for one task of one folder, as the last sync saw it, with all that its file has no place for. Rows carry
the registry's version at which they were last written, so that whoever read them before reads only what is new.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pegboard.storage.database import DatabaseConnection, Value
from pegboard.storage.sql import marks, parts
from pegboard.toolsets.tasks.task import Priority, Status

_SEEN = ("change_id", "number", "digest", "content", "ticked", "depends")
_OWN = ("status", "priority", "assignee", "notes", "started_at", "completed_at")
_COLUMNS = ", ".join(("id", *_SEEN, *_OWN, "gone"))


@dataclass(slots=True)
class TaskRow:
    """What is known of a task; `id` is 0 before it is written."""

    id: int
    change: str
    number: int
    digest: str
    content: str
    ticked: int
    depends: str
    # `completed` where `registry_update` ticked the box; nothing where the box alone tells.
    status: Status | None = None
    priority: Priority | None = None
    assignee: str | None = None
    notes: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    # 1 for a task that its file does not hold any more.
    gone: int = 0

    @property
    def snapshot(self) -> tuple[int, str, str, int, str, int]:
        """What the last sync saw of it."""
        return self.number, self.digest, self.content, self.ticked, self.depends, self.gone

    @property
    def values(self) -> tuple[Value, ...]:
        """What is written of it, in the order of the columns."""
        own = (self.status, self.priority, self.assignee, self.notes, self.started_at, self.completed_at)
        return (self.change, self.number, self.digest, self.content, self.ticked, self.depends, *own, self.gone)


class Needs(NamedTuple):
    """One task needs another, as `registry_deps` was told."""

    task: int
    needed: int


class Delta(NamedTuple):
    """What is new since a version; everything, where nothing was read before or rows were taken out since."""

    version: int
    synced_at: float | None
    whole: bool
    rows: Sequence[TaskRow]
    needs: Sequence[Needs]


class TaskTable:
    """The tasks of one folder, within one transaction."""

    def __init__(self, connection: DatabaseConnection, root: str) -> None:
        self._connection = connection
        self._root = root
        row = connection.row("SELECT id, version, forgot, synced_at FROM task_registries WHERE root = ?", root)
        # Without a row nothing is known of this folder, and no number stands for it.
        self.registry, self.version, self._forgot, self.synced_at = row or (-1, 0, 0, None)

    @property
    def exists(self) -> bool:
        """Whether there is a registry of this folder."""
        return self.registry >= 0

    def make(self, now: float) -> None:
        """Have a registry, and a new version of it, before something is written."""
        if not self.exists:
            self._connection.execute(
                "INSERT INTO task_registries (root, version, forgot, created_at) VALUES (?, 0, 0, ?)"
                " ON CONFLICT (root) DO NOTHING",
                *(self._root, now),
            )
        row = self._connection.row(
            "UPDATE task_registries SET version = version + 1 WHERE root = ? RETURNING id, version", self._root
        )
        assert row is not None
        self.registry, self.version = row

    def mark_synced(self, now: float) -> None:
        """Everything was looked at."""
        self._connection.execute("UPDATE task_registries SET synced_at = ? WHERE id = ?", now, self.registry)

    def since(self, version: int) -> Delta:
        """What is new since then."""
        if self.exists and version == self.version:
            return Delta(version, self.synced_at, False, (), ())
        whole = version < self._forgot
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE registry = ?" + ("" if whole else " AND version > ?")
        rows = self._connection.rows(sql, self.registry, *(() if whole else (version,)))
        return Delta(self.version, self.synced_at, whole, [TaskRow(*row) for row in rows], self.needs())

    def needs(self) -> list[Needs]:
        """Who needs whom."""
        sql = "SELECT task, needed FROM task_needs WHERE registry = ? ORDER BY task, needed"
        return [Needs(*row) for row in self._connection.rows(sql, self.registry)]

    def of_change(self, change: str) -> list[TaskRow]:
        """What is known of a change's tasks, those that are gone included."""
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE registry = ? AND change_id = ? ORDER BY number, id"
        return [TaskRow(*row) for row in self._connection.rows(sql, self.registry, change)]

    def by_change(self) -> dict[str, list[TaskRow]]:
        """The same of all changes."""
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE registry = ? ORDER BY change_id, number, id"
        rows = (TaskRow(*row) for row in self._connection.rows(sql, self.registry))
        return {change: list(own) for change, own in itertools.groupby(rows, key=lambda known: known.change)}

    def insert(self, tasks: Iterable[TaskRow]) -> None:
        """Write tasks that are new."""
        columns = ("registry", "version", *_SEEN, *_OWN, "gone")
        self._connection.execute_many(
            f"INSERT INTO tasks ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [(self.registry, self.version, *known.values) for known in tasks],
        )

    def update(self, tasks: Iterable[TaskRow]) -> None:
        """Write tasks anew."""
        columns = (*_SEEN, *_OWN, "gone", "version")
        self._connection.execute_many(
            f"UPDATE tasks SET {', '.join(f'{column} = ?' for column in columns)} WHERE id = ?",
            [(*known.values, self.version, known.id) for known in tasks],
        )

    def forget(self, ids: Sequence[int]) -> None:
        """Take out what is known of tasks that are gone, save those that others still need: these wait for them."""
        for part in parts(ids):
            self._connection.execute(f"DELETE FROM task_needs WHERE task IN ({marks(part)})", *part)
        for part in parts(ids):
            self._connection.execute(
                f"DELETE FROM tasks WHERE id IN ({marks(part)}) AND NOT EXISTS"
                " (SELECT 1 FROM task_needs WHERE task_needs.needed = tasks.id)",
                *part,
            )
        self._connection.execute("UPDATE task_registries SET forgot = version WHERE id = ?", self.registry)

    def add_need(self, task: int, needed: int) -> None:
        """One task needs another."""
        self._connection.execute(
            "INSERT INTO task_needs (registry, task, needed) VALUES (?, ?, ?) ON CONFLICT (task, needed) DO NOTHING",
            *(self.registry, task, needed),
        )

    def remove_need(self, need: Needs) -> None:
        """One task does not need another any more."""
        self._connection.execute("DELETE FROM task_needs WHERE task = ? AND needed = ?", need.task, need.needed)
