"""Backups: what a config file said before Pegboard changed much of it at once, kept in the state folder."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from pegboard.config.locate import state_folder


def keep_backup(content: bytes, suffix: str = ".json") -> Path:
    """Write the content to a new file that only its owner can read; raises `OSError`."""
    folder = state_folder() / "backups" / "pegboard"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    for number in count():
        path = folder / f"{moment}{f'-{number}' if number else ''}{suffix}"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return path
    raise AssertionError
