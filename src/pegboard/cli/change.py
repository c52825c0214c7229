"""`add`, `remove`, `enable`, `disable`, `refresh`: what changes which servers there are and what is known of them."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import (
    BAD_CONFIG,
    FAILED,
    UNREACHED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    check_servers,
    find_config,
    finish,
    json_text,
    load_settings,
    stop,
    without_name,
)
from pegboard.cli.registry import (
    CalledOption,
    FromOption,
    InputOption,
    UseOption,
    VersionOption,
    YesOption,
    choose_server,
    registry_wish,
)
from pegboard.cli.rest_client import Answer, RestClient, connect
from pegboard.cli.show import say

if TYPE_CHECKING:
    from pegboard.config import Location

_TAKE_OVER = 5.0
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

_ServerName = Annotated[str, typer.Argument(help="The server's name.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(add)
    app.command()(remove)
    app.command()(enable)
    app.command()(disable)
    app.command()(refresh)


def add(
    name: Annotated[str, typer.Argument(help="The server's name.")] = "",
    target: Annotated[list[str] | None, typer.Argument(help="URL, or -- COMMAND ARG…")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="Environment of the command.")
    ] = None,
    header: Annotated[list[str] | None, typer.Option("--header", "-H", metavar="K=V", help="HTTP header.")] = None,
    sse: Annotated[bool, typer.Option("--sse", help="The server speaks the older HTTP+SSE transport.")] = False,
    source: FromOption = None,
    version: VersionOption = None,
    called: CalledOption = None,
    use: UseOption = None,
    values: InputOption = None,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a server to the config and ask it for its tools at once.

    Example: pegboard add time -- uvx mcp-server-time

    Example: pegboard add --from io.github.someone/weather
    """
    location = _changing(config)
    path = location.path
    wish = registry_wish(source, version, called, use, values or [], yes=yes)
    if wish is not None:
        if target or header or sse:
            stop("--from stands for the URL or the command: leave those out", WRONG_CALL)
        chosen = choose_server(location, wish.with_name(name).with_values(env or []))
        name, entry = chosen.name, chosen.entry
        os.environ.update(chosen.environment)
    else:
        if not name.strip() or not target:
            stop("a server needs a name, and a URL or a command: pegboard add NAME -- COMMAND", WRONG_CALL)
        entry = _entry(target, _pairs(env, "--env"), _pairs(header, "--header"), sse=sse)
    from pegboard.config.edit import add_server
    from pegboard.names import fold_server_name

    _edit(lambda: add_server(path, name, entry, needs_trust=location.needs_trust))
    folded = fold_server_name(name)
    answer = _with_progress(f"asking {folded} for its tools", lambda: _first_look(path, folded))
    finish(
        answer,
        as_json=as_json,
        show=lambda data: say(f"{folded} was added to {path}: {data['registered']} tools."),
    )


def remove(name: _ServerName, config: ConfigOption = None) -> None:
    """Remove a server from the config."""
    from pegboard.config.edit import remove_server

    location = _changing(config)
    _edit(lambda: remove_server(location.path, name, needs_trust=location.needs_trust))
    say(f"{name} was removed from {location.path}.")


def enable(name: _ServerName, config: ConfigOption = None) -> None:
    """Switch a server on."""
    _switch(name, config, enabled=True)


def disable(name: _ServerName, config: ConfigOption = None) -> None:
    """Switch a server off; it stays in the config."""
    _switch(name, config, enabled=False)


def refresh(
    names: Annotated[list[str] | None, typer.Argument(help="Names of servers; without names, all of them.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask servers for their tools now, all at once."""
    location = find_config(config)
    settings = load_settings(location)
    check_servers(names or [], settings.servers)
    chosen = names or [name for name, spec in settings.servers.items() if spec.enabled]
    _report_refresh(_refresh_all(connect(location), chosen, quiet=as_json), as_json=as_json)


def _refresh_all(gateway: RestClient, names: list[str], *, quiet: bool) -> dict[str, Answer]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("asking servers", total=len(names))
        return gateway.refresh(names, lambda: progress.advance(bar))


def _report_refresh(results: dict[str, Answer], *, as_json: bool) -> None:
    failed = {name: answer["error"] for name, answer in results.items() if "error" in answer}
    if as_json:
        print(json_text({"success": not failed, "data": {"servers": results}}))
    else:
        for name, answer in sorted(results.items()):
            if name in failed:
                say(f"{name}: {without_name(answer['error']['message'], name)}", error=True)
            else:
                print(f"{name}: {answer['data']['registered']} tools")
    if failed:
        raise typer.Exit(UNREACHED)


def _switch(name: str, config: Path | None, *, enabled: bool) -> None:
    _changing(config)
    location = find_config(config)
    settings = load_settings(location)
    from pegboard.config.edit import switch_server
    from pegboard.names import fold_server_name

    known = fold_server_name(name) in settings.servers
    trust = location.needs_trust
    _edit(lambda: switch_server(location.path, name, enabled=enabled, known_elsewhere=known, needs_trust=trust))
    say(f"{name} is {'enabled' if enabled else 'disabled'} in {location.path}.")


def _changing(config: Path | None) -> Location:
    """The file that a change goes to; it may not be there yet."""
    from pegboard.config import locate

    location = locate(config)
    if location.remark is not None:
        # Whoever is in that folder means its file: the user's own would be changed unseen, for every folder.
        stop(f"{location.remark} Or say which file to change: --config {location.path}", BAD_CONFIG)
    return location


def _edit(change: Any) -> None:
    from pegboard.config import ConfigError, ConfigWriteError, UnknownServerError
    from pegboard.config.jsonc import JsoncError

    try:
        change()
    except UnknownServerError as exc:
        stop(str(exc), WRONG_CALL)
    except ConfigWriteError as exc:
        stop(str(exc), FAILED)
    except (ConfigError, JsoncError) as exc:
        stop(str(exc), BAD_CONFIG)


def _first_look(path: Path, name: str) -> Answer:
    from pegboard.config import Location

    gateway = connect(Location(path, exists=True))
    deadline = time.monotonic() + _TAKE_OVER
    # A running gateway looks at its config file twice a second.
    while not _is_known(gateway, name) and time.monotonic() < deadline:
        time.sleep(0.1)
    return gateway.refresh([name])[name]


def _is_known(gateway: RestClient, name: str) -> bool:
    answer = gateway.servers()
    return "error" in answer or any(row["name"] == name for row in answer["data"]["servers"])


def _with_progress(text: str, work: Any) -> Answer:
    from rich.console import Console

    with Console(stderr=True).status(text):
        return work()


def _entry(target: list[str], env: dict[str, str], headers: dict[str, str], *, sse: bool) -> dict[str, object]:
    if target[0].startswith(("http://", "https://")):
        if len(target) > 1 or env:
            stop("a URL stands alone: arguments and --env are for commands", WRONG_CALL)
        entry: dict[str, object] = {"type": "sse" if sse else "http", "url": target[0]}
        return entry | ({"headers": headers} if headers else {})
    if _SCHEME.match(target[0]):
        stop(f"{target[0]}: a server's address begins with http:// or https://", WRONG_CALL)
    if headers or sse:
        stop("--header and --sse are for a URL", WRONG_CALL)
    command: dict[str, object] = {"command": target[0], "args": target[1:]}
    return command | ({"env": env} if env else {})


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not key or not equals:
            stop(f"{option} needs K=V, found {item!r}", WRONG_CALL)
        pairs[key] = value
    return pairs
