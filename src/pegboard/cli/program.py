"""How a person calls `pegboard` from here: the program's name or path, with the config that a command needs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.config import Location

_NAME = "pegboard"
# In texts of ours; `the pegboard section` is none.
_COMMANDS = (
    *("add", "add-json", "audit", "call", "changes", "chats", "clients", "completion", "describe", "disable", "doctor"),
    *("enable", "find", "import", "install", "lock", "login", "logins", "logout", "logs", "memory", "refresh"),
    *("remove", "restart"),
    *("search", "secrets", "serve", "servers", "service", "status", "stdio", "tasks", "token", "tools", "trust"),
    *("uninstall", "whoami"),
)
# Commands of commands.
_GROUPS = {
    "audit": ("head", "verify"),
    "changes": ("accept", "reject", "show"),
    "chats": ("export", "list", "search", "show"),
    "memory": (
        *("add", "delete", "export", "fulltext", "get", "import", "linked", "list", "rename", "search"),
        "update",
    ),
    "secrets": ("key", "rotate"),
    "service": ("install", "remove", "run", "status"),
    "tasks": ("done", "graph", "list", "next", "sync"),
    "token": ("add", "change", "list", "remove", "rotate", "show"),
}
_WITHOUT_CONFIG = frozenset({"completion", "secrets key", "service remove", "trust"})
_WORDS = (*(f"{group} {inner}" for group, names in _GROUPS.items() for inner in names), *_COMMANDS)
# The longest first: `add` is the beginning of `add-json`.
_COMMAND = re.compile(
    rf"(?<![\w./\\-]){_NAME} (?P<words>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b(?P<named>[^\n`]*--config)?"
)
# The config file that this command was given, as another command has to be given it.
_config: ContextVar[tuple[str, ...]] = ContextVar("config", default=())
_file: ContextVar[Path | None] = ContextVar("file", default=None)


@dataclass(frozen=True, slots=True)
class Program:
    """The words that call it, and whether its name alone would do."""

    words: tuple[str, ...]
    is_on_path: bool


def find_program(
    *,
    python: str = sys.executable,
    which: Callable[[str], str | None] = shutil.which,
    folder: Path | None = None,
    is_windows: bool = os.name == "nt",
) -> Program:
    """This `pegboard`: by its name where that finds this one, else by its path, short where it is below the folder."""
    own = Path(python).with_name(f"{_NAME}.exe" if is_windows else _NAME)
    found = which(_NAME)
    if found is not None and own.exists() and _is_same(Path(found), own):
        return Program((_NAME,), is_on_path=True)
    if own.exists():
        return Program((_shorten(own, folder or Path.cwd()),), is_on_path=False)
    if found is not None and _is_same(Path(found), Path(sys.argv[0])):
        return Program((_NAME,), is_on_path=True)
    return Program((python, "-m", _NAME), is_on_path=False)


def command_line(words: Sequence[str], *, is_windows: bool = os.name == "nt") -> str:
    """Words as they are typed into a shell."""
    return subprocess.list2cmdline(words) if is_windows else shlex.join(words)


def use_config(location: Location) -> None:
    """From now on commands that are shown to a person are for this config file; those that find it by themselves need
    not name it."""
    from pegboard.config.locate import user_config

    _file.set(location.path)
    finds_it = location.needs_trust or location.path == user_config()
    _config.set(() if finds_it else ("--config", str(location.path)))


def config_file() -> Path | None:
    """The config file that this command works with."""
    return _file.get()


def command_for(*words: str) -> str:
    """A command to type, for the same config; what stands behind `--` is the command of a server."""
    at = words.index("--") if "--" in words else len(words)
    return command_line([*find_program().words, *words[:at], *_config.get(), *words[at:]])


def names_command(text: str) -> bool:
    """Whether a text of ours has a command in it that somebody may copy."""
    return _COMMAND.search(text) is not None


def with_program(text: str) -> str:
    """A text of ours in which commands are called `pegboard …`, with what calls them from here, for the same config."""
    program = find_program().words

    def call(match: re.Match[str]) -> str:
        words, named = match["words"], match["named"] or ""
        options = () if named or words in _WITHOUT_CONFIG else _config.get()
        return command_line([*program, *words.split(), *options]) + named

    return _COMMAND.sub(call, text)


def install_advice() -> str:
    """How to have `pegboard` on the PATH."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "pyproject.toml").is_file():
        return f"add {Path(sys.executable).parent} to your PATH"
    where = command_line([_shorten(checkout, Path.cwd())])
    return f"uv tool install {where}   or   pipx install {where}"


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _shorten(path: Path, folder: Path) -> str:
    try:
        short = path.relative_to(folder)
    except ValueError:
        return str(path)
    # A bare name would be looked for on the PATH.
    return str(short) if len(short.parts) != 1 else f".{os.sep}{short}"
