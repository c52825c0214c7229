"""How answers look on a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pegboard.terminal import plain

if TYPE_CHECKING:
    from rich.text import Text

_STATES_BY_COLOUR = {
    "green": "connected available ready completed",
    "cyan": "idle in_progress",
    "yellow": "starting needs_auth needs-sign-in",
    "red": "unreachable unavailable invalid blocked missing",
    "bright_black": "disabled skipped",
}
_COLOURS = {state: colour for colour, states in _STATES_BY_COLOUR.items() for state in states.split()}
_FOLDED = {"last error", "summary", "excerpt", "task", "waits for"}
_OPEN, _CLOSE = "<mark>", "</mark>"
_MARK = re.compile(f"({_OPEN}|{_CLOSE})")


def ago(moment: str | None) -> str:
    """A time as people say it."""
    if moment is None:
        return "never"
    seconds = max(0, int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def coloured(word: str) -> Text:
    """A state in its colour."""
    return verbatim(word, _COLOURS.get(word.replace(" ", "-")))


def say(text: str, *, error: bool = False) -> None:
    """Print a text, whoever wrote it: nothing in it reaches the terminal that would steer it."""
    print(plain(text), file=sys.stderr if error else sys.stdout)


def one_line(text: str) -> str:
    """A text for a place that has one line."""
    return " ".join(text.split())


def verbatim(text: str, style: str | None = None) -> Text:
    """A text for a table or a console, where it would be read as markup: `[red]` and `:bug:` mean themselves."""
    from rich.text import Text

    return Text(plain(text), style or "")


def highlighted(excerpt: str, style: str) -> Text:
    """An excerpt with what is marked in it in a style of its own; a mark that closes nothing is a part of the text."""
    shown = verbatim("")
    inside = False
    for piece in _MARK.split(excerpt):
        if piece == (_CLOSE if inside else _OPEN):
            inside = not inside
        else:
            shown.append(piece, style if inside else None)
    return shown


class Rows:
    """What a table shows. A cell is text, never markup; only what explains itself at length is folded."""

    def __init__(self, *columns: str, folded: Collection[str] = (), least: int = 0) -> None:
        self._columns = columns
        self._folded = {*_FOLDED, *folded}
        # How wide the first column is at least, whatever else is cut.
        self._least = least
        self._rows: list[tuple[str | Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        """One more row."""
        self._rows.append(cells)

    def show(self) -> None:
        """Print it as wide as there is room."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for at, column in enumerate(self._columns):
            whole = column in self._folded
            least = self._least if at == 0 else None
            table.add_column(column, overflow="fold" if whole else "ellipsis", no_wrap=not whole, min_width=least)
        for row in self._rows:
            table.add_row(*(verbatim(cell) if isinstance(cell, str) else cell for cell in row))
        console = Console(highlight=False)
        if not console.is_terminal:
            # There is no width to fit into: a name that is cut helps no program and no person.
            console = Console(highlight=False, width=240)
        console.print(table)
