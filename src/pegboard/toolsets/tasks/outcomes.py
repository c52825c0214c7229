"""What the registry's operations find, before it is put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.toolsets.tasks.state import State
from pegboard.toolsets.tasks.sync import Difference, Disagreement, Plan
from pegboard.toolsets.tasks.task import Priority, Status, Task, TaskId


@dataclass(frozen=True, slots=True)
class Initialised:
    """A registry that is there."""

    folder: Path
    created: bool
    changes: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync found."""

    changes: int
    differences: Sequence[Difference]
    conflicts: Sequence[Disagreement]
    problems: Sequence[tuple[str, str]]
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks are wanted; nothing given means all."""

    change: str | None = None
    status: Status | None = None
    priority: Priority | None = None
    assignee: str | None = None
    unblocked: bool = False

    def admits(self, task: Task, state: State) -> bool:
        """Whether a task is wanted."""
        return (
            (self.status is None or task.status == self.status)
            and (self.priority is None or task.priority == self.priority)
            and (self.assignee is None or task.assignee == self.assignee)
            and (not self.unblocked or (task.id not in state.blocks and task.status != "blocked"))
        )


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks, and what there is in all."""

    state: State
    # Every task that passes the filter, and those of them that were asked for.
    found: Sequence[Task]
    tasks: Sequence[Task]
    total: int
    limit: int
    offset: int
    problems: Sequence[tuple[str, str]] = ()

    @property
    def match_count(self) -> int:
        """How many pass the filter."""
        return len(self.found)


@dataclass(frozen=True, slots=True)
class Next:
    """What to do next, the best first, and why."""

    state: State
    tasks: Sequence[Task]
    reasons: Sequence[str]
    # Why there is nothing to do, where that is so.
    reason: str
    blocked: int
    problems: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Updated:
    """A task that was changed."""

    state: State
    task: Task
    # Tasks that waited for it and for nothing else.
    unblocked: Sequence[TaskId]
    remark: str | None
    synced: Plan


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Who waits for a task, and for whom it waits."""

    state: State
    task: Task
    dependants: Sequence[TaskId]
    added: Sequence[TaskId] = ()
    removed: Sequence[TaskId] = ()
    synced: Plan = field(default_factory=Plan)
