"""`token …`: who may come in from other machines, and what they may do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import ConfigOption, JsonOption, find_config, finish
from pegboard.cli.rest_client import connect
from pegboard.cli.show import TerminalTable, ago, colour_state, say

if TYPE_CHECKING:
    from pegboard.config import Location

_Name = Annotated[str, typer.Argument(help="The token's name.")]
_Expires = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When it expires: 30d, 12h, or a day such as 2027-01-01; else never."),
]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(no_args_is_help=True, help="Tokens: who may come in, and what they may do.")
    group.command()(add)
    group.command("list")(list_tokens)
    group.command()(rotate)
    group.command()(remove)
    app.add_typer(group, name="token")


def add(
    name: _Name,
    server: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Only these servers; can be repeated.")
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only these tools, as github__get_*; can be repeated."),
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Not these tools; can be repeated.")] = None,
    toolset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these of Pegboard's own tools; can be repeated.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")] = False,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="How many calls in a time, as in 60/m.")] = None,
    in_flight: Annotated[int | None, typer.Option(metavar="N", help="How many calls at once.")] = None,
    expires: _Expires = None,
    board: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A shared board it may use; can be repeated.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A namespace of memory it may use, the first by default; can be repeated."),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="It may also change tokens and servers.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, once: it is not stored.

    Without options it may use everything, except what only this machine's user may do.

    \b
    Example: pegboard token add laptop
    Example: pegboard token add ci --server github --read-only --expires 30d
    """
    tools = {key: patterns for key, patterns in (("allow", tool), ("deny", deny)) if patterns}
    rule = {
        "servers": server,
        "toolsets": toolset,
        "tools": tools,
        "readOnly": read_only,
        "boards": board,
        "namespaces": namespace,
        "rate": rate,
        "inFlight": in_flight,
        "admin": admin,
    }
    # A zero is a value, and a wrong one.
    given = {key: value for key, value in rule.items() if value or (value == 0 and value is not False)}
    location = find_config(config)
    answer = connect(location).add_token(name, given, expires)
    finish(answer, as_json=as_json, show=lambda data: _show_secret(data, location))


def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List tokens: what each may use, until when, and when it was used last.

    Example: pegboard token list
    """
    finish(connect(find_config(config)).tokens(), as_json=as_json, show=_show_tokens)


def rotate(name: _Name, expires: _Expires = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Give a token another secret and print it, once; the one before is refused from now on.

    Its name, rule, boards and sessions stay, and without --expires its time to expire.

    Example: pegboard token rotate laptop
    """
    location = find_config(config)
    answer = connect(location).rotate_token(name, expires)
    finish(answer, as_json=as_json, show=lambda data: _show_secret(data, location))


def remove(name: _Name, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Remove a token: whoever has it is refused from now on, and its streams and sessions end.

    Example: pegboard token remove laptop
    """
    answer = connect(find_config(config)).remove_token(name)
    finish(answer, as_json=as_json, show=lambda data: say(f"{data['removed']} was removed.", error=True))


def _show_secret(data: Mapping[str, Any], location: Location) -> None:
    """The token alone on stdout, so that a script can take it; a person is told what to do with it."""
    if not sys.stdout.isatty():
        print(data["token"])
        return
    until = f", until {_day(data['expiresAt'])}" if data["expiresAt"] else ""
    say(f"The token {data['name']}{until}. It is shown this once, and stored nowhere:")
    say("")
    print(data["token"])
    say("")
    say("Clients send it with every request, as a header:")
    say("  Authorization: Bearer TOKEN")
    say("For example:")
    url = _address(location)
    say(f'  claude mcp add --transport http pegboard {url} --header "Authorization: Bearer TOKEN"')


def _address(location: Location) -> str:
    from pegboard.cli.http_transport import find_running

    running = find_running(location.path)
    return f"{running.url}/mcp" if running is not None else "http://HOST:7420/mcp"


def _show_tokens(data: Mapping[str, Any]) -> None:
    if not data["tokens"]:
        say("There are no tokens. Make one: pegboard token add NAME")
        return
    table = TerminalTable("token", "state", "expires", "last used", "may use", folded=("may use",))
    for row in data["tokens"]:
        expires = _day(row["expiresAt"]) if row["expiresAt"] else "never"
        used = row.get("problem") or _in_words(row["rule"])
        table.add(row["name"], colour_state(row["state"]), expires, ago(row["lastUsedAt"]), used)
    table.show()


def _day(moment: str) -> str:
    from datetime import datetime

    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def _in_words(rule: Mapping[str, Any]) -> str:
    """A rule in one line."""
    tools: Mapping[str, Any] = rule.get("tools") or {}
    lists = {
        "servers": rule.get("servers"),
        "toolsets": rule.get("toolsets"),
        "tools": tools.get("allow"),
        "not": tools.get("deny"),
        "boards": rule.get("boards"),
        "namespaces": rule.get("namespaces"),
    }
    parts = [f"{what} {' '.join(names)}" for what, names in lists.items() if names]
    parts += ["read-only"] if rule.get("readOnly") else []
    parts += [str(rule["rate"])] if rule.get("rate") else []
    parts += [f"{rule['inFlight']} at once"] if rule.get("inFlight") else []
    whole = "; ".join(parts) or "everything"
    return f"{whole}; admin" if rule.get("admin") else whole
