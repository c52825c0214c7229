"""`token …`: who may come in from other machines, and what they may do."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.access.rule_words import name_rule
from pegboard.cli.common import WRONG_CALL, ConfigOption, JsonOption, find_config, finish, stop
from pegboard.cli.grant_words import count_grant, explain_nothing, gives_nothing, name_servers
from pegboard.cli.program import with_program
from pegboard.cli.rest_client import RestClient, connect
from pegboard.cli.show import (
    TerminalTable,
    ago,
    colour_state,
    day_and_time,
    say,
    say_wrapped,
    show_lines,
)

if TYPE_CHECKING:
    from pegboard.config import Location

_Name = Annotated[str, typer.Argument(help="The token's name.")]
_Server = Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Only these servers; can be repeated.")]
_Tool = Annotated[
    list[str] | None, typer.Option(metavar="PATTERN", help="Only these tools, as github__get_*; can be repeated.")
]
_Deny = Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Not these tools; can be repeated.")]
_Toolset = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only these of Pegboard's own tools; can be repeated.")
]
_Rate = Annotated[str | None, typer.Option(metavar="RATE", help="How many calls in a time, as in 60/m.")]
_InFlight = Annotated[int | None, typer.Option(metavar="N", help="How many calls at once.")]
_Board = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A shared board it may use; can be repeated.")]
_Namespace = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A namespace of memory it may use, the first by default; can be repeated."),
]
_Expires = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When it expires: 30d, 12h, a day such as 2027-01-01, or never."),
]
# Options by the members of a rule that they are.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "server": ("servers",),
    "tool": ("tools", "allow"),
    "deny": ("tools", "deny"),
    "toolset": ("toolsets",),
    "read-only": ("readOnly",),
    "rate": ("rate",),
    "in-flight": ("inFlight",),
    "board": ("boards",),
    "namespace": ("namespaces",),
    "admin": ("admin",),
}
_CLEARED = (*_PARTS, "expires")
# Options whose values may be several names with commas. A namespace may have a comma in it.
_NAMES = frozenset({"server", "tool", "deny", "toolset", "board"})


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(no_args_is_help=True, help="Tokens: who may come in, and what they may do.")
    group.command()(add)
    group.command("list", short_help="List tokens: what each may use, and until when.")(list_tokens)
    group.command(short_help="Show a token: everything but its secret.")(show)
    group.command()(change)
    group.command(short_help="Give a token another secret, and print it once.")(rotate)
    group.command(short_help="Remove a token: whoever has it is refused.")(remove)
    app.add_typer(group, name="token")


def add(
    name: _Name,
    server: _Server = None,
    tool: _Tool = None,
    deny: _Deny = None,
    toolset: _Toolset = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")] = False,
    rate: _Rate = None,
    in_flight: _InFlight = None,
    expires: _Expires = None,
    board: _Board = None,
    namespace: _Namespace = None,
    admin: Annotated[bool, typer.Option("--admin", help="It may also change tokens and servers.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, once: it is not stored.

    Without options it may use everything, except what only this machine's user may do, and does not expire.

    \b
    Example: pegboard token add laptop
    Example: pegboard token add ci --server github --read-only --expires 30d
    """
    given: dict[str, Any] = {"server": server, "tool": tool, "deny": deny, "toolset": toolset, "rate": rate}
    given |= {"in-flight": in_flight, "board": board, "namespace": namespace}
    rule = _rule_members({**given, "read-only": read_only or None, "admin": admin or None})
    location = find_config(config)
    answer = connect(location).add_token(name, rule, expires)
    finish(answer, as_json=as_json, show=lambda data: _show_secret(data, location))


def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List tokens: what each may use, until when, and when it was used last.

    Example: pegboard token list
    """
    finish(connect(find_config(config)).tokens(), as_json=as_json, show=_show_tokens)


def show(name: _Name, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show a token: everything but its secret, and how many tools it is given now.

    Example: pegboard token show ci
    """
    finish(connect(find_config(config)).token(name), as_json=as_json, show=_show_token)


def change(
    name: _Name,
    new_name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Another name for it.")] = None,
    server: _Server = None,
    tool: _Tool = None,
    deny: _Deny = None,
    toolset: _Toolset = None,
    read_only: Annotated[bool | None, typer.Option(help="Only tools that change nothing, or all again.")] = None,
    rate: _Rate = None,
    in_flight: _InFlight = None,
    expires: _Expires = None,
    board: _Board = None,
    namespace: _Namespace = None,
    admin: Annotated[bool | None, typer.Option(help="It may also change tokens and servers, or not any more.")] = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="Take this limit off: server, tool, rate, expires, …; can be repeated."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a token without giving it another secret. What is not given stays as it is.

    A list replaces the one before. The change holds on the next request.

    \b
    Example: pegboard token change ci --server github --server docs --expires 90d
    Example: pegboard token change ci --clear rate --no-read-only
    """
    given: dict[str, Any] = {"server": server, "tool": tool, "deny": deny, "toolset": toolset, "rate": rate}
    given |= {"in-flight": in_flight, "board": board, "namespace": namespace}
    given |= {"read-only": read_only, "admin": admin, "expires": expires}
    cleared = [_part(word) for word in clear or ()]
    for part in cleared:
        if given[part] is not None:
            stop(f"--{part} and --clear {part} contradict each other", WRONG_CALL)
    changes: dict[str, Any] = {"name": new_name} if new_name is not None else {}
    changes |= {"rule": rule} if (rule := _rule_members(given, cleared)) else {}
    changes |= {"expires": expires} if expires is not None or "expires" in cleared else {}
    if not changes:
        stop("there is nothing to change: give an option, as in --expires 30d or --clear rate", WRONG_CALL)
    answer = connect(find_config(config)).change_token(name, changes)
    finish(answer, as_json=as_json, show=_show_changed)


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


def _part(word: str) -> str:
    """The option that is meant by what was typed behind `--clear`."""
    plain = word.removeprefix("--").replace("_", "-").lower()
    for part in (plain, plain.removesuffix("s"), f"{plain}s"):
        if part in _CLEARED:
            return part
    return stop(f"--clear takes one of {', '.join(_CLEARED)}, found {word!r}", WRONG_CALL)


def _rule_members(given: Mapping[str, Any], cleared: Sequence[str] = ()) -> dict[str, Any]:
    """The members of a rule that options speak of; those that are cleared are null."""
    members: dict[str, Any] = {}
    for part, place in _PARTS.items():
        if given.get(part) is None and part not in cleared:
            continue
        *outer, name = place
        inside = members.setdefault(outer[0], {}) if outer else members
        value = given.get(part)
        inside[name] = _split(value) if part in _NAMES else value
    return members


def _split(values: Sequence[str] | None) -> list[str] | None:
    """Names that somebody wrote one after another with commas; none of these can have a comma in it."""
    if values is None:
        return None
    return [name for value in values for each in value.split(",") if (name := each.strip())] or list(values)


def _show_secret(data: Mapping[str, Any], location: Location) -> None:
    """The token alone on stdout, so that a script can take it; a person is told what to do with it."""
    if not sys.stdout.isatty():
        print(data["token"])
        _show_notes(data)
        return
    until = f", until {day_and_time(data['expiresAt'])}" if data["expiresAt"] else ""
    say(f"The token {data['name']}{until}. It is shown this once, and stored nowhere:")
    say("")
    print(data["token"])
    say("")
    say(f"It may use: {data['mayUse']}. Now that gives {count_grant(data['gives'])}.")
    _show_notes(data)
    say("Clients send it with every request, as a header:")
    say("  Authorization: Bearer TOKEN")
    say("For example:")
    url = _address(location)
    say(f'  claude mcp add --transport http pegboard {url} --header "Authorization: Bearer TOKEN"')


def _address(location: Location) -> str:
    from pegboard.cli.http_transport import find_running

    running = find_running(location.path)
    if running is None:
        return "http://HOST:7420/mcp"
    # Most tokens are for other machines.
    status: Mapping[str, Any] = RestClient(running).status().get("data") or {}
    return f"{next(iter(status.get('addresses', ())), running.url)}/mcp"


def _show_tokens(data: Mapping[str, Any]) -> None:
    if not data["tokens"]:
        say(with_program("There are no tokens. Make one: pegboard token add NAME"))
        return
    table = TerminalTable("token", "state", "expires", "last used", "may use", folded=("may use",))
    for row in data["tokens"]:
        expires = day_and_time(row["expiresAt"]) if row["expiresAt"] else "never"
        also = f"; and {name_rule(row['configRule']['number'])} of the config" if "configRule" in row else ""
        used = row.get("problem") or f"{row['mayUse']}{also}"
        table.add(row["name"], colour_state(row["state"]), expires, ago(row["lastUsedAt"]), used)
    table.show()


def _show_changed(data: Mapping[str, Any]) -> None:
    say(f"{data['name']} was changed. It is now:", error=True)
    _show_token(data)


def _show_token(data: Mapping[str, Any]) -> None:
    lines = {
        "token": data["name"],
        "id": data["id"],
        "state": data.get("problem") or data["state"],
        "expires": day_and_time(data["expiresAt"]) if data["expiresAt"] else "never",
        "made": ago(data["createdAt"]),
        "last used": ago(data["lastUsedAt"]),
        "may use": data["mayUse"],
    }
    if (rule := data.get("configRule")) is not None:
        lines["and"] = f"{name_rule(rule['number'])} of the config: {rule['mayUse']}"
    if (grant := data.get("gives")) is not None:
        lines["gives now"] = f"{count_grant(grant)}{name_servers(grant)}"
    show_lines({what: text for what, text in lines.items() if text})
    _show_notes(data)


def _show_notes(data: Mapping[str, Any]) -> None:
    """What is likely to be a mistake; what was asked for is done."""
    notes = list(data.get("remarks", ()))
    if (grant := data.get("gives")) is not None and gives_nothing(grant) and (reason := explain_nothing(data, grant)):
        notes.append(f"it is given no tools now: {reason}")
    for note in notes:
        say_wrapped(with_program(f"note: {note}"), error=True)
