"""Health of a database: whether its last piece of work failed, and whether it works again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from pegboard.log import logger
from pegboard.storage.database import PATIENCE, Database, DatabaseConnection, StorageError

T = TypeVar("T")
PROBE_SECONDS = 5.0
# A disk that is full may still have room for a page.
_PROBE_SIZE = 64 * 1024


class MonitoredDatabase:
    """Does the work of another database and watches it fail. While that is broken, a write is tried now and then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_open = False
        self._probing: asyncio.Task[None] | None = None
        # Why it is broken; None while it works.
        self.problem: str | None = None

    @property
    def name(self) -> str:
        """The other one's."""
        return self._database.name

    async def open(self) -> None:
        """Open the other one."""
        await self._database.open()
        self._is_open = True

    async def close(self) -> None:
        """Stop watching, and close the other one."""
        self._is_open = False
        if self._probing is not None:
            self._probing.cancel()
            with suppress(asyncio.CancelledError):
                await self._probing
        await self._database.close()

    async def empty_log(self) -> None:
        """Leave nothing of what was deleted in a log."""
        await self._watch(self._database.empty_log())

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """What this work finds. That it succeeds does not say that anything can be written."""
        return await self._watch(self._database.read(work))

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """What this work gives, with all it changed."""
        result = await self._watch(self._database.write(work, patience), patience)
        self.problem = None
        return result

    async def _watch(self, work: Awaitable[T], patience: float = PATIENCE) -> T:
        try:
            return await work
        except StorageError as exc:
            # Whoever had no time to wait for others does not know whether the storage is broken.
            if self._is_open and not (exc.is_busy and patience < PATIENCE):
                self._fail(exc)
            raise

    def _fail(self, exc: StorageError) -> None:
        if self.problem != exc.reason:
            logger().warning("storage.failed", reason=str(exc))
        self.problem = exc.reason
        if self._probing is None or self._probing.done():
            self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while self.problem is not None:
            await asyncio.sleep(PROBE_SECONDS)
            with suppress(StorageError):
                await self.write(_fill)
                await self.write(_empty)
        logger().info("storage.recovered")


def _fill(db: DatabaseConnection) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS pegboard_probe (content TEXT)")
    db.execute("INSERT INTO pegboard_probe VALUES (?)", "x" * _PROBE_SIZE)


def _empty(db: DatabaseConnection) -> None:
    db.execute("DROP TABLE IF EXISTS pegboard_probe")
