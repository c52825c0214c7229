"""A sync: what is known of tasks brought in line with their files, and what there is to tell about it.

The file decides whether a task is completed. What it has no place for stays with the task, found again by its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pegboard.toolsets.tasks.matching import match_tasks
from pegboard.toolsets.tasks.table import TaskRow, TaskTable
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.tasks.taskfile import Item

Kind = Literal["added", "updated", "removed"]


class Difference(NamedTuple):
    """What became of one task."""

    kind: Kind
    id: str
    content: str
    what: str

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        shown = {"id": self.id, "change": self.kind, "content": self.content}
        return {**shown, "what": self.what} if self.what else shown


class Disagreement(NamedTuple):
    """A box that says something else than what was set here."""

    id: str
    content: str
    here: str
    file: str
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {
            "id": self.id,
            "content": self.content,
            "registry": self.here,
            "file": self.file,
            "outcome": self.outcome,
        }


@dataclass(slots=True)
class Plan:
    """What is to be written, and what there is to tell."""

    new: list[TaskRow] = field(default_factory=list[TaskRow])
    changed: list[TaskRow] = field(default_factory=list[TaskRow])
    forgotten: list[int] = field(default_factory=list[int])
    differences: list[Difference] = field(default_factory=list[Difference])
    conflicts: list[Disagreement] = field(default_factory=list[Disagreement])
    changes: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.new or self.changed or self.forgotten)

    def count(self, kind: Kind) -> int:
        """How many tasks were added, updated or removed."""
        return sum(difference.kind == kind for difference in self.differences)

    def write(self, table: TaskTable) -> None:
        """Do it."""
        table.update(self.changed)
        table.insert(self.new)
        if self.forgotten:
            table.forget(self.forgotten)


class Rules(NamedTuple):
    """How it is done: when, whether every disagreement is settled for the file, and what somebody sets meanwhile."""

    now: float
    force: bool = False
    # Changes what is known of the task of this number, before it is compared with its file.
    number: int = 0
    change: Callable[[TaskRow], TaskRow] | None = None


def plan_all(known: Mapping[str, Sequence[TaskRow]], files: Mapping[str, Sequence[Item]], rules: Rules) -> Plan:
    """For every change that is there, and those that were."""
    plan = Plan(changes=len(files))
    for change in sorted({*known, *files}):
        plan_change(plan, change, known.get(change, ()), files.get(change, ()), rules)
    return plan


def plan_change(plan: Plan, change: str, known: Sequence[TaskRow], items: Sequence[Item], rules: Rules) -> None:
    """For one change."""
    found = match_tasks(known, items)
    for item, each in zip(items, found, strict=True):
        if each is None:
            _add(plan, change, item, rules)
        else:
            _compare(plan, each, item, rules)
    taken = {each.id for each in found if each is not None}
    for each in known:
        if each.id not in taken:
            _remove(plan, each, rules)


def _add(plan: Plan, change: str, item: Item, rules: Rules) -> None:
    fresh = TaskRow(0, change, item.number, item.digest, item.content, int(item.ticked), depends_of(item))
    plan.new.append(_set(fresh, item, rules))
    plan.differences.append(Difference("added", str(TaskId(change, item.number)), item.content, ""))


def _compare(plan: Plan, each: TaskRow, item: Item, rules: Rules) -> None:
    known = _set(each, item, rules)
    ticked, depends = int(item.ticked), depends_of(item)
    there = (item.number, item.digest, item.content, ticked, depends, 0)
    seen = known
    if known.snapshot != there:
        seen = replace(
            known,
            number=item.number,
            digest=item.digest,
            content=item.content,
            ticked=ticked,
            depends=depends,
            gone=0,
        )
    now = _reconcile(plan, known, seen, rules)
    if what := _what(each, seen):
        plan.differences.append(Difference("updated", str(TaskId(each.change, item.number)), item.content, what))
    if now != each:
        plan.changed.append(now)


def _remove(plan: Plan, each: TaskRow, rules: Rules) -> None:
    """A task that its file does not hold any more may come back with another branch: what is known of it is kept."""
    if not each.gone:
        plan.differences.append(Difference("removed", str(TaskId(each.change, each.number)), each.content, ""))
    if rules.force:
        plan.forgotten.append(each.id)
    if not each.gone:
        plan.changed.append(replace(each, gone=1))


def _set(known: TaskRow, item: Item, rules: Rules) -> TaskRow:
    return rules.change(known) if rules.change is not None and item.number == rules.number else known


def _reconcile(plan: Plan, known: TaskRow, seen: TaskRow, rules: Rules) -> TaskRow:
    """What is known after the box was looked at."""
    here = str(TaskId(seen.change, seen.number)), seen.content, known.status or ""
    if seen.ticked and known.status not in {None, "completed"}:
        plan.conflicts.append(Disagreement(*here, "ticked", "the file counts: it is completed"))
        return replace(seen, status=None, completed_at=known.completed_at or rules.now)
    if not seen.ticked and known.status == "completed":
        if rules.force:
            plan.conflicts.append(Disagreement(*here, "not ticked", "settled for the file: it is pending"))
            return replace(seen, status=None, completed_at=None)
        told = "the file counts: it is pending, until its box is ticked again; force settles it for the file"
        plan.conflicts.append(Disagreement(*here, "not ticked", told))
        return seen
    if seen.ticked != known.ticked and known.status is None:
        return replace(seen, completed_at=(known.completed_at or rules.now) if seen.ticked else None)
    return seen


def _what(before: TaskRow, now: TaskRow) -> str:
    """What is another way with a task, in words."""
    said = (
        (before.gone, "it is back"),
        (before.number != now.number, f"number {before.number} → {now.number}"),
        (before.content != now.content, f"text, before: {before.content[:100]}"),
        (before.ticked != now.ticked, "ticked" if now.ticked else "unticked"),
        (before.depends != now.depends, "dependencies"),
    )
    return ", ".join(words for holds, words in said if holds)


def depends_of(item: Item) -> str:
    """What a line says of dependencies, to be compared."""
    return ", ".join([*map(str, item.depends), *item.unreadable])
