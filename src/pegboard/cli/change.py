"""`remove`, `enable`, `disable`, `refresh`: what changes which servers there are and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import (
    UNREACHED,
    ConfigOption,
    JsonOption,
    check_servers,
    find_config,
    json_text,
    load_settings,
    without_name,
)
from pegboard.cli.config_change import ask_servers, config_to_change, edit_config, say_advice
from pegboard.cli.program import with_program
from pegboard.cli.rest_client import Answer, connect
from pegboard.cli.show import count_found, say, say_wrapped

_ServerName = Annotated[str, typer.Argument(help="The server's name.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(remove)
    app.command()(enable)
    app.command()(disable)
    app.command()(refresh)


def remove(name: _ServerName, config: ConfigOption = None) -> None:
    """Remove a server from the config."""
    from pegboard.config.edit import remove_server

    location = config_to_change(config)
    edit_config(lambda: remove_server(location.path, name, needs_trust=location.needs_trust))
    say(f"{name} was removed from {location.path}.")


def enable(name: _ServerName, config: ConfigOption = None) -> None:
    """Switch a server on, and ask it for its tools."""
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
    gateway = connect(location)
    results = _ask(chosen, lambda done: gateway.refresh(chosen, done), quiet=as_json)
    _report_refresh(results, location.path, as_json=as_json)


def _ask(
    names: list[str], ask: Callable[[Callable[[], None]], dict[str, Answer]], *, quiet: bool = False
) -> dict[str, Answer]:
    """What servers answer, with a bar that shows how many have."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("asking servers", total=len(names))
        return ask(lambda: progress.advance(bar))


def _report_refresh(results: dict[str, Answer], path: Path, *, as_json: bool = False) -> None:
    failed = {name: answer["error"] for name, answer in results.items() if "error" in answer}
    if as_json:
        print(json_text({"success": not failed, "data": {"servers": results}}))
    else:
        for name, answer in sorted(results.items()):
            if name in failed:
                said = without_name(answer["error"]["message"], name)
                say_wrapped(f"{name}: {said}", indent="  ", error=True)
                say_advice(name, answer["error"]["message"], path)
            else:
                print(with_program(f"{name}: {count_found(name, answer['data'])}"))
    if failed:
        raise typer.Exit(UNREACHED)


def _switch(name: str, config: Path | None, *, enabled: bool) -> None:
    config_to_change(config)
    location = find_config(config)
    settings = load_settings(location)
    from pegboard.config.edit import switch_server
    from pegboard.names import fold_server_name

    known = fold_server_name(name) in settings.servers
    trust = location.needs_trust
    edit_config(lambda: switch_server(location.path, name, enabled=enabled, known_elsewhere=known, needs_trust=trust))
    say(f"{name} is {'enabled' if enabled else 'disabled'} in {location.path}.")
    if enabled:
        folded = fold_server_name(name)
        results = _ask([folded], lambda done: ask_servers(location.path, [folded], done, are_enabled=True))
        _report_refresh(results, location.path)
