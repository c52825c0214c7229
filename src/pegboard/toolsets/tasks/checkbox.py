"""Ticking a box: one byte of a file changed, all or nothing, and never over somebody else's change."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from pegboard.result import Conflict, ToolErrorCode, ToolFailure, unavailable
from pegboard.toolsets.tasks.folder import Folder, Unreadable
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.tasks.taskfile import Item, TaskFile, parse, with_box

# Seconds to wait for others that change the same file, and between two tries.
_PATIENCE, _PAUSE = 10.0, 0.01


def set_box(folder: Folder, path: Path, task: TaskId, seen: Item, *, ticked: bool) -> TaskFile:
    """Make the box of a task ticked or empty, if its line still says what was seen; gives the file as it is then."""
    try:
        # A link stays a link: what it leads to is changed, and that is inside of the folder.
        target = path.resolve()
        with _alone_with(target, task):
            return _set(folder, path, target, task, seen, ticked=ticked)
    except Unreadable as exc:
        raise Conflict(f"{task} was not changed: {exc}") from None
    except (OSError, RuntimeError) as exc:
        why = (exc.strerror if isinstance(exc, OSError) else None) or exc
        what = f"{task} was not changed: {_display_path(path)} cannot be written: {why}"
        raise ToolFailure(ToolErrorCode.EXECUTION_FAILED, what, retryable=False) from None


def _set(folder: Folder, path: Path, target: Path, task: TaskId, seen: Item, *, ticked: bool) -> TaskFile:
    before = folder.bytes(path)
    if not folder.within(target):
        # A link that was turned around just now: what was read is not what would be written.
        raise Unreadable(f"{path.name} is a link that leads out of the folder")
    file = parse(before or b"", task.change)
    item = file.item(task.number)
    if before is None or item is None or item.content != seen.content:
        raise _conflict(path, task)
    if item.ticked == ticked:
        return file
    _check_writable(target)
    after = with_box(before, file.codec, item, ticked=ticked)
    if not _put(target, before, after):
        raise _conflict(path, task)
    return parse(after, task.change)


def _put(target: Path, before: bytes, after: bytes) -> bool:
    """Put other bytes in a file's place, unless it has changed meanwhile."""
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        _dress(Path(draft), target)
        # An editor takes no lock, so the last look is just before the end.
        if target.read_bytes() != before:
            return False
        Path(draft).replace(target)
    finally:
        Path(draft).unlink(missing_ok=True)
    _settle(target.parent)
    return True


def _check_writable(target: Path) -> None:
    """Another file could take the place of one that is write-protected, but that is not what its owner wants."""
    if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")


def _dress(draft: Path, target: Path) -> None:
    """The draft gets what else belongs to the file: owner and group as far as we may, other attributes, mode."""
    found = target.stat()
    if sys.platform != "win32":
        for uid, gid in ((found.st_uid, -1), (-1, found.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(draft, uid, gid)
    # The mode comes after the owner, whose change takes some bits away.
    shutil.copystat(target, draft)
    os.utime(draft)


def _settle(folder: Path) -> None:
    """That the file has another name by now should survive a crash of the machine, too."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _alone_with(path: Path, task: TaskId) -> Generator[None]:
    """Of two Pegboards that tick boxes of the same file, one waits: neither's tick is lost."""
    if sys.platform == "win32":
        yield
        return
    # The folder and not the file, which is another one after each change.
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        give_up = time.monotonic() + _PATIENCE
        while not _try_lock(handle):
            # Whoever holds it may be stuck, and this thread is one of few.
            if time.monotonic() >= give_up:
                raise unavailable(f"{task} was not changed: another program holds {_display_path(path)}; try again")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Not every file system knows locks; there the last look has to do.
        return True
    return True


def _display_path(path: Path) -> str:
    """Which file, without where on this machine it is: whoever asks may be on another."""
    return f"{path.parent.name}/{path.name}"


def _conflict(path: Path, task: TaskId) -> Conflict:
    what = f"{task} was not changed: {_display_path(path)} has changed since it was read"
    return Conflict(f"{what}; registry_sync and registry_list show how it is")
