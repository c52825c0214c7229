"""A task: a line with a box in a change's tasks.md, and what is known of it beside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal["pending", "in_progress", "completed", "blocked", "skipped"]
STATUSES: tuple[Status, ...] = ("pending", "in_progress", "completed", "blocked", "skipped")
Priority: TypeAlias = Literal["critical", "high", "medium", "low", "backlog"]
PRIORITIES: tuple[Priority, ...] = ("critical", "high", "medium", "low", "backlog")
RANK = {priority: rank for rank, priority in enumerate(PRIORITIES)}
# What a file has no place for: a box is empty or ticked.
UNWRITTEN: tuple[Status, ...] = ("in_progress", "blocked", "skipped")

_MOST_REASONS, _LONGEST_NAME = 5, 120
_NUMBER = re.compile(r"[0-9]{1,9}")
# What people number their tasks with in a file: `1.2`, `1.2.`, `**1.2**`, `3)`.
PRINTED = re.compile(r"\*{0,2}(\d+(?:\.\d+)*)[.):]?\*{0,2}\s+")
_REFERENCE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}")


class TaskId(NamedTuple):
    """Which task: the change's id and the task's number in its file, from 1."""

    change: str
    number: int

    def __str__(self) -> str:
        return f"{self.change}/{self.number}"

    @classmethod
    def parse(cls, text: str, change: str | None = None) -> TaskId | None:
        """`change/number`, split at the first `/`; a number alone where the change is known. Else `None`."""
        given, slash, number = map(str.strip, text.partition("/"))
        if not slash:
            given, number = change or "", given
        return cls(given, int(number)) if given and _NUMBER.fullmatch(number) else None


class Reference(NamedTuple):
    """Which task somebody means: by its place in the file (`3`), or by the number before its text (`1.2`)."""

    change: str
    number: str

    @classmethod
    def parse(cls, text: str, change: str | None = None) -> Reference | None:
        """As a `TaskId` is read, with a number that may have dots."""
        given, slash, number = map(str.strip, text.partition("/"))
        if not slash:
            given, number = change or "", given
        return cls(given, number) if given and _REFERENCE.fullmatch(number) else None

    @property
    def place(self) -> TaskId | None:
        """The task's id, where the number is a place."""
        return None if "." in self.number else TaskId(self.change, int(self.number))

    def fits(self, place: int, content: str) -> bool:
        """Whether the task at this place, which says this, is meant."""
        return parse_printed_number(content) == self.number if "." in self.number else place == int(self.number)


def parse_printed_number(content: str) -> str | None:
    """The number before a task's text, without the dot or bracket behind it."""
    printed = PRINTED.match(content)
    return None if printed is None else printed[1]


class Block(NamedTuple):
    """One reason why a task cannot be begun: what it waits for, and what is the matter with that."""

    on: str
    why: str


@dataclass(slots=True)
class Task:
    """A task as it is now."""

    id: TaskId
    content: str
    status: Status
    priority: Priority
    assignee: str | None
    notes: str | None
    started_at: float | None
    completed_at: float | None
    line: int
    # What its line says it depends on, and what of that cannot be read.
    depends: tuple[TaskId, ...] = ()
    unreadable: tuple[str, ...] = ()
    # The row that is kept of it.
    known: int | None = None

    def to_dict(
        self, depends_on: tuple[TaskId, ...], blocks: tuple[Block, ...], synced_at: float | None
    ) -> dict[str, Any]:
        """As it is shown everywhere."""
        shown: dict[str, Any] = {
            "id": str(self.id),
            "content": self.content,
            "status": self.status,
            "priority": self.priority,
            "depends_on": [*map(str, depends_on), *self.unreadable],
            "blocked_by": list(dict.fromkeys(block.on for block in blocks)),
            "assignee": self.assignee,
            "started_at": moment(self.started_at),
            "completed_at": moment(self.completed_at),
            "notes": self.notes,
            "source_line": self.line,
            "synced_at": moment(synced_at if self.known is not None else None),
        }
        if (printed := parse_printed_number(self.content)) is not None:
            shown["printed_number"] = printed
        if blocks:
            shown["why_blocked"] = reasons(blocks)
        return shown


def reasons(blocks: tuple[Block, ...]) -> str:
    """Why a task cannot be begun, in words; of many reasons the first."""
    told = [f"{block.on[:_LONGEST_NAME]} {block.why}" for block in blocks[:_MOST_REASONS]]
    return "; ".join(told if len(blocks) <= _MOST_REASONS else [*told, f"and {len(blocks) - _MOST_REASONS} more"])


def moment(seconds: float | None) -> str | None:
    """A point in time as people and programs read it."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
