"""How answers look on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from rich.text import Text

_FOLDED = {"last error", "summary", "excerpt", "task", "waits for"}
_OPEN, _CLOSE = "<mark>", "</mark>"
_MARK = re.compile(f"({_OPEN}|{_CLOSE})")
# All but tabs and line ends: with the others a text can move the cursor, recolour the screen or rename the window.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def ago(moment: str | None) -> str:
    """A time as people say it."""
    if moment is None:
        return "never"
    seconds = max(0, int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def coloured(word: str) -> str:
    """A state in its colour."""
    colours = {"connected": "green", "available": "green", "idle": "cyan", "lost": "red", "invalid": "red"}
    colours |= {"unavailable": "red", "needs_auth": "yellow", "disabled": "bright_black", "connecting": "yellow"}
    colours |= {"completed": "green", "in_progress": "cyan", "blocked": "red", "skipped": "bright_black"}
    colours |= {"missing": "red"}
    return f"[{colours[word]}]{word}[/]" if word in colours else word


def plain(text: str) -> str:
    """A text as it may go to a terminal: without control characters, which would steer it."""
    return _CONTROL.sub("", text)


def plainly(show: Callable[[Any], None]) -> Callable[[Any], None]:
    """A way of showing data, for data that others wrote: each text in it goes to the terminal plain."""

    @wraps(show)
    def shown(data: Any) -> None:
        show(_plain_data(data))

    return shown


def _plain_data(data: Any) -> Any:
    if isinstance(data, str):
        return plain(data)
    if isinstance(data, list):
        return [_plain_data(each) for each in cast("list[Any]", data)]
    if isinstance(data, dict):
        return {name: _plain_data(value) for name, value in cast("dict[str, Any]", data).items()}
    return data


def verbatim(text: str) -> Text:
    """A text for a table or a console, where it would be read as markup: `[red]` and `:bug:` mean themselves."""
    from rich.text import Text

    return Text(text)


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


def table(*columns: str, folded: Collection[str] = ()) -> Any:
    """An empty table; only what explains itself at length is folded, and what a command must show to the end."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        whole = column in _FOLDED or column in folded
        table.add_column(column, overflow="fold" if whole else "ellipsis", no_wrap=not whole)
    return table


def show_table(table: Any) -> None:
    """Print a table as wide as there is room."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # There is no width to fit into: a name that is cut helps no program and no person.
        console = Console(highlight=False, width=240)
    console.print(table)
