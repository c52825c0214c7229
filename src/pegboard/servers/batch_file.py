"""Batch files as commands, on Windows: `npx` is `npx.cmd` there, which `cmd.exe` runs, and that reads arguments anew.

A `&` in an argument would begin another command. So `npx` and `npm` are started without the batch file, and for any
other one such arguments are refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

from pegboard.result import invalid

_BATCH = frozenset({".cmd", ".bat"})
_NPM = frozenset({"npx", "npm"})
# What cmd.exe reads as its own, quotes or not.
_SPECIAL = frozenset('"%&|<>^\r\n')


def without_cmd(
    program: str,
    args: tuple[str, ...],
    path: str | None,
    exists: Callable[[str], bool] = lambda file: Path(file).is_file(),
) -> tuple[str, tuple[str, ...]]:
    """The command that does what a batch file would do, with no `cmd.exe` in between where there is a way."""
    file = PureWindowsPath(program)
    if file.suffix.lower() not in _BATCH:
        return program, args
    script = str(file.parent / "node_modules" / "npm" / "bin" / f"{file.stem.lower()}-cli.js")
    node = str(file.parent / "node.exe")
    if file.stem.lower() in _NPM and exists(script):
        return (node if exists(node) else shutil.which("node", path=path) or "node"), (script, *args)
    for place, arg in enumerate(args, 1):
        if _SPECIAL & set(arg):
            # The argument itself may be secret.
            raise invalid(
                f'argument {place} of {file.name} has a character that cmd.exe reads as its own: " % & | < > ^'
            )
    return program, args
