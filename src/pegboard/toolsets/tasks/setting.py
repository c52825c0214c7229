"""A requested update of a task."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.result import invalid
from pegboard.toolsets.tasks.check import MAX_ASSIGNEE, MAX_NOTES
from pegboard.toolsets.tasks.table import TaskRow
from pegboard.toolsets.tasks.task import PRIORITIES, STATUSES, Priority, Status
from pegboard.toolsets.validation import validate_choice, validate_text


@dataclass(frozen=True, slots=True)
class Setting:
    """What somebody sets of a task."""

    status: Status | None
    priority: Priority | None
    assignee: str | None
    notes: str | None
    now: float

    @classmethod
    def validate(
        cls, status: str | None, priority: str | None, assignee: str | None, notes: str | None, now: float
    ) -> Setting:
        """A setting that can be kept, or a clear refusal."""
        if status is priority is assignee is notes is None:
            raise invalid("nothing to change: give status, priority, assignee or notes")
        return cls(
            None if status is None else validate_choice(status, "status", STATUSES),
            None if priority is None else validate_choice(priority, "priority", PRIORITIES),
            None if assignee is None else validate_text(assignee, "assignee", MAX_ASSIGNEE).strip(),
            None if notes is None else validate_text(notes, "notes", MAX_NOTES),
            now,
        )

    def apply(self, known: TaskRow) -> TaskRow:
        """What is known of a task then; an empty text takes a value away."""
        if self.status is not None:
            known = self._with_status(known, self.status)
        if self.priority is not None:
            known = replace(known, priority=self.priority)
        if self.assignee is not None:
            known = replace(known, assignee=self.assignee or None)
        if self.notes is not None:
            known = replace(known, notes=self.notes or None)
        return known

    def _with_status(self, known: TaskRow, status: Status) -> TaskRow:
        if status == "pending":
            return replace(known, status=None, started_at=None, completed_at=None)
        if status == "completed":
            done = known.completed_at if known.ticked and known.completed_at is not None else self.now
            return replace(known, status=status, completed_at=done)
        started = (known.started_at or self.now) if status == "in_progress" else known.started_at
        return replace(known, status=status, started_at=started, completed_at=None)
