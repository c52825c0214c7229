"""A lock around the change of a file: of two processes of ours that change the same one, one waits."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TextIO

from pegboard.config.locate import identity, state_folder


@contextlib.contextmanager
def alone_with(path: Path) -> Generator[None]:
    """Be the only one of our processes that changes this file; `OSError` or `RuntimeError` if there can be no lock."""
    if sys.platform == "win32":
        yield
        return
    # A path that leads in a circle has no identity to lock.
    lock = state_folder() / "run" / f"{identity(path)}.lock"
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _acquire(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _acquire(lock: Path) -> TextIO:
    """The lock file, held. Whoever held it before took it away: what we waited for may be another file by now."""
    import fcntl

    while True:
        handle = lock.open("w")
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle.fileno()), lock.stat()):
                return handle
        handle.close()
