"""`changes …`, `lock`: what servers changed in their definitions since those were approved, and what comes of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from pegboard.cli.common import FAILED, WRONG_CALL, ConfigOption, JsonOption, find_config, finish, stop
from pegboard.cli.page_link import find_page
from pegboard.cli.program import with_program
from pegboard.cli.rest_client import connect
from pegboard.cli.show import TerminalTable, ago, one_line, say, say_wrapped, verbatim

_Server = Annotated[str, typer.Argument(help="The server's name.")]
_Tools = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOOL]...", help="Names of tools; prompt:NAME, template:URI, instructions."),
]
_All = Annotated[bool, typer.Option("--all", help="All that changed, as without names.")]
_Revision = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What you looked at: if the server says something else by now, stop.")
]
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_LONGEST, _MOST_NAMED = 80, 10
_CANNOT, _HIDES = "cannot be approved", ("its words hide text", "their words hide text")
_STATES = {
    "in use": "in use",
    "held": "old one in use",
    "withheld": "withheld",
    "left out": "left out",
    "gone": "gone",
}


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(invoke_without_command=True, help="What servers changed in their definitions.")
    group.callback()(changes)
    group.command(short_help="Show what a server changed, as a diff.")(show)
    group.command(short_help="Approve what a server says now.")(accept)
    group.command(short_help="Keep what was approved.")(reject)
    app.add_typer(group, name="changes")
    app.command(short_help="Write all definitions into pegboard.lock.json.")(lock)


def changes(context: typer.Context, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """What servers changed in their definitions since those were approved.

    Example: pegboard changes
    """
    if context.invoked_subcommand is not None:
        return
    location = find_config(config)
    answer = connect(location).get("/api/changes")
    finish(answer, as_json=as_json, show=lambda data: _show_servers(data, find_page(location.path, "changes")))


def show(server: _Server, tools: _Tools = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show what a server changed, as a diff; a character that hides is shown as an escape.

    \b
    Example: pegboard changes show github
    Example: pegboard changes show github create_issue
    """
    location = find_config(config)
    answer = connect(location).changes_of(server, tools or [])
    page = find_page(location.path, "changes", server)
    finish(answer, as_json=as_json, show=lambda data: _show_details(data, tools or [], page))


def accept(
    server: _Server,
    tools: _Tools = None,
    everything: _All = False,
    revision: _Revision = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve what a server says now: all that changed but what was rejected, or some of it.

    \b
    Example: pegboard changes accept github
    Example: pegboard changes accept github create_issue
    """
    _decide(server, tools, "accept", revision, everything=everything, config=config, as_json=as_json)


def reject(
    server: _Server,
    tools: _Tools = None,
    everything: _All = False,
    revision: _Revision = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep what was approved, and say nothing more of this change; the next one is shown again.

    Example: pegboard changes reject github create_issue
    """
    _decide(server, tools, "reject", revision, everything=everything, config=config, as_json=as_json)


def lock(
    servers: Annotated[list[str] | None, typer.Argument(help="Names of servers; without names, all of them.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the definitions that are in force into pegboard.lock.json, beside the config.

    A server with "changes": "locked" serves exactly these. With names, those of other servers stay as they are in the
    file. Servers are not asked anew: pegboard refresh does that.

    Example: pegboard lock
    """
    from pegboard.pins.lock_file import LockWriteError, write_lock

    location = find_config(config)
    answer = connect(location).get("/api/lock", server=servers or None)
    if answer.get("error") is None:
        unseen = answer["data"].pop("unseen")
        try:
            changed = {**write_lock(location.path, answer["data"], is_partial=bool(servers)), "unseen": unseen}
        except LockWriteError as exc:
            stop(str(exc), FAILED)
        answer = {"success": True, "data": changed}
    finish(answer, as_json=as_json, show=_show_lock)


def _decide(
    server: str,
    tools: Sequence[str] | None,
    verb: str,
    revision: str | None,
    *,
    everything: bool,
    config: Any,
    as_json: bool,
) -> None:
    if everything and tools:
        stop("--all and names contradict each other", WRONG_CALL)
    answer = connect(find_config(config)).decide_changes(server, verb, tools or [], revision)
    finish(answer, as_json=as_json, show=lambda data: _show_decided(data, verb))


def _show_servers(data: Mapping[str, Any], page: str) -> None:
    if not data["servers"]:
        say("No server says anything else than what is approved.")
        return
    table = TerminalTable("server", "what", "change", "state", "since", "version", droppable=("version", "since"))
    for row in data["servers"]:
        for item in row["items"]:
            renamed = item.get("renamedFrom")
            change = f"new, was {renamed}" if renamed else item["change"]
            mark = " (!)" if item["marks"] else ""
            cells = (one_line(f"{item['id']}{mark}", _LONGEST), one_line(change, _LONGEST), _word_state(item))
            table.add(row["server"], *cells, ago(item["since"]), one_line(item["version"], _LONGEST))
    table.show()
    waiting = [row for row in data["servers"] if row["waits"]]
    for row in waiting:
        words = "to approve" if row["policy"] == "hold" else "to look at"
        hidden = _count_hidden(row["items"])
        told = [f"{_count(row['waits'] - hidden, 'change')} {words}"] if row["waits"] > hidden else []
        told += [f"{hidden} {_CANNOT}: {_HIDES[hidden != 1]}"] if hidden else []
        command = with_program(f"pegboard changes show {row['server']}")
        say(f"{row['server']}: {'; '.join(told)}: {command}", error=True)
    if any(item["marks"] for row in data["servers"] for item in row["items"]):
        say("(!) wants a look: what a tool claims of itself, or how it is shown, is something else.", error=True)
    if page:
        say(f"In a browser: {page}", error=True)


def _word_state(item: Mapping[str, Any]) -> str:
    served = f", {_STATES[item['served']]}" if "served" in item else ""
    return "rejected" + served if item["state"] == "rejected" else _STATES[item["state"]]


def _show_details(data: Mapping[str, Any], tools: Sequence[str], page: str) -> None:
    if not data["items"]:
        say(_no_change(data))
        return
    for item in data["items"]:
        state = "" if item["state"] == "gone" else f", {_word_state(item)}"
        renamed = f", was {item['renamedFrom']}" if "renamedFrom" in item else ""
        kind = "" if item["kind"] == item["name"] else f"{item['kind']} "
        head = f"{kind}{item['name']}: {item['change']}{renamed}{state}, {ago(item['since'])}"
        say(one_line(head, 300))
        for note in (*item["marks"], *item["notes"]):
            say_wrapped(f"  note: {one_line(note, 300)}", indent="  ")
        _show_diff(item["diff"])
        say("")
    _show_commands(data, tools)
    if page:
        say(f"In a browser: {page}", error=True)


def _show_commands(data: Mapping[str, Any], tools: Sequence[str]) -> None:
    """Those commands that can do something about what was shown."""
    server, items = data["server"], data["items"]
    hidden = [item for item in items if item.get("hides")]
    if data["policy"] == "locked":
        say(with_program(f"To approve all that {server} says now: pegboard lock {server}"), error=True)
    else:
        new = [item for item in items if not item.get("hides") and not item["rejected"]]
        again = [item for item in items if not item.get("hides") and item["rejected"]]
        waiting = [item for item in items if not item["rejected"] and item["state"] != "gone"]
        _show_command("To approve this", "accept", data, new, is_named=bool(tools))
        _show_command("To approve what was rejected", "accept", data, again, is_named=True)
        _show_command("To keep what was approved", "reject", data, waiting, is_named=bool(tools))
    if hidden:
        names = one_line(_join_names(hidden), 300)
        say(f"{names} {_CANNOT}: {_HIDES[len(hidden) > 1]}", error=True)


def _show_command(
    what: str, verb: str, data: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, is_named: bool
) -> None:
    if not items:
        return
    names = [shlex.quote(_name_for_command(item)) for item in items] if is_named else []
    if len(names) > _MOST_NAMED:
        names = ["NAME..."]
    words = ["pegboard changes", verb, data["server"], *names, "--revision", data["revision"]]
    say(with_program(f"{what}: {' '.join(words)}"), error=True)


def _name_for_command(item: Mapping[str, Any]) -> str:
    """The server chose it: it is to be no option."""
    return f"{item['kind']}:{item['name']}" if item["id"].startswith("-") else str(item["id"])


def _join_names(items: Sequence[Mapping[str, Any]]) -> str:
    rest = len(items) - _MOST_NAMED
    return ", ".join(str(item["id"]) for item in items[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count_hidden(items: Sequence[Mapping[str, Any]]) -> int:
    """How much of what waits nobody can approve."""
    return len({item["id"] for item in items if item.get("hides") and item["state"] != "rejected"})


def _show_diff(diff: str) -> None:
    if not sys.stdout.isatty():
        say(diff)
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for line in diff.split("\n"):
        console.print(verbatim(line, _COLOURS.get(line[:1])))


def _show_decided(data: Mapping[str, Any], verb: str) -> None:
    done = {"accept": "accepted", "reject": "rejected"}[verb]
    if not data["decided"]:
        say(_no_change(data), error=True)
        return
    for name in data["decided"]:
        say(f"{one_line(name, _LONGEST)}: {done}")
    hidden = _count_hidden(data["items"])
    left = f"{data['waits'] - hidden} still to be decided" if data["waits"] > hidden else "nothing else waits"
    left += f"; {hidden} {_CANNOT}: {_HIDES[hidden != 1]}" if hidden else ""
    say(f"{data['server']}: {left}.", error=True)


def _no_change(data: Mapping[str, Any]) -> str:
    if data["policy"] == "follow":
        return f'{data["server"]} is followed ("changes"): nothing is compared, and all that it says is in use.'
    if rejected := [item for item in data["items"] if item["state"] == "rejected"]:
        names = one_line(_join_names(rejected), 300)
        return f"Nothing of {data['server']} waits for a decision. Rejected, and to be approved by name alone: {names}"
    if data["items"]:
        return f"Nothing of {data['server']} waits for a decision."
    if not data["seen"]:
        words = f"Nothing is known yet of the definitions of {data['server']}: pegboard refresh {data['server']}"
        return with_program(words)
    left_out = with_program(f"; {data['leftOut']} left out: pegboard doctor") if data["leftOut"] else "."
    return f"{data['server']} says nothing else than what is approved{left_out}"


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _show_lock(data: Mapping[str, Any]) -> None:
    counts = (_count(data["definitions"], "definition"), _count(data["servers"], "server"))
    say(f"{data['file']}: {' of '.join(counts)}.")
    for line in data["changes"]:
        say(f"  {one_line(line, 200)}")
    for line in data["hidden"]:
        say(one_line(line, 200), error=True)
    for name in data["unseen"]:
        words = f"{name} is not in it: nothing is known of its definitions yet. First: pegboard refresh {name}"
        say(with_program(words), error=True)
