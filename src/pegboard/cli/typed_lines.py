"""Lines that a person types or pastes at the terminal while something else is waited for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Generator

_ERASE = frozenset("\x7f\b")
_ERASE_LINE = "\x15"
# No address is longer.
_LONGEST = 64 * 1024


@contextlib.contextmanager
def hear_lines(on_line: Callable[[str], None]) -> Generator[None]:
    """Have each line told, from a thread of its own, for as long as the block runs."""
    with _whole_lines():
        # The descriptor itself is read: a buffered stream that a thread waits at cannot be closed at the end.
        threading.Thread(target=_read, args=(sys.stdin.fileno(), on_line), name="typed-lines", daemon=True).start()
        yield


def _read(descriptor: int, on_line: Callable[[str], None]) -> None:
    text = ""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            return
        if not piece:
            return
        for letter in piece.decode("utf-8", "replace"):
            if letter in "\r\n":
                on_line(text)
                text = ""
            elif letter in _ERASE:
                text = text[:-1]
                print("\b \b", end="", file=sys.stderr, flush=True)
            elif letter == _ERASE_LINE:
                print("\b \b" * len(text), end="", file=sys.stderr, flush=True)
                text = ""
            elif len(text) < _LONGEST:
                text += letter


@contextlib.contextmanager
def _whole_lines() -> Generator[None]:
    """A terminal that edits lines itself cuts them: macOS at 1,024 letters, Linux at 4,096. Addresses of sign-ins may
    be longer, so that we take letters as they come. What is typed is shown as before, and Ctrl-C is what it was."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    changed = termios.tcgetattr(descriptor)
    # Without the last one, the end of a line would be shown as ^J.
    changed[3] &= ~(termios.ICANON | termios.ECHOCTL)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
