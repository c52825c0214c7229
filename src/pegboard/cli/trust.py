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
    from pegboard.config.file import read_file
    from pegboard.config.locate import LOCAL_NAME, trust_store
    from pegboard.config.read import decode

    path = folder if folder.is_file() else folder / LOCAL_NAME
    try:
        content = read_file(path, is_found=True)
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
    asks = not yes and sys.stdin.isatty()
    _show(store.text(path), text, hides=not asks)
    if not yes and not asks:
        stop("there is no terminal to ask at: look at what it says, then trust it with --yes", WRONG_CALL)
    if asks and not typer.confirm("Trust it?"):
        stop("nothing was changed", FAILED)
    store.add(path, content)
    say(f"{path.resolve()} is trusted from now on, until it changes.")


def _show(before: str | None, text: str, *, hides: bool) -> None:
    """What the file would do; where it was trusted before, what changed. Whoever decides sees all of its commands; what
    is only printed shows no secret."""
    from pegboard.config.review import review, variables
    from pegboard.config.secrets import secrets_in
    from pegboard.log import Redactor

    old, new = review(before) if before else [], review(text)
    if hides:
        redactor = Redactor.of(secrets_in("\n".join([*old, *new])))
        old, new = list(map(redactor.clean, old)), list(map(redactor.clean, new))
    changes = list(difflib.unified_diff(old, new, "trusted", "now", lineterm=""))
    for line in new if before is None else changes or ["Only values changed that are not shown here."]:
        say(f"  {line}")
    for name, servers in variables(text).items():
        say(f"  ${name} of your environment goes to {', '.join(servers)}")
