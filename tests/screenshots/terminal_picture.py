"""A picture of a terminal: text with colours as SVG, which loads nothing from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

# Rich names fonts on another host; every browser has one of its own.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def draw(command: str, output: Text, shown: Callable[[str], str], columns: int = 80) -> str:
    """The SVG of a command and what it said."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "green"), (command, "bold")), no_wrap=False)
    for line in output.split("\n", allow_blank=True):
        renamed = rename(line, shown)
        if renamed.plain or not line.plain:
            console.print(renamed, no_wrap=True, crop=False, overflow="ignore")
    # The last line loses its lower edge.
    console.print()
    svg = console.export_svg(title="Terminal", theme=MONOKAI, code_format=FORMAT, unique_id="pegboard")
    return "\n".join(line.rstrip() for line in svg.strip().splitlines()) + "\n"


def rename(line: Text, shown: Callable[[str], str]) -> Text:
    """The line without this machine's words; a line that gets longer or shorter loses its colours."""
    plain = shown(line.plain)
    return Text(plain, spans=line.spans if len(plain) == len(line.plain) else [])
