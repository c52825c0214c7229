"""A page that a newcomer walks through: its commands are run in order, and it shows what they say."""

from __future__ import annotations

import re
from collections.abc import Callable

from docpages.newcomer import Newcomer

_CONSOLE = re.compile(r"^```console\n\$ (?P<command>[^\n]*)\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL)
SERVE = "pegboard serve"


def walk(text: str, newcomer: Newcomer) -> str:
    """The page with what each command says now."""
    return _CONSOLE.sub(lambda block: _block(block["command"], _say(newcomer)(block["command"])), text)


def outputs(text: str) -> dict[str, str]:
    """What the page shows for each command."""
    return {block["command"]: block["output"] for block in _CONSOLE.finditer(text)}


def _say(newcomer: Newcomer) -> Callable[[str], str]:
    def say(command: str) -> str:
        terminal = newcomer.start(command, "/mcp") if command == SERVE else newcomer.run(command)
        return newcomer.shown(terminal.text)

    return say


def _block(command: str, output: str) -> str:
    return f"```console\n$ {command}\n{output}\n```"
