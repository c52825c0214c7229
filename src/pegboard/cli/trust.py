"""`trust`: the config file of a folder is used once somebody has looked at what it says."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import BAD_CONFIG, FAILED, WRONG_CALL, stop
from pegboard.cli.show import say


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command()(trust)


def trust(
    folder: Annotated[Path, typer.Argument(help="The folder.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Allow the pegboard.json of a folder to be used, as it is now: it can run commands."""
    from pegboard.config import ConfigError, parse_settings
    from pegboard.config.locate import LOCAL_NAME, trust_store
    from pegboard.config.read import decode

    path = folder if folder.is_file() else folder / LOCAL_NAME
    try:
        content = path.read_bytes()
    except OSError as exc:
        stop(f"{path.absolute()}: {exc.strerror or exc}", WRONG_CALL)
    try:
        text = decode(content, path)
        parse_settings(text, path, os.environ)
    except ConfigError as exc:
        stop(str(exc), BAD_CONFIG)
    store = trust_store()
    if store.holds(path, content):
        say(f"{path.resolve()} is trusted, and has not changed.")
        return
    _show(path, store.text(path), text)
    if not yes:
        if not sys.stdin.isatty():
            stop("there is no terminal to ask at: look at what it says, then trust it with --yes", WRONG_CALL)
        if not typer.confirm("Trust it?"):
            stop("nothing was changed", FAILED)
    store.add(path, content)
    say(f"{path.resolve()} is trusted from now on, until it changes.")


def _show(path: Path, before: str | None, text: str) -> None:
    """What the file would do; where it was trusted before, what changed. Nothing secret is shown."""
    from pegboard.config import parse_settings
    from pegboard.config.secrets import secrets_in, shown_address
    from pegboard.log import Redactor

    servers = parse_settings(text, path, os.environ).servers.values()
    if before is None:
        for spec in servers:
            say(f"  {spec.name}: {spec.problem or shown_address(spec)}")
        return
    secrets = {secret for each in (before, text) for secret in secrets_in(each)}
    redactor = Redactor.of(secrets.union(*(spec.secrets for spec in servers)))
    old, new = ([redactor.clean(line) for line in each.splitlines()] for each in (before, text))
    lines = list(difflib.unified_diff(old, new, "trusted", "now", lineterm=""))
    for line in lines or ["  Only values changed that are not shown here."]:
        say(line)
