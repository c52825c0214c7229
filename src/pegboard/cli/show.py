"""How answers look on a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_FOLDED = {"last error", "summary", "excerpt", "task", "waits for"}


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


def table(*columns: str) -> Any:
    """An empty table; only what explains itself at length is folded."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold" if column in _FOLDED else "ellipsis", no_wrap=column not in _FOLDED)
    return table


def show_table(table: Any) -> None:
    """Print a table as wide as there is room."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # There is no width to fit into: a name that is cut helps no program and no person.
        console = Console(highlight=False, width=240)
    console.print(table)
