"""What somebody typed for a server, and what they meant: an address without its scheme, a command in quotes."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

# A host with a port or a path: `server.py` alone is a file.
_HOST = r"(?:localhost|(?:\d{1,3}\.){3}\d{1,3}|(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})"
_ADDRESS = re.compile(rf"{_HOST}(?::\d+(?:/\S*)?|/\S*)")
_NEAR = re.compile(r"localhost|\d")


def missing_scheme(words: Sequence[str]) -> str | None:
    """The whole address, if the one word can only be an address that lacks its scheme."""
    if len(words) != 1 or not _ADDRESS.fullmatch(words[0]) or is_program(words[0]):
        return None
    return f"{'http' if _NEAR.match(words[0]) else 'https'}://{words[0]}"


def split_command(words: Sequence[str]) -> list[str]:
    """The words of a command; one in quotes as a whole is split. Raises `ValueError` at an open quote."""
    if len(words) != 1 or not re.search(r"\s", words[0].strip()) or "\\" in words[0] or is_program(words[0]):
        return list(words)
    return shlex.split(words[0])


def is_program(word: str) -> bool:
    """Whether a word can be started: a file, or a command of the PATH."""
    return Path(word).exists() or shutil.which(word) is not None
