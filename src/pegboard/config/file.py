"""Reads the bytes of a config file: a bounded number, since the file may be anybody's."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 4 * 2**20


def read_file(path: Path, *, is_found: bool = False, most: int = MAX_BYTES) -> bytes:
    """All of a config file; raises `OSError` if it is too large.

    One that was found, and not named by anybody, has to be an ordinary file: a pipe would let us wait for ever.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | (getattr(os, "O_NONBLOCK", 0) if is_found else 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if is_found and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes")
    return content
