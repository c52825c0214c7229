"""What the registry found, as rows for an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pegboard.toolsets.answer_size import json_size
from pegboard.toolsets.tasks import budget
from pegboard.toolsets.tasks.check import MAX_LIMIT
from pegboard.toolsets.tasks.outcomes import Dependencies, Synced, TaskPage
from pegboard.toolsets.tasks.state import ChangeTasks, State
from pegboard.toolsets.tasks.sync import Disagreement, Plan
from pegboard.toolsets.tasks.task import PRIORITIES, STATUSES, Task, TaskId

# Of so many changes a list tells the numbers, and of so many others the names.
_MOST_CHANGES, _MOST_NAMED = 50, 100
_LONGEST_ID = 120
# Conflicts beside a task that was changed.
_MOST_CONFLICTS = 10
# Characters of a task among others, and of one by itself.
_FEW, _MANY = 1_000, 12_000


def task_row(task: Task, state: State) -> dict[str, Any]:
    """A task among others: what is long is cut, and registry_deps shows more of it."""
    return _fit(state.display(task), _FEW)


def whole_task(task: Task, state: State) -> dict[str, Any]:
    """A task by itself."""
    return _fit(state.display(task), _MANY)


def _fit(row: dict[str, Any], room: int) -> dict[str, Any]:
    """A row in which no text takes more than a share of the room."""
    for name in ("content", "notes", "why_blocked"):
        if row.get(name):
            row[name] = budget.truncate(row[name], room if name == "notes" else room // 2)
    for name in ("depends_on", "blocked_by"):
        row[name] = _first([budget.truncate(each, _LONGEST_ID) for each in row[name]], room // 100)
    return row


def format_tasks(listed: TaskPage) -> dict[str, Any]:
    """A list of tasks with its summary, as far as it fits."""
    summary = _summary(listed)
    fit = budget.first_rows([task_row(task, listed.state) for task in listed.tasks], json_size(summary))
    end = listed.offset + len(fit)
    answer: dict[str, Any] = {
        "total": listed.total,
        "filtered": listed.match_count,
        "tasks": fit,
        "summary": summary,
        "hasMore": end < listed.match_count,
    }
    if end < listed.match_count:
        answer["message"] = f"{len(fit)} of {listed.match_count} tasks: go on with offset {end}."
    if listed.problems:
        answer["problems"] = problem_rows(listed.problems)
    return answer


def _summary(listed: TaskPage) -> dict[str, Any]:
    by_status = Counter(task.status for task in listed.found)
    by_priority = Counter(task.priority for task in listed.found)
    by_change = Counter(task.id.change for task in listed.found)
    named = list(by_change)[:_MOST_CHANGES]
    summary: dict[str, Any] = {
        "by_status": {status: by_status[status] for status in STATUSES if by_status[status]},
        "by_priority": {priority: by_priority[priority] for priority in PRIORITIES if by_priority[priority]},
        "by_change": {
            change: {**_change(listed.state, change, listed.state.changes[change]), "filtered": by_change[change]}
            for change in named
        },
    }
    return {**summary, "more_changes": len(by_change) - len(named)} if len(by_change) > len(named) else summary


def _change(state: State, name: str, change: ChangeTasks) -> dict[str, Any]:
    return {
        "title": state.folders[name].title[:100],
        "status": change.status,
        "total": len(change.tasks),
        "completed": change.counts["completed"],
    }


def format_sync(synced: Synced) -> dict[str, Any]:
    """What a sync found, as far as it fits; every conflict goes before what merely changed."""
    conflicts = budget.first_rows(list(map(_conflict, synced.conflicts[:MAX_LIMIT])))
    kinds = Counter(difference.kind for difference in synced.differences)
    told = [
        {**each.to_dict(), "content": budget.truncate(each.content, 200)} for each in synced.differences[:MAX_LIMIT]
    ]
    taken = json_size(conflicts)
    answer: dict[str, Any] = {
        "synced_changes": synced.changes,
        "added": kinds["added"],
        "updated": kinds["updated"],
        "removed": kinds["removed"],
        "conflicts": conflicts,
        "changes": budget.first_rows(told, taken) if taken < budget.ANSWER // 2 else [],
        "dry_run": synced.dry_run,
    }
    if len(conflicts) < len(synced.conflicts):
        answer["message"] = f"{len(conflicts)} of {len(synced.conflicts)} conflicts fit into an answer."
    if synced.problems:
        answer["problems"] = problem_rows(synced.problems)
    return answer


def other_changes(plan: Plan, task: TaskId) -> dict[str, Any]:
    """What else was found in a file that changed since the last sync; a sync will not tell it again."""
    others = [each for each in plan.differences if each.id != str(task) or each.kind == "removed"]
    if not others and not plan.conflicts:
        return {}
    kinds = Counter(each.kind for each in others)
    conflicts = list(map(_conflict, plan.conflicts[:_MOST_CONFLICTS]))
    told: dict[str, Any] = {**kinds, "conflicts": conflicts}
    more = len(plan.conflicts) - len(conflicts)
    return {"synced": {**told, "more_conflicts": more} if more else told}


def _conflict(each: Disagreement) -> dict[str, Any]:
    return {**each.to_dict(), "content": budget.truncate(each.content, 200)}


def format_dependencies(found: Dependencies) -> dict[str, Any]:
    """A task by itself, with what it depends on and who waits for it."""
    task = whole_task(found.task, found.state)
    return {
        "task": task,
        "depends_on": budget.first_rows(_dependency_rows(found), json_size(task)),
        "dependants": task_ids(found.dependants),
    }


def _dependency_rows(found: Dependencies) -> list[dict[str, Any]]:
    """What a task depends on, and who says so."""
    state, task = found.state, found.task
    rows: list[dict[str, Any]] = []
    for needed in state.needs.get(task.id, ()):
        other = state.task(needed)
        row: dict[str, Any] = {"id": str(needed), "from": "file" if needed in task.depends else "registry"}
        if other is None:
            row["status"] = "missing"
        else:
            row |= {"status": other.status, "content": budget.truncate(other.content, 200)}
        rows.append(row)
    rows += [
        {"id": budget.truncate(part, _LONGEST_ID), "from": "file", "status": "unreadable"} for part in task.unreadable
    ]
    return rows


def task_ids(tasks: Sequence[TaskId]) -> list[str]:
    """The ids of tasks; of very many only the first."""
    return _first(list(map(str, tasks)), _MOST_NAMED)


def _first(names: Sequence[str], most: int) -> list[str]:
    return list(names) if len(names) <= most else [*names[:most], f"… {len(names) - most} more"]


def problem_rows(problems: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """What could not be read; of very much the first."""
    return [{"path": path, "reason": reason} for path, reason in problems[:20]]
