"""A command on a terminal of its own, and what a person would see there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import LIMIT

_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass
class Screen:
    """What was written so far, colours and all."""

    process: subprocess.Popen[bytes]
    end: int
    raw: str = ""
    is_over: bool = False
    pending: bytes = field(default=b"")

    @property
    def text(self) -> str:
        """Without colours and carriage returns."""
        return _CODES.sub("", self.raw).replace("\r\n", "\n")

    def until(self, wanted: str) -> str:
        """Wait until this is on the screen."""
        deadline = time.monotonic() + LIMIT
        while wanted not in self.text:
            assert not self.is_over, self.text
            assert time.monotonic() < deadline, self.text
            self._read(0.2)
        return self.text

    def type(self, text: str) -> None:
        """What a person types."""
        os.write(self.end, text.encode())

    def finish(self) -> tuple[int, str]:
        """Wait for the end: the exit code, and the screen."""
        deadline = time.monotonic() + LIMIT
        while not self.is_over:
            assert time.monotonic() < deadline, self.text
            self._read(0.2)
        return self.process.wait(LIMIT), self.text

    def _read(self, limit: float) -> None:
        if not select.select([self.end], [], [], limit)[0]:
            self.is_over = self.process.poll() is not None
            return
        try:
            piece = os.read(self.end, 65536)
        except OSError:
            # The other end is closed.
            piece = b""
        self.is_over = not piece
        self.pending += piece
        with contextlib.suppress(UnicodeDecodeError):
            self.raw, self.pending = self.raw + self.pending.decode(), b""


@contextlib.contextmanager
def on_screen(
    command: Sequence[str],
    columns: int = 80,
    lines: int = 40,
    cwd: Path | None = None,
    stdout: int | None = None,
    **env: str,
) -> Generator[Screen]:
    """Run a command on a terminal so wide, where its output may go elsewhere; it ends with the `with` statement."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES", "NO_COLOR"}}
    process = subprocess.Popen(
        list(command),
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color", **env},
        cwd=cwd,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Screen(process, ours)
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            os.close(ours)


def run_on_screen(command: Sequence[str], answers: Mapping[str, str] | None = None, **options: Any) -> tuple[int, str]:
    """Run a command to its end, and answer each question when it stands there: its exit code, and the screen."""
    with on_screen(command, **options) as screen:
        for question, answer in (answers or {}).items():
            screen.until(question)
            screen.type(f"{answer}\n")
        return screen.finish()
