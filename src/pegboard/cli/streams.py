"""The streams that commands write to: whoever reads them may be gone, or never was there."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO, cast


class Output(io.TextIOWrapper):
    """A text stream that goes on in silence when nobody reads it any more: `pegboard tools | head -1`. Where it cannot
    be written for another reason, as a full disk, that is said once."""

    has_failed = False

    def write(self, text: str) -> int:
        """Write, or drop, a text."""
        try:
            return super().write(text)
        except OSError as exc:
            self._drop(exc)
            return len(text)

    def flush(self) -> None:
        """Write, or drop, what is still in the buffer."""
        try:
            super().flush()
        except OSError as exc:
            self._drop(exc)
            super().flush()

    def _drop(self, reason: OSError) -> None:
        """From now on, and with what the buffer holds, into nothing."""
        if not isinstance(reason, BrokenPipeError) and self is not sys.stderr:
            self.has_failed = True
            print(f"pegboard: the output cannot be written: {reason.strerror or reason}", file=sys.stderr, flush=True)
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


def output_failed() -> bool:
    """Whether something that was printed is lost, though somebody wanted it; what the buffer holds is written first."""
    sys.stdout.flush()
    return isinstance(sys.stdout, Output) and sys.stdout.has_failed


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
        cast("TextIO", stream).buffer,
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
