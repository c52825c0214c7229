"""`import`: the servers of other clients go into Pegboard's config, after a look at what that means."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import (
    FAILED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    json_text,
    stop,
    text_of_input,
    without_name,
)
from pegboard.cli.config_change import ask_servers, config_to_change, edit_config, own_ports
from pegboard.cli.first_steps import example_server
from pegboard.cli.program import command_for
from pegboard.cli.rest_client import Answer
from pegboard.cli.show import TerminalTable, count_tools, one_line, say, say_wrapped

if TYPE_CHECKING:
    from pegboard.client_configs.import_plan import ImportPlan, PlannedServer
    from pegboard.client_configs.place import Place
    from pegboard.client_configs.program import ClientProgram
    from pegboard.client_configs.reading import ConfigReading
    from pegboard.config import Location

_MOST_NAMES = 8
_SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CLIENT|FILE|-",
        help="Clients, a file in any client's format, or - for the standard input; without one, all clients.",
    ),
]
_ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Also the clients' files of this folder.", file_okay=False),
]


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command("import", short_help="Take over the servers of other clients, or of a file.")(import_servers)


def import_servers(
    sources: _SourcesArgument = None,
    project: _ProjectOption = None,
    only: Annotated[str | None, typer.Option("--only", metavar="a,b", help="Only the servers of these names.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Add the servers switched off.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take over the servers of other MCP clients, or of a file in any client's format.

    A table comes first, and nothing is written before you say yes. The clients' own files are not changed.

    \b
    Examples:
      pegboard import
      pegboard import claude-code cursor --dry-run
      pegboard import ./mcp.json --only github,time
      pegboard import - < snippet.toml
    """
    from pegboard.client_configs.place import this_place

    place = this_place(project)
    found = _Sources.find(sources or [], place, with_project=project is not None)
    location = config_to_change(config, found.files)
    is_new_file = found.has_servers(location.path) and _is_foreign(location.path)
    reading = _choose(found.reading, only)
    plan = _plan(reading, location, is_off=off, is_new_file=is_new_file)
    run = _Import(plan, location, found.clients, is_new_file=is_new_file, as_json=as_json)
    if found.left and not as_json:
        _show_projects(found.left)
    if run.decide(dry_run=dry_run, yes=yes):
        run.write()


class _Sources:
    """What was named on the command line, and what was read there."""

    def __init__(
        self, clients: list[ClientProgram], files: set[Path], reading: ConfigReading, left: Mapping[Path, int]
    ) -> None:
        self.clients = clients
        self.files = files
        self.reading = reading
        # How many servers there are for each single project, which are not taken over.
        self.left = left

    def has_servers(self, path: Path) -> bool:
        """Whether this file was named, and servers were found in it."""
        origins = {Path(server.origin.place) for server in self.reading.servers if server.origin.is_file}
        return path.resolve() in self.files and path.resolve() in {origin.resolve() for origin in origins}

    @classmethod
    def find(cls, names: Sequence[str], place: Place, *, with_project: bool) -> _Sources:
        from pegboard.client_configs.import_files import project_counts, read_clients, read_named_file
        from pegboard.client_configs.reading import ConfigReading
        from pegboard.client_configs.table import CLIENTS

        clients: list[ClientProgram] = []
        files: set[Path] = set()
        pasted = ConfigReading()
        for name in names:
            source = _source(name)
            if isinstance(source, Path):
                files.add(source.resolve())
                pasted += read_named_file(source, place)
            elif isinstance(source, str):
                pasted += _read_pasted(source)
            else:
                clients.append(source)
        chosen = clients if names else list(CLIENTS)
        reading = read_clients(chosen, place, with_project=with_project)
        left: Mapping[Path, int] = {} if with_project else project_counts(chosen, place)
        return cls(chosen, files, reading + pasted, left)


def _source(name: str) -> ClientProgram | Path | str:
    """A client, a file, or a text: what is piped in, or was pasted as the argument itself."""
    from pegboard.client_configs.table import UnknownClientError, find_client

    if name == "-":
        return text_of_input()
    try:
        return find_client(name)
    except UnknownClientError as exc:
        unknown = str(exc)
    path = Path(name).expanduser() if "\0" not in name and len(name) < 4096 else Path()
    if path.is_file() or path.is_fifo():
        return path
    if path.is_dir() and name:
        stop(f"{name} is a folder: to read the clients' files in it, use --project {name}", WRONG_CALL)
    if not any(mark in name for mark in ("{", "://", ":mcp/", " ", "\n")):
        stop(f"there is no file {name!r}, and {unknown}", WRONG_CALL)
    return name


def _read_pasted(text: str) -> ConfigReading:
    from pegboard.client_configs.reader import no_servers, read_text
    from pegboard.client_configs.reading import PASTED

    return no_servers(read_text(text, PASTED), PASTED)


def _choose(reading: ConfigReading, only: str | None) -> ConfigReading:
    from pegboard.client_configs.import_plan import UnknownNameError, choose

    if only is None:
        return reading
    names = [name.strip() for name in only.split(",") if name.strip()]
    try:
        return choose(reading, names)
    except UnknownNameError as exc:
        stop(f"--only: {exc}", WRONG_CALL)


def _plan(reading: ConfigReading, location: Location, *, is_off: bool, is_new_file: bool) -> ImportPlan:
    from pegboard.client_configs.import_plan import plan_import
    from pegboard.config.edit import entries_of

    known = {} if is_new_file else edit_config(lambda: entries_of(location.path))
    return plan_import(reading, known, ports=own_ports(location.path), is_off=is_off)


def _is_foreign(path: Path) -> bool:
    """Whether the config file itself is in another program's shape: then there is nothing of ours in it to keep."""
    from pegboard.config.edit import has_foreign_shape

    return edit_config(lambda: has_foreign_shape(path))


class _Import:
    """One import: shown, decided, written and told."""

    def __init__(
        self,
        plan: ImportPlan,
        location: Location,
        clients: Sequence[ClientProgram],
        *,
        is_new_file: bool,
        as_json: bool,
    ) -> None:
        self._plan = plan
        self._location = location
        self._clients = clients
        self._is_new_file = is_new_file
        self._as_json = as_json

    def decide(self, *, dry_run: bool, yes: bool) -> bool:
        """Show the plan; whether it is to be written."""
        count = len(self._plan.entries)
        if not self._as_json:
            _show_plan(self._plan)
        if not count or dry_run:
            self._report({"written": False})
            if not self._as_json:
                say(self._nothing(dry_run=dry_run))
            if not count and not self._plan.servers and any(not each.is_skipped for each in self._plan.unreadable):
                raise typer.Exit(FAILED)
            return False
        if yes:
            return True
        if self._as_json or not sys.stdin.isatty():
            self._report({"written": False})
            stop("nothing was written: there is nobody to ask. Add --yes to write it, or --dry-run.", FAILED)
        if _is_long(self._plan):
            say("This is more than fits on the screen: scroll up before you answer.")
        if not typer.confirm(f"Write {_servers(count)} to {self._location.path}?"):
            stop("nothing was written", FAILED)
        return True

    def _nothing(self, *, dry_run: bool) -> str:
        if not self._plan.servers and not self._plan.unreadable:
            return self._none_found()
        return "Nothing was written." if dry_run else "There is nothing new to write."

    def _none_found(self) -> str:
        if len(self._clients) <= _MOST_NAMES:
            names = ", ".join(client.name for client in self._clients)
            return f"No servers were found. Pegboard looked into the files of {names}."
        command = command_for("add", *example_server())
        return f"No servers were found in the files of {len(self._clients)} clients. Add your first one:\n  {command}"

    def write(self) -> None:
        """Write the entries, ask the servers for their tools, and say what came of it."""
        from pegboard.config.edit import add_servers
        from pegboard.names import fold_server_name

        path, entries = self._location.path, self._plan.entries
        trust = self._location.needs_trust
        backup = edit_config(lambda: add_servers(path, entries, needs_trust=trust, is_new_file=self._is_new_file))
        if not self._as_json:
            say(f"{_servers(len(entries))} written to {path}." + (f" The file as it was: {backup}" if backup else ""))
        names = [fold_server_name(name) for name, entry in entries.items() if entry.get("enabled") is not False]
        answers = self._discover(names)
        self._report({"written": True, "backup": str(backup) if backup else None, "discovered": answers})
        if not self._as_json:
            self._tell(answers)

    def _discover(self, names: list[str]) -> dict[str, Answer]:
        from rich.console import Console
        from rich.progress import Progress

        if not names:
            return {}
        console = Console(stderr=True, quiet=self._as_json)
        with Progress(console=console, transient=True) as progress:
            bar = progress.add_task("asking servers", total=len(names))
            return ask_servers(self._location.path, names, lambda: progress.advance(bar))

    def _report(self, outcome: Mapping[str, Any]) -> None:
        if self._as_json:
            data = {"path": str(self._location.path), **self._plan.to_dict(), **outcome}
            print(json_text({"success": True, "data": data}))

    def _tell(self, answers: Mapping[str, Answer]) -> None:
        for name, answer in sorted(answers.items()):
            if "error" in answer:
                reason = one_line(without_name(answer["error"]["message"], name), 300)
                say_wrapped(f"  {name}: not reached: {reason}", indent="    ")
            else:
                say(f"  {name}: {count_tools(answer['data']['registered'])}")
        if any("error" in answer for answer in answers.values()):
            say("Servers that were not reached are in the config all the same. What to do about them:")
            say(f"  {command_for('doctor')}")
        self._tell_doubles()

    def _tell_doubles(self) -> None:
        """What `install --replace` would take out of the clients, by the same count."""
        from pegboard.cli.clients import context_of
        from pegboard.cli.own_servers import find_client_overlap, with_own_problems
        from pegboard.config import Location

        location = Location(self._location.path, exists=True)
        context = with_own_problems(context_of(location), location, is_asking=False)
        for client in self._clients:
            found = find_client_overlap(client, context)
            if not found.served:
                continue
            verb = "is" if len(found.served) == 1 else "are"
            say(f"{_servers(len(found.served))} of {client.name} {verb} now in both. To take out what is double:")
            say(f"  {command_for('install', client.id, '--replace')}")
            if found.kept:
                kept = ", ".join(f"{name} ({reason})" for name, reason in found.kept.items())
                say_wrapped(one_line(f"It keeps: {kept}."))


def _show_projects(left: Mapping[Path, int]) -> None:
    """The servers that Claude Code has for single projects, with the command that takes over each project's."""
    say(f"Claude Code also has {_servers(sum(left.values()))} for single projects. To take them over:", error=True)
    for folder, count in sorted(left.items())[:_MOST_NAMES]:
        command = command_for("import", "claude-code", "--project", str(folder))
        say(f"  {command}  # {_servers(count)}", error=True)
    if len(left) > _MOST_NAMES:
        say(f"  and so on for {len(left) - _MOST_NAMES} more folders", error=True)


def _show_plan(plan: ImportPlan) -> None:
    if plan.servers:
        table = TerminalTable("server", "from", "outcome", "runs", folded={"from", "outcome", "runs"})
        for row in plan.servers:
            # What runs is shown word for word, and has no line ends.
            table.add(*map(one_line, (row.server.name, row.server.origin.label, row.outcome_text)), _runs(row))
        table.show()
    for each in plan.unreadable:
        say(one_line(f"{'skipped' if each.is_skipped else 'cannot be read'}: {each}"))
    for row in plan.servers:
        if row.is_written:
            _show_notes(row)
    _show_secrets(plan)


def _runs(row: PlannedServer) -> str:
    from pegboard.config.entry_effects import display_command

    state = "" if row.entry.get("enabled") is not False else " (switched off)"
    return f"{display_command(row.entry)}{state}"


def _show_notes(row: PlannedServer) -> None:
    from pegboard.config.entry_effects import entry_effects

    for line in entry_effects(row.entry):
        say(f"  {one_line(row.name)}: {line}")
    if row.server.left_out:
        say("  " + one_line(f"{row.name}: left out: {', '.join(str(each) for each in row.server.left_out)}"))
    for note in row.server.notes:
        say("  " + one_line(f"{row.name}: {note}"))


def _is_long(plan: ImportPlan) -> bool:
    """Whether something may have left the screen when the question comes; the command has a third of its width."""
    from pegboard.config.entry_effects import entry_effects

    screen = shutil.get_terminal_size((80, 24))
    rows = sum(1 + 3 * len(_runs(row)) // screen.columns for row in plan.servers)
    effects = [line for row in plan.servers if row.is_written for line in entry_effects(row.entry)]
    return rows + sum(1 + len(line) // screen.columns for line in effects) > screen.lines - 6


def _show_secrets(plan: ImportPlan) -> None:
    from pegboard.config.literal_secrets import literal_secrets

    found = [f"{place} of {name}" for name, entry in plan.entries.items() for place in literal_secrets(entry)]
    if found:
        more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
        count = "1 secret is" if len(found) == 1 else f"{len(found)} secrets are"
        say(one_line(f"{count} taken over as plain text: {', '.join(found[:_MOST_NAMES])}{more}."))
        say("The config file will be readable by you alone (mode 0600).")


def _servers(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"
