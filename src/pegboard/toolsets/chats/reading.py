"""How a file is read that somebody else may be writing: once whole, then on from where the last good line ended."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import BinaryIO, Protocol

from pegboard import exactjson
from pegboard.toolsets.chats.fields import parse_json
from pegboard.toolsets.chats.session import Chat

# Beyond this a file is no chat that anybody could have had.
MOST_BYTES = 1 << 30
# Where each line stands for itself: an answer, or the output of a tool, is far below this.
LONGEST_LINE = 8 << 20
# What has to be in memory as a whole: a document, or a line without which the others mean nothing.
LARGEST_WHOLE = 256 << 20
_WITNESS = 4096
_MOST_KEPT = (1 << 63) - 1


class BrokenLine(ValueError):  # noqa: N818  it names the line
    """A line that cannot be understood; the message says why, without its text."""


class UnreadableChat(ValueError):  # noqa: N818  it names the file
    """A file that holds no chat, or whose chat cannot be read; the message says why, without its text."""


class LineParser(Protocol):
    """Makes sense of a file line by line."""

    # Whether a line means nothing without those before it.
    chained: bool

    def take(self, line: bytes) -> None:
        """One line; `BrokenLine`, and nothing changed, if it cannot be understood."""
        ...

    def chat(self) -> Chat:
        """What the lines so far say; `Unreadable` if that is no chat."""
        ...


class Reading(Protocol):
    """A file on its way to a chat."""

    # Whether it can be read on at all, once it has grown.
    grows: bool

    def goes_on(self, stream: BinaryIO, size: int) -> bool:
        """Whether a file that has changed since can be read on, instead of from its beginning."""
        ...

    def read(self, stream: BinaryIO) -> Chat:
        """Read what there is to read; `Unreadable` or `OSError` if that cannot be."""
        ...


class LineReading:
    """A file of lines, to which lines are added."""

    grows = True

    def __init__(self, lines: LineParser) -> None:
        self._lines = lines
        # Where the last line ended that was taken, and how the file looked up to there.
        self._offset = 0
        self._witness = b""
        self._problem: str | None = None
        # How many lines were too long to be read.
        self._skipped = 0

    def goes_on(self, stream: BinaryIO, size: int) -> bool:
        """A file that was cut or written anew ends or looks different where we stopped, or at its beginning."""
        return size >= self._offset > 0 and self._look(stream) == self._witness

    def read(self, stream: BinaryIO) -> Chat:
        """Take every line that is new. The last one, if it is broken, is one that is still being written."""
        if self._lines.chained:
            # What stopped the last pass is met again, or was only half there then.
            self._problem = None
        self._take_new(stream)
        self._witness = self._look(stream)
        chat = self._lines.chat()
        problems = [self._problem] if self._problem is not None else []
        if self._skipped:
            problems.append(f"lines of more than {LONGEST_LINE:,} bytes that were skipped: {self._skipped}")
        return replace(chat, problem="; ".join(problems)) if problems else chat

    def _take_new(self, stream: BinaryIO) -> None:
        broken = None
        longest = LARGEST_WHOLE if self._lines.chained else LONGEST_LINE
        for line, end in _new_lines(stream, self._offset, longest):
            if broken is not None:
                # It was not the last one: nobody is still writing it.
                self._problem, broken = broken, None
                if self._lines.chained:
                    return
            if line is None:
                if self._lines.chained:
                    self._stop_at(end, longest)
                    return
                self._skipped += 1
                self._offset = end
                continue
            try:
                self._lines.take(line)
            except BrokenLine as exc:
                broken = f"the line that ends at byte {end} is broken: {exc}"
            else:
                self._offset = end

    def _stop_at(self, end: int, longest: int) -> None:
        """Without this line those behind it mean nothing; what stands before it is still a chat."""
        self._problem = f"the line that ends at byte {end} has more than {longest:,} bytes"
        if not self._offset:
            raise UnreadableChat(self._problem)

    def _look(self, stream: BinaryIO) -> bytes:
        digest = blake2b(self._offset.to_bytes(8, "little"), digest_size=16)
        stream.seek(0)
        digest.update(stream.read(min(_WITNESS, self._offset)))
        stream.seek(max(self._offset - _WITNESS, 0))
        digest.update(stream.read(min(_WITNESS, self._offset)))
        return digest.digest()


def _new_lines(stream: BinaryIO, at: int, longest: int) -> Iterator[tuple[bytes | None, int]]:
    """Each line from there on that says something, and where it ends; `None` for one that is too long."""
    stream.seek(at)
    while line := stream.readline(longest):
        at += len(line)
        if len(line) == longest and not line.endswith(b"\n"):
            while (rest := stream.readline(longest)) and not rest.endswith(b"\n"):
                at += len(rest)
            if rest:
                at += len(rest)
                yield None, at
            continue
        if line.strip(b" \t\r\n\0"):
            yield line, at
        if not line.endswith(b"\n"):
            # Here the file ended: what somebody writes from now on is the rest of this line, and no line.
            return


class WholeReading:
    """A file that is one JSON document, written anew with each change."""

    grows = False

    def __init__(self, chat_of: Callable[[object], Chat]) -> None:
        self._chat_of = chat_of

    def goes_on(self, stream: BinaryIO, size: int) -> bool:
        """Never: nothing of it stays in its place."""
        del stream, size
        return False

    def read(self, stream: BinaryIO) -> Chat:
        """Read all of it."""
        stream.seek(0)
        data = stream.read(LARGEST_WHOLE + 1)
        if len(data) > LARGEST_WHOLE:
            raise UnreadableChat(
                f"it has more than {LARGEST_WHOLE:,} bytes, the most for a chat that is one JSON document"
            )
        try:
            return self._chat_of(parse_json(data))
        except exactjson.NotJson:
            raise UnreadableChat("it is no JSON") from None


@dataclass(frozen=True, slots=True)
class ChatFileStamp:
    """How a file looked: what has the same stamp has not changed."""

    size: int
    # When it was written, in nanoseconds.
    changed: int
    # Which file it is, and when anything about it changed: another one with the same size and time is told by these.
    inode: int = 0
    touched: int = 0

    @classmethod
    def of(cls, found: os.stat_result) -> ChatFileStamp:
        """The stamp of a file."""
        size, changed = found.st_size, _clamp(found.st_mtime_ns)
        if os.name == "nt":
            # There a folder does not tell which file an entry is, and the other time is that of its making.
            return cls(size, changed)
        return cls(size, changed, _clamp(found.st_ino), _clamp(found.st_ctime_ns))


# No file looks like this: what is known with this stamp is read again.
NEVER = ChatFileStamp(-1, -1)


def _clamp(number: int) -> int:
    """A number that any database can keep: a file's time may lie anywhere, and its number has 64 bits."""
    return max(-_MOST_KEPT, min(number, _MOST_KEPT))


def open_to_read(path: str) -> BinaryIO:
    """An ordinary file, opened in a way that waits for nobody and changes nothing."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableChat("it is no file")
        if found.st_size > MOST_BYTES:
            raise UnreadableChat(f"it has {found.st_size:,} bytes, {MOST_BYTES:,} is the most")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
