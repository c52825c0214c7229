"""How answers look on a terminal."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pegboard.terminal import plain

if TYPE_CHECKING:
    from rich.text import Text

_STATES_BY_COLOUR = {
    "green": "connected available ready completed",
    "cyan": "idle in_progress",
    "yellow": "starting needs_auth needs-sign-in needs-credentials",
    "red": "unreachable unavailable invalid blocked missing",
    "bright_black": "disabled skipped",
}
_STATE_WORDS: dict[str, str] = {
    **dict.fromkeys(("registered", "connected", "idle"), "ready"),
    **dict.fromkeys(("unreachable", "lost"), "unreachable"),
    "connecting": "starting",
    "needs_auth": "needs sign-in",
}
_COLOURS = {state: colour for colour, states in _STATES_BY_COLOUR.items() for state in states.split()}
_FOLDED = {"summary", "excerpt", "task", "waits for"}
# Between two columns of a table.
_GAP = 2
_LEAST_WIDTH = 8
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


def day_and_time(moment: str) -> str:
    """A moment as this machine's clock has it."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def show_lines(lines: Mapping[str, str]) -> None:
    """Print what is known of one thing, each with what it is before it."""
    width = max(map(len, lines)) + 2
    for what, text in lines.items():
        head = f"  {f'{what}:':<{width}}"
        say_wrapped(f"{head}{text}", indent=" " * len(head))


def colour_state(word: str) -> Text:
    """A state in its colour."""
    return verbatim(word, _COLOURS.get(word.replace(" ", "-")))


def state_word(row: Mapping[str, Any]) -> str:
    """The state of a server as people say it; `--json` and REST have the exact one."""
    exact = str(row["state"])
    if exact == "needs_auth" and not row.get("needsLogin"):
        return "needs credentials"
    return _STATE_WORDS.get(exact, exact)


def is_on_terminal() -> bool:
    """Whether what is printed goes to a terminal, where there is a width to fit into."""
    from rich.console import Console

    return Console().is_terminal


def cut_line(text: str, width: int) -> str:
    """A text of one line, in so many columns at most."""
    from rich.text import Text

    shown = Text(text, no_wrap=True, overflow="ellipsis")
    shown.truncate(max(width, 1), overflow="ellipsis")
    return shown.plain


def say(text: str, *, error: bool = False, flush: bool = False) -> None:
    """Print a text, whoever wrote it: nothing in it reaches the terminal that would steer it."""
    print(plain(text), file=sys.stderr if error else sys.stdout, flush=flush)


def say_wrapped(text: str, *, indent: str = "", error: bool = False) -> None:
    """Print prose; on a terminal lines end between words. Not for what somebody may copy: a break would be in it."""
    from rich.console import Console

    console = Console(stderr=error)
    if not console.is_terminal:
        say(text, error=error)
        return
    for line in plain(text).splitlines():
        say("\n".join(wrap_words(line, console.width, subsequent_indent=indent)), error=error)


def wrap_words(text: str, width: int, *, initial_indent: str = "", subsequent_indent: str = "") -> list[str]:
    """Lines that end between words; a path or an address stays whole, however long."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=initial_indent,
        subsequent_indent=subsequent_indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def count_tools(count: int) -> str:
    """So many tools, in words."""
    return "1 tool" if count == 1 else f"{count} tools"


def count_found(name: str, found: Mapping[str, int]) -> str:
    """What a server was found to have: its tools, and how many of them wait for somebody to approve them."""
    withheld = found.get("withheld", 0)
    return count_tools(found["registered"]) + (
        f", {withheld} withheld: pegboard changes show {name}" if withheld else ""
    )


def one_line(text: str, most: int | None = None) -> str:
    """A text of others for a place that has one line, so that nothing in it looks like a line of ours."""
    return " ".join(text.split())[:most]


def verbatim(text: str, style: str | None = None) -> Text:
    """A text for a table or a console, where it would be read as markup: `[red]` and `:bug:` mean themselves."""
    from rich.text import Text

    return Text(plain(text), style or "")


def highlight(excerpt: str, style: str) -> Text:
    """An excerpt with what is marked in it in a style of its own; a mark that closes nothing is a part of the text."""
    shown = verbatim("")
    inside = False
    for piece in _MARK.split(excerpt):
        if piece == (_CLOSE if inside else _OPEN):
            inside = not inside
        else:
            shown.append(piece, style if inside else None)
    return shown


class TerminalTable:
    """What a table shows. A cell is text, never markup; only what explains itself at length is folded."""

    def __init__(
        self,
        *columns: str,
        folded: Collection[str] = (),
        least: int = 0,
        droppable: Sequence[str] = (),
        whole: Collection[str] = (),
    ) -> None:
        self._columns = columns
        # Which columns are left out first where there is no room for all.
        self._droppable = droppable
        self._folded = {*_FOLDED, *folded}
        # Which columns are never cut: the others give them room.
        self._whole = whole
        # How wide the first column is at least, however narrow the terminal.
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

        console = Console(highlight=False)
        if not console.is_terminal:
            self._write()
            return
        self._drop_columns(console.width)
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for at, (column, width) in enumerate(zip(self._columns, self._widths(console.width), strict=True)):
            whole = at == 0 or column in self._folded
            table.add_column(column, overflow="fold" if whole else "ellipsis", no_wrap=not whole, width=width)
        for row in self._rows:
            table.add_row(*(verbatim(cell) if isinstance(cell, str) else cell for cell in row))
        console.print(table)

    def _drop_columns(self, room: int) -> None:
        for column in self._droppable:
            cells = [[name, *(row[at] for row in self._rows)] for at, name in enumerate(self._columns)]
            if sum(max(map(_width, each)) + _GAP for each in cells) - _GAP <= room:
                return
            at = self._columns.index(column)
            self._columns = (*self._columns[:at], *self._columns[at + 1 :])
            self._rows = [(*row[:at], *row[at + 1 :]) for row in self._rows]

    def _write(self) -> None:
        """For a pipe: nothing is cut, and a row is a line, whatever stands in it."""
        rows = [[one_line(_plain_text(cell)) for cell in row] for row in (self._columns, *self._rows)]
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
            print((" " * _GAP).join(cells).rstrip())

    def _widths(self, room: int) -> list[int]:
        """How wide each column is. What a row is called by has its room first, what is said at length its room last."""
        cells = [[column, *(row[at] for row in self._rows)] for at, column in enumerate(self._columns)]
        room -= _GAP * (len(cells) - 1)
        widths = [min(max(map(_width, column)), max(room, 1)) for column in cells]
        first, others = max(self._least, min(widths[0], room * 3 // 5)), widths[1:]
        if not others:
            return widths
        if self._columns[-1] not in self._whole:
            others[-1] = max(min(others[-1], room - first - sum(others[:-1])), self._least_last(others[-1], room))
        cut = [at for at, column in enumerate(self._columns[1:]) if column not in self._whole]
        while first + sum(others) > room and max((others[at] for at in cut), default=0) > _LEAST_WIDTH:
            others[max(cut, key=lambda at: others[at])] -= 1
        if self._whole:
            first = max(min(first, room - sum(others)), 1)
        return [first, *others]

    def _least_last(self, width: int, room: int) -> int:
        """How wide the last column stays. Another one that is folded gives it room: it is only longer then."""
        is_shared = self._columns[-1] in self._folded and not self._folded.isdisjoint(self._columns[1:-1])
        return max(min(width, room * 2 // 5), _LEAST_WIDTH) if is_shared else _LEAST_WIDTH


def _plain_text(cell: str | Text) -> str:
    return plain(cell if isinstance(cell, str) else cell.plain)


def _width(cell: str | Text) -> int:
    return max((verbatim(line).cell_len for line in _plain_text(cell).split("\n")), default=0)
