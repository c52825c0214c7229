"""The task tools: what an agent may ask of tasks, and change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pegboard.exactjson import as_list
from pegboard.tool import answers, takes
from pegboard.toolsets.answer_size import json_size
from pegboard.toolsets.schemas import BOOLEAN, INTEGER, STRING, STRINGS, choice, hints, switch
from pegboard.toolsets.tasks import budget
from pegboard.toolsets.tasks import schemas as say
from pegboard.toolsets.tasks.outcomes import TaskFilter
from pegboard.toolsets.tasks.registry import OPERATIONS, Registry
from pegboard.toolsets.tasks.rows import (
    format_dependencies,
    format_sync,
    format_tasks,
    other_changes,
    problem_rows,
    task_ids,
    task_row,
    whole_task,
)
from pegboard.toolsets.tasks.spec_tools import SPEC_TOOLS
from pegboard.toolsets.tasks.task_tool import TaskTool


class RegistryInit(TaskTool):
    """Begin."""

    name = "registry_init"
    description = (
        "Set up the task registry of a project: begin to keep status, priority and dependencies of the tasks in its "
        "OpenSpec folder. Says so if there is one already."
    )
    keywords = ("initialize", "create", "start tracking")
    input_schema = takes([], path=say.PATH)
    output_schema = answers(folder=STRING, created=BOOLEAN, changes=INTEGER, tasks=INTEGER, message=STRING)
    annotations = hints("Set up the task registry", again=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        made = await self._registry.init(arguments.get("path"))
        there = "an empty registry now: registry_sync fills it" if made.created else "a registry already"
        return {
            "folder": self._registry.project.display(made.folder),
            "created": made.created,
            "changes": made.changes,
            "tasks": made.tasks,
            "message": f"There is {there}. Tasks in the folder: {made.tasks}, of changes: {made.changes}.",
        }


class RegistrySync(TaskTool):
    """Look again."""

    name = "registry_sync"
    description = (
        "Bring the task registry in line with the tasks.md files: tells which tasks were added, updated and removed, "
        "and where a box disagrees with a status set by hand. What was set by hand stays with its task."
    )
    keywords = ("refresh", "update from files", "reload", "import tasks")
    input_schema = takes(
        [],
        path=say.PATH,
        dry_run=switch("Only tell what would be done"),
        force=switch("Settle every conflict for the file, and forget what is known of tasks that are gone"),
    )
    output_schema = answers(
        synced_changes=INTEGER,
        added=INTEGER,
        updated=INTEGER,
        removed=INTEGER,
        conflicts=say.CONFLICTS,
        changes=say.ROWS,
        problems=say.ROWS,
        dry_run=BOOLEAN,
    )
    # With `force` it forgets.
    annotations = hints("Sync tasks with their files", destroys=True, again=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        synced = await self._registry.sync(
            arguments.get("path"), dry_run=arguments["dry_run"], force=arguments["force"]
        )
        return await asyncio.to_thread(format_sync, synced)


class RegistryList(TaskTool):
    """What there is."""

    name = "registry_list"
    description = (
        "List the tasks of the registry, with status, priority and what blocks them; by change, status, priority or "
        "assignee. With a summary of how many there are."
    )
    keywords = ("todo", "to-do list", "show tasks", "open work", "progress", "backlog")
    input_schema = takes(
        [],
        path=say.PATH,
        change_id=say.CHANGE_ID,
        status=say.STATUS,
        priority=say.PRIORITY,
        assignee=say.ASSIGNEE,
        unblocked=switch("Only tasks that nothing blocks"),
        limit=say.LIMIT,
        offset=say.OFFSET,
    )
    output_schema = answers(
        total=INTEGER,
        filtered=INTEGER,
        tasks=say.TASKS,
        summary=say.SUMMARY,
        hasMore=BOOLEAN,
        problems=say.ROWS,
    )
    annotations = hints("List tasks", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        wanted = TaskFilter(
            change=arguments.get("change_id"),
            status=arguments.get("status"),
            priority=arguments.get("priority"),
            assignee=arguments.get("assignee"),
            unblocked=arguments["unblocked"],
        )
        listed = await self._registry.list(wanted, arguments["limit"], arguments["offset"], path=arguments.get("path"))
        return await asyncio.to_thread(format_tasks, listed)


class RegistryNext(TaskTool):
    """What to do."""

    name = "registry_next"
    description = (
        "The next task of the registry to work on: pending and blocked by nothing, by priority, then where a change is "
        "furthest, then by number. Says why."
    )
    keywords = ("what to do next", "todo", "recommend task", "pick up work", "continue")
    input_schema = takes([], path=say.PATH, change_id=say.CHANGE_ID, count=say.COUNT)
    output_schema = answers(
        recommended={"anyOf": [say.TASK, {"type": "null"}]},
        reason=STRING,
        alternatives=say.TASKS,
        blocked_count=INTEGER,
        problems=say.ROWS,
    )
    annotations = hints("Next task", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        found = await self._registry.next(arguments.get("change_id"), arguments["count"], path=arguments.get("path"))
        rows = [task_row(task, found.state) for task in found.tasks]
        others = [{**row, "reason": why} for row, why in zip(rows[1:], found.reasons[1:], strict=True)]
        answer: dict[str, Any] = {
            "recommended": rows[0] if rows else None,
            "reason": found.reason,
            "alternatives": budget.first_rows(others, json_size(rows[:1])),
            "blocked_count": found.blocked,
        }
        if found.problems:
            answer["problems"] = problem_rows(found.problems)
        return answer


class RegistryUpdate(TaskTool):
    """Change one."""

    name = "registry_update"
    description = (
        "Change a task: mark it completed, which ticks its box in tasks.md, or in progress, blocked, skipped; set its "
        "priority, assignee or notes. What is left out stays."
    )
    keywords = ("done", "finish", "complete", "check off", "tick", "start task", "assign", "prioritize")
    input_schema = takes(
        ["task_id"],
        path=say.PATH,
        task_id=say.TASK_ID,
        status=say.NEW_STATUS,
        priority=say.NEW_PRIORITY,
        assignee=say.NEW_ASSIGNEE,
        notes=say.NOTES,
    )
    output_schema = answers(task=say.TASK, unblocked=STRINGS, message=STRING, synced={"type": "object"})
    annotations = hints("Change a task", destroys=True, again=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        updated = await self._registry.update(
            arguments["task_id"],
            status=arguments.get("status"),
            priority=arguments.get("priority"),
            assignee=arguments.get("assignee"),
            notes=arguments.get("notes"),
            path=arguments.get("path"),
        )
        answer: dict[str, Any] = {
            "task": whole_task(updated.task, updated.state),
            "unblocked": task_ids(updated.unblocked),
            **other_changes(updated.synced, updated.task.id),
        }
        return {**answer, "message": updated.remark} if updated.remark else answer


class RegistryDeps(TaskTool):
    """Who waits for whom."""

    name = "registry_deps"
    description = (
        "Show what a task depends on and which tasks wait for it, or add and remove dependencies, also between "
        "changes. A dependency that would make a cycle is refused."
    )
    keywords = ("dependencies", "blockers", "prerequisite", "order", "blocked by")
    input_schema = takes(
        ["task_id"],
        path=say.PATH,
        task_id=say.TASK_ID,
        operation={**choice("What to do", OPERATIONS, "add"), "default": "list"},
        depends_on=say.DEPENDS_ON,
    )
    output_schema = answers(task=say.TASK, depends_on=say.ROWS, dependants=STRINGS, added=STRINGS, removed=STRINGS)
    annotations = hints("Dependencies of a task", destroys=True, again=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        given = arguments.get("depends_on", [])
        found = await self._registry.deps(
            arguments["task_id"],
            arguments["operation"],
            [given] if isinstance(given, str) else [str(each) for each in as_list(given) or []],
            path=arguments.get("path"),
        )
        return {
            **format_dependencies(found),
            "added": task_ids(found.added),
            "removed": task_ids(found.removed),
            **other_changes(found.synced, found.task.id),
        }


TASK_TOOLS = (
    RegistryInit,
    RegistrySync,
    RegistryList,
    RegistryNext,
    RegistryUpdate,
    RegistryDeps,
    *SPEC_TOOLS,
)


def task_tools(registry: Registry) -> list[TaskTool]:
    """All of them."""
    return [tool(registry) for tool in TASK_TOOLS]
