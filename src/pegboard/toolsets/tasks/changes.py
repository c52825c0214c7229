"""Changes as a whole: how far each is, and which waits for which, by what their tasks depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pegboard.toolsets.tasks.cycles import on_cycles
from pegboard.toolsets.tasks.reasons import find_blocked
from pegboard.toolsets.tasks.rows import task_row
from pegboard.toolsets.tasks.state import State

MOST_CHANGES = 2000
_MOST_HELD_UP = 20


def overview(state: State) -> dict[str, Any]:
    """Every change with the changes that it needs, and the first of the tasks that are held up."""
    needs, awaited = _needs(state)
    circles = on_cycles(needs)
    layers = _layers(needs, circles)
    names = sorted({*state.folders, *state.unread, *needs})
    rows = [
        {
            **_about(state, name),
            "needs": needs.get(name, []),
            "waits_for": awaited.get(name, []),
            "layer": layers.get(name, 0),
            "in_cycle": name in circles,
        }
        for name in names[:MOST_CHANGES]
    ]
    blocked = (task for change in state.changes.values() for task in find_blocked(change, state))
    held_up = [task_row(task, state) for task in islice(blocked, _MOST_HELD_UP)]
    return {"changes": rows, "left_out": len(names) - len(rows), "held_up": held_up}


def _about(state: State, name: str) -> dict[str, Any]:
    """How far a change is; one that is needed may not be there."""
    tasks, folder = state.changes.get(name), state.folders.get(name)
    row: dict[str, Any] = {"id": name, "title": folder.title if folder is not None else name}
    if folder is None:
        row |= {"problem": state.unread[name]} if name in state.unread else {}
        return {**row, "status": "unreadable" if name in state.unread else "missing", "tasks": 0, "completed": 0}
    if tasks is None:
        return {**row, "status": "pending", "tasks": 0, "completed": 0}
    return {**row, "status": tasks.status, "tasks": len(tasks.tasks), "completed": tasks.counts["completed"]}


def _needs(state: State) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Which other changes each needs, and those of them that something in it still waits for."""
    needs: dict[str, dict[str, bool]] = {}
    for task, others in state.needs.items():
        known = state.task(task)
        for needed in others:
            if needed.change == task.change or known is None:
                continue
            other = state.task(needed)
            waits = known.status != "completed" and (other is None or other.status != "completed")
            own = needs.setdefault(task.change, {})
            own[needed.change] = own.get(needed.change, False) or waits
            needs.setdefault(needed.change, {})
    awaited = {name: sorted(other for other, waits in own.items() if waits) for name, own in needs.items()}
    return {name: sorted(own) for name, own in needs.items()}, awaited


def _layers(needs: Mapping[str, Sequence[str]], circles: Mapping[str, int]) -> dict[str, int]:
    """How many changes, one behind the other, come before each; those of one circle stand side by side."""
    group: dict[str, str | int] = {name: circles.get(name, name) for name in needs}
    before: dict[str | int, set[str | int]] = {each: set() for each in group.values()}
    for name, others in needs.items():
        before[group[name]] |= {group[other] for other in others} - {group[name]}
    behind: dict[str | int, list[str | int]] = {each: [] for each in before}
    for each, others in before.items():
        for other in others:
            behind[other].append(each)
    missing = {each: len(others) for each, others in before.items()}
    found: dict[str | int, int] = {each: 0 for each, count in missing.items() if not count}
    waiting = list(found)
    while waiting:
        each = waiting.pop()
        for other in behind[each]:
            found[other] = max(found.get(other, 0), found[each] + 1)
            missing[other] -= 1
            if not missing[other]:
                waiting.append(other)
    return {name: found[group[name]] for name in needs}
