"""The index of chats: a file of its own beside everything else that is kept.

It can be made again from the chats at any time, and it holds what people said: so it stays on the machine whose chats
they are, also where memories and boards are on a PostgreSQL that others share, what is deleted there is overwritten,
and a damaged one is put aside.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

from pegboard.config import state_folder
from pegboard.log import logger
from pegboard.storage import OnDemand, SqliteDatabase
from pegboard.storage.database import PATIENCE, DatabaseConnection, StorageError
from pegboard.toolsets.chats.schema import STEPS

T = TypeVar("T")
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def chat_index() -> OnDemand:
    """The index in the user's state folder; nothing is opened before somebody asks for a chat."""
    return OnDemand(ChatIndex(state_folder() / "chats.db"))


class ChatIndex:
    """The index in a file. If that is damaged or something else, it is put aside, and another one is begun."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._new()
        # Which file was opened: another process may have put it aside, and begun another one.
        self._inode: int | None = None
        self._beginning = asyncio.Lock()

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    async def open(self) -> None:
        """Open the file, or a new one in its place."""
        self._inode = _inode_of(self._path)
        file = self._file
        try:
            await file.open()
        except StorageError as exc:
            if not _is_damage(exc):
                logger().warning("chats.index.failed", reason=str(exc))
                raise
            await self._begin_anew(file)
        self._inode = _inode_of(self._path)

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()

    async def empty_log(self) -> None:
        """Leave nothing of what was deleted in the log."""
        await self._file.empty_log()

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """What this work finds."""
        return await self._run(lambda file: file.read(work))

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """What this work gives, with all it changed."""
        return await self._run(lambda file: file.write(work, patience))

    async def _run(self, work: Callable[[SqliteDatabase], Awaitable[T]]) -> T:
        file = self._file
        try:
            return await work(file)
        except StorageError as exc:
            if not _is_damage(exc):
                logger().warning("chats.index.failed", reason=str(exc))
                raise
            await self._begin_anew(file)
            reason = "was damaged and is made again"
            raise StorageError(f"{self._path} {reason}", "try again", reason=f"the index of chats {reason}") from exc

    async def _begin_anew(self, damaged: SqliteDatabase) -> None:
        async with self._beginning:
            if self._file is not damaged:
                # Another call met the same damage.
                return
            await damaged.close()
            if _inode_of(self._path) == self._inode:
                _put_aside(self._path)
            self._file = self._new()
            await self._file.open()
            self._inode = _inode_of(self._path)

    def _new(self) -> SqliteDatabase:
        return SqliteDatabase(self._path, STEPS, wipes=True)


def _is_damage(exc: StorageError) -> bool:
    # The upper bits say which kind of damage it is.
    return (getattr(exc.__cause__, "sqlite_errorcode", None) or 0) & 0xFF in _DAMAGE


def _put_aside(path: Path) -> None:
    aside = next(name for at in count(1) if not (name := path.with_name(f"{path.name}.damaged-{at}")).exists())
    logger().warning("chats.index.damaged", path=str(path), movedTo=str(aside))
    try:
        path.replace(aside)
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
    except OSError as exc:
        reason = "is damaged, and cannot be moved away"
        problem = f"{path} {reason}: {exc}"
        raise StorageError(problem, "delete it", reason=f"the index of chats {reason}") from exc


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
