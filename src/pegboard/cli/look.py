"""`servers`, `tools`, `find`, `describe`, `call`: what there is, and using it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.cli.common import (
    FAILED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    check_servers,
    find_config,
    finish,
    json_argument,
    json_text,
    short_place,
    stop,
    text_of_input,
)
from pegboard.cli.first_steps import example_server, has_client_files
from pegboard.cli.page_link import find_page
from pegboard.cli.program import command_for, with_program
from pegboard.cli.rest_client import RestClient, connect
from pegboard.cli.show import (
    TerminalTable,
    ago,
    colour_state,
    count_tools,
    cut_line,
    is_on_terminal,
    one_line,
    say,
    say_wrapped,
    state_word,
)

_FAILED = ("unreachable", "lost", "needs_auth", "invalid")
_NAMED = 10
# Seconds in which most servers have answered.
_PATIENCE = 1.0
_LONGEST_NOTE = 300
_EXAMPLE = """give KEY=VALUE, or a JSON object like '{"timezone": "UTC"}'"""

_ToolName = Annotated[str, typer.Argument(help="The tool's name, as in time__get_current_time.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(short_help="Show every server: its state, tools and last error.")(servers)
    app.command()(tools)
    app.command()(find)
    app.command()(describe)
    app.command()(call)


def servers(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show every server: state, tools, when it was last seen, latency, last error.

    Example: pegboard servers
    """
    location = find_config(config)
    answer = connect(location).servers()
    data: dict[str, Any] = answer.get("data") or {}
    if problem := data.get("configProblem"):
        say(
            f"note: the gateway runs with an older config, since it cannot use the file as it is now: {problem}",
            error=True,
        )
    finish(answer, as_json=as_json, show=lambda data: _show_servers(data, location.path))


def tools(
    server: Annotated[str | None, typer.Option(help="Only of these servers, comma separated.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only names with this prefix.")] = None,
    status: Annotated[str | None, typer.Option(help="available or unavailable.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tools.

    Example: pegboard tools --server git,docs
    """
    if status not in {None, "available", "unavailable", "disabled", "needs_auth"}:
        stop(f"--status must be available or unavailable, found {status!r}", WRONG_CALL)
    gateway = connect(find_config(config))
    if server and "data" in (known := gateway.servers()):
        check_servers(filter(None, server.split(",")), [row["name"] for row in known["data"]["servers"]])
    answer = gateway.tools(server, prefix, status)
    _name_missing(gateway, server)
    finish(answer, as_json=as_json, show=_show_tools)


def find(
    words: Annotated[list[str], typer.Argument(help="What the tool should do, in plain words.")],
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=50)] = 10,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find tools by what they do.

    Example: pegboard find what time is it in Tokyo
    """
    query = " ".join(words)
    if not query.strip():
        stop("say what to search for", WRONG_CALL)
    gateway = connect(find_config(config))
    answer = gateway.find(query, limit)
    _name_missing(gateway)
    finish(answer, as_json=as_json, show=_show_found)


def describe(tool: _ToolName, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show a tool in full.

    Example: pegboard describe time__get_current_time
    """
    finish(connect(find_config(config)).describe(tool), as_json=as_json, show=_show_tool)


def call(
    tool: _ToolName,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE|JSON",
            help="The arguments: KEY=VALUE for each, typed by the tool's schema (KEY:=JSON for any value), "
            "or all of them as one JSON object; - reads it from stdin.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a tool and print its result.

    Example: pegboard call time__get_current_time timezone=UTC

    Example: pegboard call time__get_current_time '{"timezone": "UTC"}'
    """
    from pegboard.exactjson import as_object

    gateway = connect(find_config(config))
    given = _arguments(gateway, tool, arguments or ["{}"])
    with _note_start(gateway, tool):
        answer = gateway.call(tool, given)
    # Where the tool itself failed the call was right, whatever the reason.
    has_failed = (as_object(answer.get("data")) or {}).get("isError") is True
    finish(answer, as_json=as_json, show=_show_result, failed=FAILED if has_failed else None)
    if has_failed:
        raise typer.Exit(FAILED)


@contextlib.contextmanager
def _note_start(gateway: RestClient, tool: str) -> Generator[None]:
    """Say at a terminal what takes so long where no gateway has the server started already."""
    if gateway.is_running or not sys.stderr.isatty():
        yield
        return
    server = tool.partition("__")[0] if "__" in tool else "its server"
    text = f"starting {server} … ({command_for('serve')} keeps servers started)"
    timer = threading.Timer(_PATIENCE, say, [text], {"error": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _arguments(gateway: RestClient, tool: str, words: list[str]) -> dict[str, Any]:
    """The arguments that were typed, or the end with exit code 2."""
    from pegboard.cli.arguments import ArgumentError, is_pair, read_arguments
    from pegboard.exactjson import as_object

    if len(words) == 1 and not is_pair(words[0]):
        text = text_of_input() if words[0] == "-" else words[0]
        given = as_object(json_argument(text, "the arguments", _EXAMPLE))
        return stop(f"the arguments must be a JSON object: {_EXAMPLE}", WRONG_CALL) if given is None else given
    described = gateway.describe(tool)
    if "error" in described:
        finish(described, as_json=False, show=lambda _: None)
    try:
        return read_arguments(tool, as_object(described["data"].get("inputSchema")) or {}, words)
    except ArgumentError as exc:
        stop(str(exc), WRONG_CALL)


def _name_missing(gateway: RestClient, wanted: str | None = None) -> None:
    """Say of which servers no tools can be used, and where it says why: what is not in a list does not show."""
    data: dict[str, Any] = gateway.servers().get("data") or {}
    rows: list[dict[str, Any]] = data.get("servers", [])
    among = set(filter(None, (wanted or "").split(",")))
    failed: list[str] = [row["name"] for row in rows if row["state"] in _FAILED and (not among or row["name"] in among)]
    if failed:
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        say(
            f"note: not available: {', '.join(failed[:_NAMED])}{more}; {command_for('servers')} says why",
            error=True,
        )


def _show_servers(data: dict[str, Any], config: Path) -> None:
    if not data["servers"]:
        say(f"No servers yet. Add one: {command_for('add', *example_server())}")
        if has_client_files():
            say(f"Take over those of your clients: {command_for('import')}")
        return
    # On a terminal there is no room for notes beside the rest: they stand below. In a pipe a server is one line.
    is_terminal = is_on_terminal()
    notes = {row["name"]: short_place(_note(row), config) for row in data["servers"]}
    columns = ("name", "state", "tools", "last seen", "latency", *(() if is_terminal else ("last error",)))
    rows = TerminalTable(*columns, droppable=("latency", "last seen", "tools"))
    for row in data["servers"]:
        latency = "" if row["latencyMs"] is None else f"{row['latencyMs']:.0f} ms"
        count = str(row["tools"]) if row["seen"] else "?"
        cells = (row["name"], colour_state(state_word(row)), count, ago(row["lastSeen"]), latency)
        rows.add(*cells, *(() if is_terminal else (notes[row["name"]],)))
    rows.show()
    if is_terminal:
        _show_notes(notes)
        if page := find_page(config, "servers"):
            say(f"In a browser: {page}")


def _show_notes(notes: Mapping[str, str]) -> None:
    for name, note in notes.items():
        if note:
            say_wrapped(f"{name}: {cut_line(note, _LONGEST_NOTE)}", indent="  ")
    if any(notes.values()):
        say(f"What to do: {command_for('doctor')}")


def _note(row: dict[str, Any]) -> str:
    """What there is to say of a server, on one line; all of it is in `--json` and in `doctor`."""
    left_out = len(row.get("rejected", ())) + len(row.get("conflicts", ()))
    changed = row.get("changed", {})
    withheld = changed.get("withheld", 0) + changed.get("rejected", 0)
    login = f"sign in with: {command_for('login', row['name'])}" if row.get("needsLogin") else ""
    notes = [
        login or with_program(row["lastError"] or ""),
        *row.get("cut", ()),
        f"{withheld} withheld: see {command_for('changes', 'show', row['name'])}" if withheld else "",
        f"{left_out} left out: see {command_for('doctor')}" if left_out else "",
    ]
    return one_line("; ".join(filter(None, notes)))


def _show_tools(data: dict[str, Any]) -> None:
    rows = TerminalTable("tool", "status", "description")
    for row in data["tools"]:
        first = row["description"].strip().splitlines()
        rows.add(row["name"], colour_state(row["status"]), first[0] if first else "")
    rows.show()
    print(count_tools(data["total"]))


def _show_found(data: dict[str, Any]) -> None:
    if not data["tools"]:
        print("Nothing fits. Try other words.")
        return
    rows = TerminalTable("tool", "score", "status", "description")
    for row in data["tools"]:
        rows.add(row["name"], f"{row['score']:.2f}", colour_state(row["availability"]["status"]), row["description"])
    rows.show()
    print(f"{len(data['tools'])} of {data['total']} that fit")


def _show_tool(data: dict[str, Any]) -> None:
    print(data["name"])
    print(f"  server: {data['server'] or 'pegboard'}, {data['availability']['status']}")
    print(f"\n{data['description']}\n")
    print(json_text(data["inputSchema"]))


def _show_result(data: dict[str, Any]) -> None:
    from pegboard.exactjson import well_formed

    for part in data.get("content", []):
        if part.get("type") == "text":
            print(well_formed(part["text"]))
        else:
            kind = one_line(str(part.get("mimeType") or part.get("type")), 80)
            print(f"[{kind}: {len(json_text(part)):,} characters; --json shows them]")
    if not data.get("content") and "structuredContent" in data:
        print(json_text(data["structuredContent"]))
