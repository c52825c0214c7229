"""Texts that explain why a task is next, or why it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pegboard.toolsets.tasks.check import some
from pegboard.toolsets.tasks.state import ChangeTasks, State
from pegboard.toolsets.tasks.task import STATUSES, Status, Task, reasons


def find_blocked(change: ChangeTasks, state: State) -> list[Task]:
    """Tasks that somebody or something holds up."""
    return [
        task
        for task in change.tasks
        if task.status == "blocked" or (task.status == "pending" and task.id in state.blocks)
    ]


def why_now(task: Task, state: State) -> str:
    """Why a task is offered."""
    change = state.changes[task.id.change]
    done = change.counts["completed"]
    needed = state.needs.get(task.id, ())
    waits = f"all it depends on is completed ({some(needed)})" if needed else "it depends on nothing"
    return f"priority {task.priority}; {task.id.change} is at {done} of {len(change.tasks)}; {waits}"


def why_nothing(chosen: Sequence[ChangeTasks], waiting: Sequence[Task], state: State) -> str:
    """Why no task is offered."""
    counts = sum((change.counts for change in chosen), Counter[Status]())
    if not counts.total():
        return "there are no tasks"
    if waiting:
        first = waiting[0]
        why = reasons(state.blocks[first.id]) if first.id in state.blocks else "was set to blocked"
        return f"nothing can be begun now: {len(waiting)} held up, {first.id} among them: {why}"
    said = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    return f"nothing is pending: {said}"


def remark_on(task: Task, before: State) -> str | None:
    """What somebody should know who has just begun or completed a task that was held up."""
    if task.status in {"in_progress", "completed"} and task.id in before.blocks:
        return f"what it depends on is not done: {reasons(before.blocks[task.id])}"
    return None
