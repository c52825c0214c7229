"""`tasks …`: the tasks of an OpenSpec folder, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.cli.common import ConfigOption, JsonOption, find_config, finish
from pegboard.cli.rest_client import Answer, connect
from pegboard.cli.show import TerminalTable, colour_state, verbatim

_Folder = Annotated[
    Path | None,
    typer.Option(
        "--path",
        "--workspace",
        "-p",
        help="The folder that contains openspec; without it, the current folder or a parent.",
    ),
]
_SIGNS = {"added": "+", "updated": "~", "removed": "-"}
# Of so many tasks a sync tells what became of them.
_MOST_SHOWN = 20
_Change = Annotated[str | None, typer.Option("--change", help="Only tasks of this change.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(no_args_is_help=True, help="The tasks of an OpenSpec folder: list, next, done and more.")
    group.command("list")(list_tasks)
    group.command("next")(next_tasks)
    for command in (done, sync, graph):
        group.command()(command)
    app.add_typer(group, name="tasks")


def list_tasks(
    change: _Change = None,
    status: Annotated[str | None, typer.Option(help="pending, in_progress, completed, blocked or skipped.")] = None,
    priority: Annotated[str | None, typer.Option(help="critical, high, medium, low or backlog.")] = None,
    assignee: Annotated[str | None, typer.Option(help="Only tasks of this assignee.")] = None,
    unblocked: Annotated[bool, typer.Option("--unblocked", help="Only tasks that nothing blocks.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    offset: Annotated[int, typer.Option(help="How many to skip.")] = 0,
    path: _Folder = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tasks."""
    wanted = {"change_id": change, "status": status, "priority": priority, "assignee": assignee}
    page = {"unblocked": unblocked, "limit": limit, "offset": offset}
    finish(_ask(config, "registry_list", path, **wanted, **page), as_json=as_json, show=_show_list)


def next_tasks(
    count: Annotated[int, typer.Option(help="How many tasks to suggest.")] = 1,
    change: _Change = None,
    path: _Folder = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what to do next, and why."""
    finish(_ask(config, "registry_next", path, change_id=change, count=count), as_json=as_json, show=_show_next)


def done(
    task: Annotated[str, typer.Argument(help="Which one: change-id/number, like add-login/3 or add-login/1.2.")],
    path: _Folder = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark a task as completed: its box in tasks.md is ticked."""
    finish(_ask(config, "registry_update", path, task_id=task, status="completed"), as_json=as_json, show=_show_done)


def sync(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Resolve every conflict in favour of the file.")] = False,
    path: _Folder = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update the registry from the tasks.md files."""
    finish(_ask(config, "registry_sync", path, dry_run=dry_run, force=force), as_json=as_json, show=_show_sync)


def graph(
    change: _Change = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print Mermaid text.")] = False,
    path: _Folder = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the dependencies between tasks."""
    form = "mermaid" if mermaid else "rows"
    answer = connect(find_config(config)).get("/api/tasks/graph", path=_folder(path), change_id=change, format=form)
    finish(answer, as_json=as_json, show=_show_mermaid if mermaid else _show_graph)


def _ask(config: Any, tool: str, path: Path | None, **arguments: Any) -> Answer:
    """The answer of a task tool, as an agent would get it."""
    given = {name: value for name, value in {**arguments, "path": _folder(path)}.items() if value is not None}
    answer = connect(find_config(config)).call(tool, given)
    return answer["data"]["structuredContent"] if "data" in answer else answer


def _folder(given: Path | None) -> str | None:
    """The folder that is meant: whoever answers may stand elsewhere."""
    if given is not None:
        return str(given.expanduser().absolute())
    here = Path.cwd()
    return next((str(folder) for folder in (here, *here.parents) if (folder / "openspec").is_dir()), None)


def _show_list(data: dict[str, Any]) -> None:
    # Where nobody has a value, the room is for the words.
    extra = [name for name, value in (("assignee", "assignee"), ("waits for", "blocked_by")) if _any(data, value)]
    rows = TerminalTable("id", "status", "priority", "task", *extra, folded=("id",))
    for row in data["tasks"]:
        shown = {"assignee": row["assignee"] or "", "waits for": ", ".join(row["blocked_by"])}
        about = row["id"], colour_state(row["status"]), row["priority"], row["content"]
        rows.add(*about, *(shown[name] for name in extra))
    rows.show()
    counts = ", ".join(f"{count} {status}" for status, count in data["summary"]["by_status"].items())
    print(f"{len(data['tasks'])} of {data['filtered']} tasks{f': {counts}' if counts else ''}")
    _show_problems(data)


def _show_next(data: dict[str, Any]) -> None:
    if data["recommended"] is None:
        print(data["reason"])
        _show_problems(data)
        return
    reasons = [data["reason"], *(row["reason"] for row in data["alternatives"])]
    for row, reason in zip([data["recommended"], *data["alternatives"]], reasons, strict=True):
        print(f"{row['id']}  {row['content']}\n    {reason}")
    if data["blocked_count"]:
        count = data["blocked_count"]
        print("1 task waits" if count == 1 else f"{count} tasks wait")
    _show_problems(data)


def _show_done(data: dict[str, Any]) -> None:
    task = data["task"]
    print(f"{task['id']} is {task['status']}: {task['content']}")
    if data["unblocked"]:
        print(f"can be begun now: {', '.join(data['unblocked'])}")
    if "message" in data:
        print(f"note: {data['message']}")


def _show_sync(data: dict[str, Any]) -> None:
    counts = ", ".join(f"{data[what]} {what}" for what in ("added", "updated", "removed"))
    would = "would be " if data["dry_run"] else ""
    synced = data["synced_changes"]
    print(f"{synced} change{'' if synced == 1 else 's'}: {would}{counts}")
    told = data["changes"][:_MOST_SHOWN]
    for row in told:
        what = f"  ({row['what']})" if "what" in row else ""
        print(f"  {_SIGNS[row['change']]} {row['id']}  {row['content']}{what}")
    if more := data["added"] + data["updated"] + data["removed"] - len(told):
        print(f"  … {more} more")
    for row in data["conflicts"]:
        print(f"conflict: {row['id']} is {row['registry']} here and {row['file']} in its file; {row['outcome']}")
    _show_problems(data)


def _any(data: dict[str, Any], name: str) -> bool:
    return any(row[name] for row in data["tasks"])


def _show_problems(data: dict[str, Any]) -> None:
    for problem in data.get("problems", ()):
        print(f"left out: {problem['path']}: {problem['reason']}")


def _show_mermaid(data: dict[str, Any]) -> None:
    print(data["graph"], end="")


def _show_graph(data: dict[str, Any]) -> None:
    from rich.console import Console

    from pegboard.toolsets.tasks.graph import MARKS

    if not data["rows"]:
        print("No task depends on another.")
        return
    console = Console(highlight=False, soft_wrap=True)
    for lead, status, text, remark in data["rows"]:
        line = verbatim(lead)
        if status:
            line.append(MARKS[status], colour_state(status).style)
        line.append(f" {text}")
        if remark:
            line.append(f"  ({remark})", "bright_black")
        console.print(line)
