"""`trust`: the config file of a folder is used once somebody has looked at what it says."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import BAD_CONFIG, FAILED, WRONG_CALL, stop
from pegboard.cli.show import say

# Before the rest of a line that is too long: no line of another kind begins like this.
_REST = "      | "
_LEAST_WIDTH = 40


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command(short_help="Allow the pegboard.json of a folder to be used.")(trust)


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
    _show(store.text(path), text)
    if not yes and not asks:
        stop("there is no terminal to ask at: read what the file does, then trust it with --yes", WRONG_CALL)
    if asks and not typer.confirm("Trust it?"):
        stop("nothing was changed", FAILED)
    store.add(path, content)
    say(f"{path.resolve()} is trusted from now on, until it changes.")


def _show(before: str | None, text: str) -> None:
    """What the file would do; where it was trusted before, what changed. It is the same with and without a terminal:
    whoever decides sees all that would run."""
    from pegboard.config.review import briefs, changes, overview, review

    old, new = review(before) if before else [], review(text)
    lines = overview(new) if before is None else changes(old, new) or ["Nothing of what it does changed."]
    screen = shutil.get_terminal_size((100, 24))
    rows = [row for line in lines for row in _fold(line, screen.columns - 2)]
    # The question and what is around it need some lines, too.
    if len(rows) > screen.lines - 4:
        rows.append("Once more, cut where it is long, what it runs and reaches:")
        rows += [f"  {row}" for line in briefs(new, old) for row in _fold(line, screen.columns - 4)]
        # Last, where nothing pushes it away: many commands do not fit on the screen, either.
        rows.append(f"These are {len(rows):,} lines, more than fit on the screen.")
    for row in rows:
        say(f"  {row}")


def _fold(line: str, width: int) -> Iterator[str]:
    """The line in rows of our own: where a terminal folds it, the rest could look like another line."""
    # Else what this terminal cannot write would be a question mark.
    line = line.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding)
    # A character beyond ASCII may be two columns wide.
    room = max(width if line.isascii() else width // 2, _LEAST_WIDTH) - len(_REST)
    yield line[:room]
    for at in range(room, len(line), room):
        yield f"{_REST}{line[at : at + room]}"
