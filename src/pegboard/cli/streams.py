"""The streams that commands write to: whoever reads them may be gone, or never was there."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


class Output(io.TextIOWrapper):
    """A text stream that goes on in silence when nobody reads it any more: `pegboard tools | head -1`."""

    def write(self, text: str) -> int:
        """Write, or drop, a text."""
        try:
            return super().write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        """Write, or drop, what is still in the buffer."""
        try:
            super().flush()
        except BrokenPipeError:
            self._drop()
            super().flush()

    def _drop(self) -> None:
        """From now on, and with what the buffer holds, into nothing."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self.fileno())
        os.close(nothing)


def prepare_streams() -> None:
    """Let no command end in the middle because of what it says: by a reader that is gone, a stream that was closed from
    the start (`>&-`), or, in cp1252 for instance, a letter that cannot be written, which is shown as `?`."""
    _fill_descriptors()
    # Python has none where the descriptor was closed.
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)))
    sys.stdout = _output(sys.stdout, 1)
    sys.stderr = _output(sys.stderr, 2)


def _fill_descriptors() -> None:
    """The first file that is opened while one of these is closed would get its number, and what is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)


def _output(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return Output(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8", "replace")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return Output(
        stream.buffer,
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
