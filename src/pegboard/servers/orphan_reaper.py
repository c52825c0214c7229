"""The orphan reaper: a tiny process that outlives Pegboard by a moment and ends the servers it left behind.

Pegboard stops its servers itself. But nothing can be done inside a process that is killed outright, so
the reaper holds one end of a pipe and, when the other end goes away without a farewell, ends what it was told of.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

# Every process that a server starts inherits this, wherever it goes.
MARKER = "PEGBOARD_PROCESS"


class OrphanReaper:
    """Pegboard's side: starts the reaper with the first process, tells it of each, and says farewell."""

    def __init__(self) -> None:
        # Here, since this file is a program as well, which has no use for it.
        import asyncio

        self._process: subprocess.Popen[bytes] | None = None
        # Whoever starts a process takes it: one at a time.
        self.turn = asyncio.Lock()

    def start(self) -> None:
        """Have a reaper running; on Windows there is none, since there are no process groups."""
        if self._process is not None or sys.platform == "win32":
            return
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, pid: int, marker: str) -> None:
        """This group is to be ended if Pegboard dies."""
        self._tell(f"+{pid} {marker}\n")

    def forget(self, pid: int) -> None:
        """This group has been ended."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """All is tidy: the reaper may go."""
        if self._process is None:
            return
        self._tell("bye\n")
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=3)
        self._process = None

    def _tell(self, word: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(word.encode())
                self._process.stdin.flush()


def _reap() -> None:
    groups: dict[int, str] = {}
    # Read line by line from the descriptor itself: a word must not wait in a buffer.
    for line in sys.stdin:
        word = line.strip()
        if word == "bye":
            return
        if word.startswith("+"):
            pid, _, marker = word[1:].partition(" ")
            groups[int(pid)] = marker
        elif word.startswith("-"):
            groups.pop(int(word[1:]), None)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in groups:
            with contextlib.suppress(OSError):
                os.killpg(pid, number)
        for pid in find_marked_processes(groups.values()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        time.sleep(1.0 if number == signal.SIGTERM else 0)


def find_marked_processes(markers: Collection[str]) -> list[int]:
    """The processes that carry one of these marks in their environment; told by Linux alone."""
    wanted = [f"{MARKER}={marker}".encode() for marker in markers]
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if any(mark in environment for mark in wanted):
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    _reap()
