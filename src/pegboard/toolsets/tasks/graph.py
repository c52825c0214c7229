"""Dependencies as pictures: Mermaid for documents, lines for a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.toolsets.tasks.check import unknown_change
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.state import State
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.validation import validate_choice

FORMATS = ("mermaid", "text", "rows")
MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑", "blocked": "✋", "skipped": "⤼", "missing": "✗"}
_COLOURS = {
    "pending": "#eeeeee",
    "in_progress": "#bbddff",
    "completed": "#bbeebb",
    "blocked": "#ffdd99",
    "skipped": "#dddddd",
    "missing": "#ffbbbb",
}
_WIDTH = 60
# Mermaid draws no more edges, and reads no longer text, unless it is told to.
_MOST_TASKS, _MOST_EDGES, _LONGEST_TEXT = 500, 500, 50_000
# Below so many others a branch is drawn by itself, at the margin.
_DEEPEST = 15


@dataclass(frozen=True, slots=True)
class Node:
    """A task in the picture; one that is depended on may be missing."""

    id: TaskId
    content: str
    status: str
    # Whether it waits for something.
    waits: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The tasks that have to do with a dependency, or with a change, and what each needs."""

    nodes: Mapping[TaskId, Node]
    needs: Mapping[TaskId, Sequence[TaskId]]
    cyclic: frozenset[TaskId]
    # How many tasks, and dependencies between those that are drawn, there is no room for.
    left_out: int = 0
    needs_left_out: int = 0


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A line of the picture for a terminal: what leads to a task, its mark, and the task."""

    lead: str
    status: str
    text: str
    remark: str = ""


def graph(state: State, change: str | None = None, most: int = _MOST_TASKS) -> Graph:
    """What depends on what; of a change every task, with what they need elsewhere."""
    chosen = [
        task.id
        for task in state.all()
        if (change is None and (task.id in state.needs or task.unreadable)) or task.id.change == change
    ]
    found = dict.fromkeys(chosen)
    for task in chosen:
        found.update(dict.fromkeys(state.needs.get(task, ())))
    kept = sorted(list(found)[:most])
    nodes = {task: _node(state, task) for task in kept}
    needs: dict[TaskId, list[TaskId]] = {}
    room, too_many = _MOST_EDGES, 0
    for task in kept:
        there = [other for other in state.needs.get(task, ()) if other in nodes]
        needs[task] = there[:room]
        too_many += len(there) - len(needs[task])
        room -= len(needs[task])
    return Graph(nodes, needs, frozenset(state.cyclic.keys() & nodes.keys()), len(found) - len(kept), too_many)


def mermaid(drawn: Graph) -> str:
    """The picture as Mermaid text: an arrow leads from what is needed to what needs it."""
    names = {task: f"t{number}" for number, task in enumerate(drawn.nodes)}
    lines = ["flowchart LR"]
    changes = dict.fromkeys(task.change for task in drawn.nodes)
    for number, change in enumerate(changes):
        lines.append(f'    subgraph c{number}["{_escape(change)}"]')
        for task, node in drawn.nodes.items():
            if task.change == change:
                # Not `1. `: with that a list begins, and Mermaid has no lists.
                label = f"{task.number}: {_escape(_short(node.content or 'does not exist'))}"
                lines.append(f'        {names[task]}["{label}"]:::{node.status}')
        lines.append("    end")
    for task, needed in drawn.needs.items():
        lines += [f"    {names[other]} --> {names[task]}" for other in needed]
    lines += [f"    classDef {status} fill:{colour},color:#222222" for status, colour in _COLOURS.items()]
    lines += [f"    %% {remark}" for remark in _omissions(drawn)]
    return "\n".join(lines) + "\n"


def rows(drawn: Graph) -> list[TreeRow]:
    """The picture for a terminal: a tree of what waits for what; a task that waits for several stands below each."""
    needed_by: dict[TaskId, list[TaskId]] = {task: [] for task in drawn.nodes}
    for task, needed in drawn.needs.items():
        for other in needed:
            needed_by[other].append(task)
    shown: set[TaskId] = set()
    found: list[TreeRow] = []
    roots = [task for task in drawn.nodes if not drawn.needs[task]]
    # In a circle nobody is first: it is shown from one of them on.
    for task in (*roots, *drawn.nodes):
        if task not in shown:
            found += _branch(drawn, needed_by, task, shown)
    return [*found, *(TreeRow("", "", f"… {remark}") for remark in _omissions(drawn))]


def picture(drawn: Graph) -> str:
    """The same as plain text."""
    lines = (
        f"{row.lead}{MARKS.get(row.status, '')} {row.text}{f'  ({row.remark})' if row.remark else ''}"
        for row in rows(drawn)
    )
    return "\n".join(lines) + "\n"


async def draw_graph(
    registry: Registry, form: str = "mermaid", change: str | None = None, *, path: str | None = None
) -> dict[str, Any]:
    """The picture of a folder's tasks, or of one change's, as text or as rows to be coloured."""
    validate_choice(form, "format", FORMATS)
    state = await registry.state(path)
    if change is not None and change not in state.changes:
        raise unknown_change(change, state.changes, state.unread)
    # Of tens of thousands of tasks that takes a while.
    return await asyncio.to_thread(_draw, state, form, change)


def _draw(state: State, form: str, change: str | None) -> dict[str, Any]:
    found = graph(state, change)
    text = mermaid(found) if form == "mermaid" else ""
    while len(text) > _LONGEST_TEXT:
        found = graph(state, change, len(found.nodes) * 3 // 4)
        text = mermaid(found)
    answer: dict[str, Any] = {
        "format": form,
        "tasks": len(found.nodes),
        "left_out": found.left_out,
        "dependencies_left_out": found.needs_left_out,
    }
    if form == "rows":
        return {**answer, "rows": [[row.lead, row.status, row.text, row.remark] for row in rows(found)]}
    return {**answer, "graph": text or picture(found)}


def _omissions(drawn: Graph) -> Iterator[str]:
    if drawn.left_out:
        yield f"{drawn.left_out} more tasks are left out"
    if drawn.needs_left_out:
        yield f"{drawn.needs_left_out} more dependencies are left out"


def _branch(
    drawn: Graph, needed_by: Mapping[TaskId, Sequence[TaskId]], root: TaskId, shown: set[TaskId]
) -> Iterator[TreeRow]:
    """A task and, below it, those that wait for it. Not by recursion: a chain may be long."""
    waiting = [(root, "", "", frozenset[TaskId]())]
    later: dict[TaskId, None] = {}
    while waiting or later:
        if not waiting:
            task = next(iter(later))
            del later[task]
            waiting = [(task, "", "", frozenset[TaskId]())] if task not in shown else []
            continue
        task, lead, below, above = waiting.pop()
        node = drawn.nodes[task]
        text = f"{task}  {_short(node.content)}" if node.content else str(task)
        if task in above:
            yield TreeRow(lead, node.status, text, "a cycle")
            continue
        again = task in shown and bool(needed_by[task])
        if not again and len(above) == _DEEPEST and needed_by[task]:
            later[task] = None
            yield TreeRow(lead, node.status, text, "goes on below")
            continue
        shown.add(task)
        yield TreeRow(lead, node.status, text, "see above" if again else _remark(node, drawn))
        if again:
            continue
        others = needed_by[task]
        last = len(others) - 1
        waiting += [
            (
                other,
                f"{below}{'└─ ' if at == last else '├─ '}",
                f"{below}{'   ' if at == last else '│  '}",
                above | {task},
            )
            for at, other in reversed(list(enumerate(others)))
        ]


def _remark(node: Node, drawn: Graph) -> str:
    if node.id in drawn.cyclic:
        return "in a cycle"
    if node.status == "missing":
        return "does not exist"
    return "waits" if node.waits and node.status == "pending" else ""


def _node(state: State, task: TaskId) -> Node:
    known = state.task(task)
    if known is None:
        return Node(task, "", "missing", False)
    return Node(task, known.content, known.status, task in state.blocks)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1].rstrip() + "…"


def _escape(text: str) -> str:
    """Text inside of Mermaid's quotes: whatever means something there, or to Markdown, is written as an entity."""
    return "".join(
        character if character.isalnum() or character in " .,:;-/()…" else f"#{ord(character)};"
        for character in text
        if character.isprintable()
    )
