"""The state of all tasks at one moment: files and rows together, who waits for whom, and what could be done next.

Made anew only where something changed: of 500 changes, the tasks of 499 stay the same objects.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard.toolsets.tasks.cycles import on_cycles
from pegboard.toolsets.tasks.folder import Change, Contents
from pegboard.toolsets.tasks.matching import match_tasks
from pegboard.toolsets.tasks.table import Delta, Needs, TaskRow
from pegboard.toolsets.tasks.task import RANK, UNWRITTEN, Block, Status, Task, TaskId
from pegboard.toolsets.tasks.taskfile import Item, TaskFile

_NOTHING: Sequence[TaskRow] = ()


@dataclass(slots=True)
class TaskRows:
    """What is kept of a folder's tasks, as far as it was read."""

    version: int = -1
    synced_at: float | None = None
    by_id: dict[int, TaskRow] = field(default_factory=dict[int, TaskRow])
    # A list is another object once something in it changed.
    by_change: dict[str, list[TaskRow]] = field(default_factory=dict[str, list[TaskRow]])
    needs: Sequence[Needs] = ()

    def take(self, delta: Delta) -> None:
        """Take over what is new."""
        if delta.whole:
            self.by_id.clear()
            self.by_change.clear()
        if delta.whole or delta.version != self.version:
            self.needs = delta.needs
        touched = {known.change for known in delta.rows}
        if not delta.whole:
            replaced = {known.id for known in delta.rows}
            for change in touched:
                self.by_change[change] = [each for each in self.by_change.get(change, ()) if each.id not in replaced]
        for known in delta.rows:
            self.by_id[known.id] = known
            self.by_change.setdefault(known.change, []).append(known)
        self.version, self.synced_at = delta.version, delta.synced_at


@dataclass(slots=True)
class ChangeTasks:
    """The tasks of one change."""

    file: TaskFile
    known: Sequence[TaskRow]
    tasks: list[Task]
    # Which task belongs to which row.
    of_row: dict[int, Task]
    counts: Counter[Status]
    # What their lines say they depend on.
    needs: dict[TaskId, tuple[TaskId, ...]]

    @property
    def progress(self) -> float:
        """How far the change is, from 0 to 1."""
        return self.counts["completed"] / len(self.tasks) if self.tasks else 0.0

    @property
    def status(self) -> Status:
        """Where the change is: nothing begun, something, or everything done or given up."""
        if self.tasks and self.counts["completed"] + self.counts["skipped"] == len(self.tasks):
            return "completed"
        return "in_progress" if self.counts["completed"] + self.counts["in_progress"] else "pending"


class State:
    """Everything there is to know of a folder's tasks."""

    def __init__(self, contents: Contents, rows: TaskRows, before: State | None = None) -> None:
        self.version = rows.version
        self.synced_at = rows.synced_at
        self.folders: Mapping[str, Change] = contents.changes
        # Changes that are there but cannot be read, and why.
        self.unread: Mapping[str, str] = contents.unread
        self.changes: dict[str, ChangeTasks] = {}
        for name, change in self.folders.items():
            if change.tasks is not None:
                last = before.changes.get(name) if before is not None else None
                self.changes[name] = _join(change.tasks, name, rows, last)
        # What was added here, by the task and what it needs.
        self.kept = self._registry_needs(rows)
        if before is not None and self._needs_the_same(before):
            self.needs, self.needed_by, self.cyclic = before.needs, before.needed_by, before.cyclic
            self.blocks = self._blocks_since(before)
        else:
            self.needs = self._needs()
            self.needed_by = _invert(self.needs)
            self.cyclic = on_cycles(self.needs)
            self.blocks = self._blocks({*self.needs, *self._unreadable()}, {})

    def task(self, task: TaskId) -> Task | None:
        """The task of this id."""
        change = self.changes.get(task.change)
        if change is None or not 0 < task.number <= len(change.tasks):
            return None
        return change.tasks[task.number - 1]

    def all(self) -> Iterator[Task]:
        """Every task, by change and number."""
        for change in self.changes.values():
            yield from change.tasks

    def display(self, task: Task) -> dict[str, Any]:
        """A task as it is shown everywhere."""
        return task.to_dict(self.needs.get(task.id, ()), self.blocks.get(task.id, ()), self.synced_at)

    def dependants(self, task: TaskId) -> list[TaskId]:
        """The tasks that depend on this one."""
        return sorted(self.needed_by.get(task, ()))

    def is_free(self, task: Task) -> bool:
        """Whether a task waits to be begun, and for nothing else."""
        return task.status == "pending" and task.id not in self.blocks

    def next(self, count: int, change: str | None = None) -> list[Task]:
        """What to do next: by priority, then where a change is furthest, then by number."""
        chosen = self.changes.values() if change is None else [self.changes[change]]
        waiting = (task for each in chosen for task in each.tasks if self.is_free(task))
        return heapq.nsmallest(count, waiting, key=self._place)

    def _place(self, task: Task) -> tuple[int, float, int, str]:
        progress = self.changes[task.id.change].progress
        return RANK[task.priority], -progress, task.id.number, task.id.change

    def _needs_the_same(self, before: State) -> bool:
        """Whether every task depends on what it did before: mostly so, as a tick changes nothing about that."""
        return (
            self.kept == before.kept
            and self.unread.keys() == before.unread.keys()
            and self.changes.keys() == before.changes.keys()
            and all(
                change is (last := before.changes[name]) or change.needs == last.needs
                for name, change in self.changes.items()
            )
        )

    def _blocks_since(self, before: State) -> dict[TaskId, tuple[Block, ...]]:
        """The reasons of before, save for tasks that are others now and those that wait for them."""
        touched: set[TaskId] = set()
        for name, change in self.changes.items():
            last = before.changes[name]
            if change is last:
                continue
            for number in range(1, max(len(change.tasks), len(last.tasks)) + 1):
                task = TaskId(name, number)
                touched.add(task)
                now, then = self.task(task), before.task(task)
                if now is None or then is None or now.status != then.status:
                    touched.update(self.needed_by.get(task, ()))
        return self._blocks(touched, before.blocks)

    def _blocks(
        self, tasks: Iterable[TaskId], known: Mapping[TaskId, tuple[Block, ...]]
    ) -> dict[TaskId, tuple[Block, ...]]:
        """Why tasks cannot be begun, with these looked at anew."""
        found = dict(known)
        for each in tasks:
            found.pop(each, None)
            task = self.task(each)
            if task is not None and task.status != "completed" and (blocks := self._blocks_of(task)):
                found[each] = blocks
        return found

    def _unreadable(self) -> Iterator[TaskId]:
        return (task.id for change in self.changes.values() for task in change.tasks if task.unreadable)

    def _needs(self) -> dict[TaskId, tuple[TaskId, ...]]:
        """What each task depends on: what its line says, then what was added here."""
        found: dict[TaskId, tuple[TaskId, ...]] = {}
        for change in self.changes.values():
            found.update(change.needs)
        for task, kept in self.kept.items():
            found[task] = tuple(dict.fromkeys([*found.get(task, ()), *kept]))
        return found

    def _registry_needs(self, rows: TaskRows) -> dict[TaskId, dict[TaskId, Needs]]:
        found: dict[TaskId, dict[TaskId, Needs]] = {}
        for need in rows.needs:
            task, known = self._of_row(rows.by_id[need.task]), rows.by_id[need.needed]
            if task is not None:
                other = self._of_row(known)
                # A task that is gone is told by the number it had.
                found.setdefault(task.id, {})[other.id if other is not None else self._former(known)] = need
        return found

    def _former(self, known: TaskRow) -> TaskId:
        """The id of a task that is gone; marked, since another task may have its number by now."""
        change = f"{known.change} (gone)"
        while change in self.folders:
            # Somebody's own change may be called so, and is not what was meant.
            change += "*"
        return TaskId(change, known.number)

    def _of_row(self, known: TaskRow) -> Task | None:
        change = self.changes.get(known.change)
        return None if change is None else change.of_row.get(known.id)

    def _blocks_of(self, task: Task) -> tuple[Block, ...]:
        blocks = [Block(part, "cannot be read as a dependency") for part in task.unreadable]
        for needed in self.needs.get(task.id, ()):
            other = self.task(needed)
            if other is None:
                blocks.append(
                    Block(str(needed), "cannot be read" if needed.change in self.unread else "does not exist")
                )
            elif task.id in self.cyclic and self.cyclic.get(needed) == self.cyclic[task.id]:
                blocks.append(Block(str(needed), "waits for this task in turn: a cycle"))
            elif other.status != "completed":
                blocks.append(Block(str(needed), f"is {other.status}"))
        return tuple(blocks)


def _invert(needs: Mapping[TaskId, Sequence[TaskId]]) -> dict[TaskId, list[TaskId]]:
    """Who waits for each."""
    found: dict[TaskId, list[TaskId]] = {}
    for task, needed in needs.items():
        for other in needed:
            found.setdefault(other, []).append(task)
    return found


def _join(file: TaskFile, change: str, rows: TaskRows, last: ChangeTasks | None) -> ChangeTasks:
    known = rows.by_change.get(change, _NOTHING)
    if last is not None and last.file is file and last.known is known:
        return last
    found = match_tasks(known, file.items)
    tasks = [_task(change, item, each) for item, each in zip(file.items, found, strict=True)]
    return ChangeTasks(
        file=file,
        known=known,
        tasks=tasks,
        of_row={task.known: task for task in tasks if task.known is not None},
        counts=Counter(task.status for task in tasks),
        needs={task.id: task.depends for task in tasks if task.depends},
    )


def _task(change: str, item: Item, known: TaskRow | None) -> Task:
    task = TaskId(change, item.number)
    if known is None:
        return Task(
            task,
            item.content,
            "completed" if item.ticked else "pending",
            "medium",
            *(None, None, None, None, item.line, item.depends, item.unreadable),
        )
    status: Status = known.status if known.status in UNWRITTEN else "pending"
    return Task(
        task,
        item.content,
        "completed" if item.ticked else status,
        known.priority or "medium",
        known.assignee,
        known.notes,
        known.started_at,
        known.completed_at if item.ticked else None,
        item.line,
        item.depends,
        item.unreadable,
        known.id,
    )
