"""Commands of `pegboard` in the documentation, held against the command line as it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from docpages.pages import DocPage
from pegboard.cli.app import app

_PROMPT = "$ "
_CONTINUED = re.compile(r"\\\n\s*")
# What ends a command in a line of a shell.
_ENDS = ("|", "&&", ";", ">", "<", "#", "&")


def shown_commands(page: DocPage) -> Iterator[list[str]]:
    """The words after `pegboard` of every command that a page shows."""
    for block in page.blocks("sh", "console"):
        lines = _CONTINUED.sub(" ", block.text).splitlines()
        for line in lines:
            if block.kind == "sh" or line.startswith(_PROMPT):
                yield from _commands(line.removeprefix(_PROMPT))
    for code in page.code():
        if code.startswith("pegboard ") and "::" not in code:
            yield from _commands(code)


def _commands(line: str) -> Iterator[list[str]]:
    words = _split(line)
    while words and (words[0] in ("exec", "sudo") or re.fullmatch(r"\w+=\S*", words[0])):
        words = words[1:]
    if words and words[0].rpartition("/")[2] == "pegboard":
        end = next((at for at, word in enumerate(words) if word in _ENDS), len(words))
        yield words[1:end]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        # A sentence may show half a command.
        return line.split()


@cache
def _program() -> Any:
    return typer.main.get_command(app)


def command_problem(words: list[str]) -> str | None:
    """Why the command line would not understand it; options and names of commands alone are judged."""
    command = _program()
    rest = [word for word in words if word != "…"]
    while hasattr(command, "commands"):
        name = next((word for word in rest if not word.startswith("-")), None)
        if name is None or _is_placeholder(name):
            return _option_problem(command, rest)
        choices = name.split("|")
        unknown = [each for each in choices if each not in command.commands]
        if unknown:
            return f"there is no command {unknown[0]!r}"
        rest = rest[rest.index(name) + 1 :]
        command = command.commands[choices[0]]
    return _option_problem(command, rest)


def _is_placeholder(word: str) -> bool:
    return not re.fullmatch(r"[a-z][a-z|-]*", word)


def _option_problem(command: Any, words: list[str]) -> str | None:
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    known |= {"-h", "--help"}
    for word in words:
        if word == "--":
            return None
        name = word.strip("[]").partition("=")[0]
        if name.startswith("-") and len(name) > 1 and not name[1:].isdigit() and name not in known:
            return f"{command.name} has no option {name}"
    return None
