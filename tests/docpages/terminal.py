"""A terminal with a program on it, and what a person sees there: colours, lines that are written over, questions."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte
from rich.text import Text

COLUMNS = 80
# Higher than anything that is shown: nothing scrolls away.
LINES = 400
LIMIT = 90.0
QUESTION = re.compile(r"\[[yY]/[nN]\]:? ?$")


class Terminal:
    """A program on a terminal of its own. Questions with `[y/N]` are answered with yes."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path, columns: int = COLUMNS) -> None:
        self.screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        self.process = subprocess.Popen(
            list(command), stdin=theirs, stdout=theirs, stderr=theirs, env=dict(env), cwd=cwd, start_new_session=True
        )
        os.close(theirs)
        self._answered = -1

    @property
    def text(self) -> str:
        """What stands there now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def run(self) -> str:
        """What stands there when the program has ended."""
        deadline = time.monotonic() + LIMIT
        while self._read(0.2):
            self._answer()
            assert time.monotonic() < deadline, self.text
        self.process.wait(LIMIT)
        self.close()
        return self.text

    def wait_for(self, wanted: str, quiet: float = 1.0) -> str:
        """What stands there once these words do, and nothing more comes for a moment."""
        deadline = time.monotonic() + LIMIT
        while wanted not in self.text or self._is_readable(quiet):
            assert self._read(0.2), self.text
            assert time.monotonic() < deadline, self.text
        return self.text

    def drain(self) -> None:
        """Take what has come since."""
        while self.process.poll() is None and self._is_readable(0.5):
            self._read(0)

    def close(self) -> None:
        """End the program, as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        with contextlib.suppress(OSError):
            os.close(self._ours)

    def styled(self) -> Text:
        """What stands there, with its colours."""
        rows = self.text.count("\n") + 1
        return Text("\n").join(self._row(row) for row in range(rows))

    def _row(self, row: int) -> Text:
        line = Text()
        for column in range(self.screen.columns):
            cell = self.screen.buffer[row][column]
            line.append(cell.data, style=_style(cell))
        line.rstrip()
        return line

    def _answer(self) -> None:
        line = self.screen.cursor.y
        if line != self._answered and QUESTION.search(self.screen.display[line].rstrip() + " "):
            self._answered = line
            os.write(self._ours, b"y\n")

    def _is_readable(self, limit: float) -> bool:
        return bool(select.select([self._ours], [], [], limit)[0])

    def _read(self, limit: float) -> bool:
        """Take what came; false when nothing more can come."""
        if not self._is_readable(limit):
            return self.process.poll() is None
        try:
            piece = os.read(self._ours, 65536)
        except OSError:
            # The other end is closed.
            return False
        self._stream.feed(piece)
        return bool(piece)


def _style(cell: pyte.screens.Char) -> str:
    words = [name for name in ("bold", "italics", "underscore") if getattr(cell, name)]
    named = {"italics": "italic", "underscore": "underline"}
    colour = str({"brown": "yellow", "brightbrown": "bright_yellow"}.get(cell.fg, cell.fg))
    if colour != "default":
        colour = f"#{colour}" if re.fullmatch(r"[0-9a-f]{6}", colour) else re.sub(r"^bright(?!_)", "bright_", colour)
        words.append(colour)
    return " ".join(named.get(word, word) for word in words)
