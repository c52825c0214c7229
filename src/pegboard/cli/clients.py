"""`clients`, `install`, `uninstall`: Pegboard in the config files of MCP client programs.

They do their work themselves, also where a gateway runs: paths of clients depend on the folder, the home and the
variables of whoever types the command. REST does the same with those of the gateway.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from pegboard.cli.client_check import show_check, wants_token
from pegboard.cli.common import FAILED, UNREACHED, WRONG_CALL, ConfigOption, JsonOption, find_config, json_text, stop
from pegboard.cli.own_servers import count_all_tools, with_own_problems
from pegboard.cli.program import command_for, with_program
from pegboard.cli.show import TerminalTable, say, say_wrapped

if TYPE_CHECKING:
    from pegboard.client_configs.check import CheckOutcome
    from pegboard.client_configs.context import InstallContext, InstallOptions
    from pegboard.client_configs.entries import EntryKind
    from pegboard.client_configs.findings import ClientFinding
    from pegboard.client_configs.install import InstallPlan
    from pegboard.client_configs.program import ClientProgram
    from pegboard.client_configs.survey import ClientStatus
    from pegboard.client_configs.uninstall import UninstallPlan
    from pegboard.config import Location

_Clients = Annotated[
    list[str] | None, typer.Argument(metavar="CLIENT", help="Clients, as `pegboard clients` names them.")
]
_All = Annotated[bool, typer.Option("--all", help="Every client that is found here.")]
_Scope = Annotated[
    Literal["user", "project"], typer.Option(help="The user's config, or that of the project in this folder.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and write nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(epilog="Example: pegboard clients", short_help="List the MCP clients of this machine.")(clients)
    app.command(epilog="Example: pegboard install claude-code")(install)
    app.command(epilog="Example: pegboard uninstall claude-code")(uninstall)


def clients(
    scope: _Scope = "user",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the MCP clients of this machine: their config files, and whether Pegboard is in them."""
    from pegboard.client_configs.survey import survey

    context = context_of(find_config(config))
    rows = survey(context, scope)
    if as_json:
        print(json_text({"success": True, "data": {"clients": [row.row() for row in rows]}}))
        return
    _show_clients(rows, context.gateway)


def install(
    names: _Clients = None,
    every: _All = False,
    scope: _Scope = "user",
    board: Annotated[str | None, typer.Option(help="The board in the entry. [default: the client's name]")] = None,
    http: Annotated[bool, typer.Option("--http", help="Use the address of the gateway.")] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Use a command, which the client starts.")] = False,
    name: Annotated[str | None, typer.Option(help="The entry's name. [default: pegboard]")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take out the client's servers that work in Pegboard.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an entry of this name that is not ours.")] = False,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_snippet: Annotated[bool, typer.Option("--print", help="Print the entry to paste, and write nothing.")] = False,
    as_link: Annotated[bool, typer.Option("--link", help="Print a link that a click installs.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put Pegboard into the config of MCP clients. The change is shown first, and a backup is kept."""
    from pegboard.client_configs.context import InstallOptions
    from pegboard.client_configs.install import plan_install

    kind = _entry_kind(http=http, stdio=stdio)
    _check_names(board, name)
    if as_snippet and as_link:
        stop("--print and --link cannot be used together", WRONG_CALL)
    location = find_config(config)
    context = context_of(location)
    options = InstallOptions(scope, board, kind, name, replace, force)
    chosen = _choose(names, every, context, "install")
    if as_snippet or as_link:
        _print_entries(chosen, context, options, as_link=as_link)
        return
    if replace:
        context = with_own_problems(context, location, is_asking=True, is_quiet=as_json)
    run = _Run(dry_run=dry_run, yes=yes, as_json=as_json)
    plans = run.plan(chosen, lambda client: plan_install(client, context, options))
    _install(plans, context, location, run)


def uninstall(
    names: _Clients = None,
    every: _All = False,
    scope: _Scope = "user",
    restore: Annotated[
        bool, typer.Option("--restore", help="Put the file back as it was before the install, or change nothing.")
    ] = False,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take Pegboard out of the config of MCP clients. The change is shown first."""
    from pegboard.client_configs.uninstall import plan_uninstall

    context = context_of(find_config(config))
    chosen = _choose(names, every, context, "uninstall")
    run = _Run(dry_run=dry_run, yes=yes, as_json=as_json)
    plans = run.plan(chosen, lambda client: plan_uninstall(client, context, scope, restore=restore))
    _uninstall(plans, context, run)


def look_at_clients(location: Location) -> list[ClientFinding]:
    """What `pegboard doctor` says of the clients that Pegboard is installed in."""
    from pegboard.client_configs.findings import client_findings

    return client_findings(with_own_problems(context_of(location), location, is_asking=False))


def context_of(location: Location) -> InstallContext:
    """This machine, for a config and the gateway that serves it."""
    from pegboard.cli.http_transport import find_running
    from pegboard.client_configs.context import this_context

    running = find_running(location.path)
    needs_token = running is not None and wants_token(running)
    return this_context(location.path, running.url if running else None, needs_token=needs_token)


def _entry_kind(*, http: bool, stdio: bool) -> EntryKind | None:
    if http and stdio:
        stop("--http and --stdio cannot be used together", WRONG_CALL)
    return "http" if http else "stdio" if stdio else None


def _check_names(board: str | None, name: str | None) -> None:
    from pegboard.names import is_board_name

    for option, value in (("--board", board), ("--name", name)):
        if value is not None and not is_board_name(value):
            stop(f"{option} takes letters, digits, '_', '-' and '.', 64 at most: found {value!r}", WRONG_CALL)


def _choose(names: Sequence[str] | None, every: bool, context: InstallContext, verb: str) -> list[ClientProgram]:
    """The clients that are meant; a name that nobody has ends the command before anything is done."""
    from pegboard.client_configs.table import CLIENTS, UnknownClientError, find_client

    here = [client for client in CLIENTS if not client.import_only and client.is_present(context.place)]
    if names and every:
        stop("name clients, or use --all: not both", WRONG_CALL)
    if every:
        return [client for client in here if client.target(context.place) is not None]
    if not names:
        found = f" Found here: {', '.join(client.id for client in here)}." if here else ""
        stop(f"say which client: pegboard {verb} CLIENT, or pegboard {verb} --all.{found}", WRONG_CALL)
    try:
        return list(dict.fromkeys(map(find_client, names)))
    except UnknownClientError as exc:
        stop(str(exc), WRONG_CALL)


class _Run:
    """One command over several clients: what fails is said, and the others go on."""

    def __init__(self, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        self.dry_run = dry_run
        self.yes = yes
        self.as_json = as_json
        self.rows: list[dict[str, Any]] = []
        self.code = 0

    def plan(self, chosen: Sequence[ClientProgram], make: Callable[[ClientProgram], Any]) -> list[Any]:
        """The plans of those for which there can be one. A wrong call ends the command."""
        from pegboard.client_configs.context import InstallUsageError

        try:
            return [plan for client in chosen if (plan := self.attempt(client, lambda client=client: make(client)))]
        except InstallUsageError as exc:
            stop(str(exc), WRONG_CALL)

    def attempt(self, client: ClientProgram, work: Callable[[], Any]) -> Any:
        """What the work gives; `None` if it fails for this client, which is said."""
        from pegboard.client_configs.document import ClientFileError

        try:
            return work()
        except ClientFileError as exc:
            self.fail(client, str(exc))
            return None

    def fail(self, client: ClientProgram, problem: str) -> None:
        """It failed for one client."""
        self.code = self.code or FAILED
        self.rows.append({"client": client.id, "outcome": "failed", "problem": problem})
        if not self.as_json:
            say(f"pegboard: {client.name}: {problem}", error=True)

    def agree(self, question: str) -> bool:
        """Whether what was shown is to be done."""
        if self.dry_run or self.yes:
            return self.yes and not self.dry_run
        if sys.stdin.isatty() and not self.as_json:
            if typer.confirm(question):
                return True
            say("Nothing was changed.")
        else:
            say("pegboard: nothing was changed: there is no terminal to ask at. Use --yes to write.", error=True)
        self.code = self.code or FAILED
        return False

    def end(self) -> NoReturn:
        """Print what programs read, and end with the code that fits."""
        if self.as_json:
            print(json_text({"success": not self.code, "data": {"clients": self.rows}}))
        raise typer.Exit(self.code)


def _install(plans: list[InstallPlan], context: InstallContext, location: Location, run: _Run) -> NoReturn:
    from pegboard.client_configs.install import apply_install
    from pegboard.client_configs.rows import install_row

    for plan in plans:
        if not run.as_json:
            _show_install(plan, context)
        if plan.outcome == "refused":
            reason = f"{plan.name!r} is another server's entry in {plan.file.path if plan.file else ''}"
            run.fail(plan.client, f"{reason}; use --force to overwrite it, or --name for another name")
        elif not plan.is_change:
            run.rows.append(install_row(plan))
    changes = [plan for plan in plans if plan.is_change]
    agreed = bool(changes) and run.agree("Write this?")
    written = [
        plan for plan in changes if agreed and _apply(plan.client, lambda plan=plan: apply_install(plan, context), run)
    ]
    checks = _check(written, location, run) if written else {}
    run.rows += [{**install_row(plan), "written": False} for plan in changes if not agreed]
    run.rows += [{**install_row(plan, checks[plan.target.kind]), "written": True} for plan in written]
    if written and not run.as_json:
        _show_written(written, checks, context)
    run.end()


def _apply(client: ClientProgram, work: Callable[[], None], run: _Run) -> bool:
    return run.attempt(client, lambda: work() or True) is True


def _check(written: Sequence[InstallPlan], location: Location, run: _Run) -> dict[str, CheckOutcome]:
    """Whether Pegboard answers, asked once for all clients that reach it in the same way."""
    from dataclasses import replace

    from rich.console import Console

    from pegboard.client_configs.check import check_target

    targets = {plan.target.kind: plan.target for plan in written}
    # A first start may take a while.
    with Console(stderr=True, quiet=run.as_json).status("asking Pegboard for its tools"):
        checks = {kind: check_target(target) for kind, target in targets.items()}
        if any(check.tools for check in checks.values()):
            total = count_all_tools(location)
            checks = {kind: replace(check, total=total) for kind, check in checks.items()}
    if any(check.problem is not None for check in checks.values()):
        run.code = run.code or UNREACHED
    return checks


def _uninstall(plans: list[UninstallPlan], context: InstallContext, run: _Run) -> NoReturn:
    from pegboard.client_configs.rows import uninstall_row
    from pegboard.client_configs.uninstall import apply_uninstall

    for plan in plans:
        if not run.as_json:
            _show_uninstall(plan, context)
        if plan.change is None:
            run.rows.append(uninstall_row(plan))
    changes = [plan for plan in plans if plan.change is not None]
    agreed = bool(changes) and run.agree("Write this?")
    for plan in changes:
        done = agreed and _apply(plan.client, lambda plan=plan: apply_uninstall(plan, context), run)
        if done or not agreed:
            run.rows.append({**uninstall_row(plan), "written": done})
        if done and not run.as_json:
            _show_removed(plan, context)
    run.end()


def _print_entries(
    chosen: Sequence[ClientProgram], context: InstallContext, options: InstallOptions, *, as_link: bool
) -> None:
    from pegboard.client_configs.context import InstallUsageError, choose_target
    from pegboard.client_configs.entries import build_entry, snippet
    from pegboard.client_configs.install import USUAL_NAME

    name = options.name or USUAL_NAME
    for client in chosen:
        try:
            target, reason = choose_target(client, context, _for_link(client, options) if as_link else options)
        except InstallUsageError as exc:
            stop(str(exc), WRONG_CALL)
        entry = build_entry(client.style, target, name)
        if as_link and client.link is None:
            stop(f"{client.name} has no one-click link: use --print", WRONG_CALL)
        say(_heading(client, context, reason), error=True)
        print(client.link(name, entry) if as_link and client.link else snippet(client, name, entry).rstrip())


def _for_link(client: ClientProgram, options: InstallOptions) -> InstallOptions:
    from dataclasses import replace

    if client.link_needs_http and options.kind == "stdio":
        stop(f"a link for {client.name} needs an address: leave out --stdio", WRONG_CALL)
    return replace(options, kind="http") if client.link_needs_http else options


def _heading(client: ClientProgram, context: InstallContext, reason: str) -> str:
    files = client.user_files(context.place)
    where = f" ({_short(files[0].path, context)})" if files else ""
    return f"{client.name}{where}: {reason}."


def _show_clients(rows: Sequence[ClientStatus], gateway: str | None) -> None:
    present = [row for row in rows if row.found]
    table = TerminalTable("client", "Pegboard", "servers", "file")
    home = str(Path.home())
    for row in present:
        file = "" if row.file is None else row.file.replace(home, "~", 1)
        table.add(row.id, _connection(row), "" if row.problem or not row.writes else str(row.servers), file)
    if present:
        table.show()
    for row in present:
        if row.problem:
            say(f"{row.id}: {row.problem}", error=True)
    _show_cut_off([row for row in present if row.running is False], gateway)
    missing = [row.id for row in rows if not row.found and row.installable]
    if missing:
        known = "Not found here: " if present else "No client was found here. Known are: "
        say_wrapped(f"{known}{', '.join(missing)}.", indent="  ")
    waiting = [row.id for row in present if row.installable and row.writes and not row.connected and not row.problem]
    if any(row.servers for row in present):
        say(f"Take over their servers: {command_for('import')}")
    if waiting:
        say(f"Connect one: {command_for('install', waiting[0])}")


def _show_cut_off(rows: Sequence[ClientStatus], gateway: str | None) -> None:
    """The clients whose address nobody answers at, and what to do."""
    from urllib.parse import urlsplit

    from pegboard.client_configs.entries import DEFAULT_PORT

    if not rows:
        return
    ids = [row.id for row in rows]
    say_wrapped(f"These have no tools of Pegboard now, since no gateway runs at their address: {', '.join(ids)}.")
    ports = {urlsplit(row.address or "").port for row in rows}
    if gateway is not None:
        say(f"  The gateway is at {gateway}: {command_for('install', *ids)}")
    elif ports == {DEFAULT_PORT}:
        say(f"  Start it: {command_for('serve')}")
    else:
        for port in sorted(filter(None, ports)):
            say(f"  Start it: {command_for('serve', '--port', str(port))}")


def _connection(row: ClientStatus) -> str:
    if row.problem:
        return "unreadable"
    if row.running is False:
        return f"{row.transport}, no gateway"
    if row.connected:
        return f"{row.transport}, {f'board {row.board}' if row.board else 'no board'}"
    if not row.installable:
        return "import only"
    return "not connected" if row.writes else "by hand"


def _show_install(plan: InstallPlan, context: InstallContext) -> None:
    from pegboard.client_configs.entries import snippet

    client = plan.client
    if plan.file is None:
        say(f"{client.name}: its config is not written by Pegboard. Here is the entry ({plan.reason}):")
        say(snippet(client, plan.name, plan.entry).rstrip())
        if client.link is not None and (plan.target.url or not client.link_needs_http):
            say(client.link(plan.name, plan.entry))
        say(f"Next: {client.after_install}.")
        return
    file = _short(plan.file.path, context)
    if plan.outcome == "none":
        say(f"{client.name}: Pegboard is in {file} already. There is nothing to do.")
        _show_kept(plan)
        return
    say(f"{client.name}: {file} will be {'created' if plan.outcome == 'create' else 'changed'}.")
    say(with_program(f"The entry is {plan.reason}."))
    for remark in plan.remarks:
        say(with_program(remark))
    if plan.replaced:
        say_wrapped(f"Pegboard serves these, so they are taken out: {', '.join(plan.replaced)}.")
    _show_kept(plan)
    _show_diff(plan.diff)


def _show_kept(plan: InstallPlan) -> None:
    if plan.kept:
        say_wrapped(f"Kept: {', '.join(f'{name} ({reason})' for name, reason in plan.kept.items())}.")


def _show_uninstall(plan: UninstallPlan, context: InstallContext) -> None:
    if plan.change is None or plan.file is None:
        say(f"{plan.client.name}: Pegboard is not in its config. There is nothing to do.")
        return
    file = _short(plan.file.path, context)
    say(f"{plan.client.name}: {file} will be {'deleted' if plan.change.after is None else 'changed'}.")
    for remark in plan.remarks:
        say(remark)
    if plan.restored:
        say_wrapped(f"The install took these out, so they come back: {', '.join(plan.restored)}.")
    _show_diff(plan.diff)


def _show_diff(diff: str) -> None:
    from rich.console import Console

    from pegboard.cli.show import verbatim

    console = Console(highlight=False, soft_wrap=True)
    console.print()
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        heading = line.startswith(("+++", "---"))
        console.print(verbatim(line, "bold" if heading else colours.get(line[:1])))
    console.print()


def _show_written(written: Sequence[InstallPlan], checks: dict[str, CheckOutcome], context: InstallContext) -> None:
    for plan in written:
        say(f"{plan.client.name}: Pegboard is in {_short(plan.file.path, context) if plan.file else ''} now.")
        say(f"  Next: {plan.client.after_install}.")
    for kind, check in checks.items():
        show_check(kind, check)
    _show_need(written)
    say(f"Undo: {command_for('uninstall', *(plan.client.id for plan in written))}")


def _show_need(written: Sequence[InstallPlan]) -> None:
    """That clients with an address have no servers while no gateway runs, and what to do about that."""
    from pegboard.cli.service import has_service

    bound = [plan.client for plan in written if plan.target.url is not None]
    if not bound or has_service():
        return
    names = ", ".join(client.name for client in bound)
    say_wrapped(f"{names} {'needs' if len(bound) == 1 else 'need'} the gateway from now on.")
    say(f"  Keep it running: {command_for('service', 'install')}")
    say(f"  Or do without: {command_for('install', *(client.id for client in bound), '--stdio')}")


def _show_removed(plan: UninstallPlan, context: InstallContext) -> None:
    file = _short(plan.file.path, context) if plan.file else ""
    state = "byte for byte as before the install" if plan.is_exact else "without Pegboard"
    if plan.change is not None and plan.change.after is None:
        state = "deleted: there was none before the install"
    say_wrapped(f"{plan.client.name}: {file} is {state}.")
    say(f"  Next: {plan.client.after_uninstall}.")


def _short(path: Path, context: InstallContext) -> str:
    """A path as people write it."""
    try:
        return str(Path("~") / path.relative_to(context.place.home))
    except ValueError:
        return str(path)
