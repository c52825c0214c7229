"""An OpenSpec folder: its changes and specs, each file read once and again when it has changed.

Nothing outside of the folder is ever opened: a symbolic link that leads out of it is as good as no file.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pegboard.toolsets.tasks.markdown import headings, one_ending, plain_lines
from pegboard.toolsets.tasks.taskfile import TaskFile, decode_text, parse

MAX_FILE = 2_000_000
ARCHIVE, TASKS, PROPOSAL, SPEC = "archive", "tasks.md", "proposal.md", "spec.md"
# A file that was written so shortly before it was read may have been written again within the same tick of its clock.
_TICK = 100_000_000
_PREFIXES = ("change:", "proposal:", "change proposal:")

T = TypeVar("T")


class Stamp(NamedTuple):
    """What is another one when a file has changed, save for a change within one tick of the clock."""

    inode: int
    size: int
    modified: int
    changed: int


@dataclass(slots=True)
class _Kept(Generic[T]):
    stamp: Stamp
    read_at: int
    digest: bytes
    value: T


@dataclass(slots=True)
class Change:
    """A change as its folder has it."""

    id: str
    path: Path
    title: str
    tasks: TaskFile | None


@dataclass(slots=True)
class Contents:
    """The changes of a folder by id, and what there could not be read: the path and the reason."""

    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def unread(self) -> dict[str, str]:
        """The changes that are there but could not be read, by their ids, with the reason."""
        return {path.partition("/")[2]: reason for path, reason in self.problems}


class Unreadable(Exception):  # noqa: N818  it says what the file is
    """A file that is there but is not read; the message says why."""


class Folder:
    """One OpenSpec folder, by its resolved path. Used by one thread at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kept: dict[str, _Kept[object]] = {}

    def contents(self) -> Contents:
        """Every change, by its id."""
        found = Contents()
        for name in self.names("changes"):
            if name == ARCHIVE:
                continue
            path = self.root / "changes" / name
            try:
                tasks = self._read(path / TASKS, lambda data, change=name: parse(data, change))
                title = self._read(path / PROPOSAL, _title)
            except Unreadable as exc:
                found.problems.append((f"changes/{name}", str(exc)))
                continue
            found.changes[name] = Change(name, path, title or name, tasks)
        return found

    def names(self, kind: str) -> list[str]:
        """The folders in `changes`, `specs` or deeper, by name."""
        if not self.within(self.root / kind):
            return []
        try:
            with os.scandir(self.root / kind) as entries:
                found = [entry.name for entry in entries if self._is_own_folder(entry)]
        except OSError:
            return []
        return sorted(found)

    def text(self, path: Path) -> str | None:
        """A file's text; `None` where there is none, `Unreadable` where there is one that is not read."""
        if not self.within(path):
            raise Unreadable(f"{path.name} is behind a link that leads out of the folder")
        return self._read(path, decode_text)

    def bytes(self, path: Path) -> bytes | None:
        """A file as it is now, whatever is kept of it."""
        stamp = self._stamp(path)
        return None if stamp is None else path.read_bytes()

    def files(self, path: Path) -> list[tuple[str, int]]:
        """The Markdown files below a folder, with their sizes, by path."""
        found: list[tuple[str, int]] = []
        for place, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                file = Path(place, name)
                if name.endswith(".md") and (size := self._size(file)) is not None:
                    found.append((file.relative_to(path).as_posix(), size))
        return sorted(found)

    def within(self, path: Path) -> bool:
        """Whether a path is inside of the folder, wherever its links lead."""
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _size(self, path: Path) -> int | None:
        try:
            stamp = self._stamp(path)
        except Unreadable:
            return None
        return None if stamp is None else stamp.size

    def _is_own_folder(self, entry: os.DirEntry[str]) -> bool:
        if entry.name.startswith(".") or not _can_be_said(entry.name):
            return False
        return self.within(Path(entry.path)) and entry.is_dir() if entry.is_symlink() else entry.is_dir()

    def _read(self, path: Path, make: Callable[[bytes], T]) -> T | None:
        stamp = self._stamp(path)
        key = str(path)
        if stamp is None:
            self._kept.pop(key, None)
            return None
        kept: _Kept[T] | None = self._kept.get(key)  # pyright: ignore[reportAssignmentType]
        if kept is not None and kept.stamp == stamp and stamp.modified + _TICK < kept.read_at:
            return kept.value
        read_at = time.time_ns()
        try:
            data = path.read_bytes()
        except OSError as exc:
            raise Unreadable(f"{path.name} cannot be read: {exc.strerror or exc}") from None
        digest = blake2b(data, digest_size=16).digest()
        # The same bytes are the same value: whatever was worked out from it still holds.
        value = kept.value if kept is not None and kept.digest == digest else make(data)
        self._kept[key] = _Kept(stamp, read_at, digest, value)  # pyright: ignore[reportArgumentType]
        return value

    def _stamp(self, path: Path) -> Stamp | None:
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                if not self.within(path):
                    raise Unreadable(f"{path.name} is a link that leads out of the folder")
                found = path.stat()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise Unreadable(f"{path.name} cannot be read: {exc.strerror or exc}") from None
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path.name} is not a file")
        if found.st_size > MAX_FILE:
            raise Unreadable(f"{path.name} has {found.st_size:,} bytes, {MAX_FILE:,} is the most")
        return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _title(data: bytes) -> str:
    lines = plain_lines(one_ending(decode_text(data))).plain
    title = next((heading.title for heading in headings(lines) if heading.level == 1), "")
    prefix = next((prefix for prefix in _PREFIXES if title.lower().startswith(prefix)), "")
    return title[len(prefix) :].strip()[:200]


def _can_be_said(name: str) -> bool:
    """A name that is no text, or holds a control character, can be nobody's id."""
    return (name.isprintable() and name.isascii()) or _is_text(name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.isprintable()
