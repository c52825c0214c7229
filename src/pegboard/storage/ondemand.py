"""A database that is opened when somebody needs it, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pegboard.storage.database import PATIENCE, Database, DatabaseConnection

T = TypeVar("T")


class OnDemand:
    """Opens another one with the first piece of work; if that fails, the next one tries again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_open = False
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """The other one's."""
        return self._database.name

    async def open(self) -> None:
        """Open it now."""
        async with self._opening:
            if not self._is_open:
                await self._database.open()
                self._is_open = True

    async def close(self) -> None:
        """Close it, if it was ever opened; it can be opened again."""
        async with self._opening:
            if self._is_open:
                self._is_open = False
                await self._database.close()

    async def empty_log(self) -> None:
        """Leave nothing of what was deleted in a log."""
        if self._is_open:
            await self._database.empty_log()

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """What this work finds."""
        if not self._is_open:
            await self.open()
        return await self._database.read(work)

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """What this work gives, with all it changed."""
        if not self._is_open:
            await self.open()
        return await self._database.write(work, patience)
