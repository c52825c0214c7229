"""Follows the pins in storage, so that what is decided at one gateway holds at every other one a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pegboard.log import logger
from pegboard.pins.pins import Pins
from pegboard.storage.database import StorageError
from pegboard.task_set import TaskSet

_LOOK_EVERY = 0.5
# How long one server may take, and after how long one that took longer, or failed, is tried again.
_LONGEST, _AGAIN_AFTER = 60.0, 10.0


class PinWatch:
    """Looks again and again. Where storage is away, what is known stays in force. A server at which it takes long, or
    fails, keeps nothing of others back."""

    def __init__(self, pins: Pins, on_change: Callable[[str], Awaitable[None]]) -> None:
        self._pins = pins
        # Told the name of a server of which others have changed something.
        self._on_change = on_change
        self._is_away = False
        # Servers of which something is to be taken over, and those at which that is under way.
        self._due: set[str] = set()
        self._busy: set[str] = set()
        self._tasks = TaskSet()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                await asyncio.sleep(_LOOK_EVERY)
                await self.look()
        finally:
            await self._tasks.close()

    async def look(self) -> None:
        """See what others have changed, and begin to take it over."""
        try:
            if await self._pins.has_news():
                self._begin(await self._pins.load())
        except StorageError as exc:
            if not self._is_away:
                logger().warning("definitions.storage.away", reason=exc.reason)
            self._is_away = True
        except Exception as exc:
            # Whatever it is: the next change must still be seen.
            logger().error("definitions.watch.failed", error=type(exc).__name__)
        else:
            self._is_away = False

    def _begin(self, names: set[str]) -> None:
        self._due |= names
        for name in names - self._busy:
            self._busy.add(name)
            self._tasks.spawn(self._follow(name))

    async def _follow(self, name: str) -> None:
        """Take over what others have changed of one server, and what they change meanwhile."""
        while name in self._due:
            self._due.discard(name)
            if not await self._take_over(name):
                await asyncio.sleep(_AGAIN_AFTER)
                self._due.add(name)
        self._busy.discard(name)

    async def _take_over(self, name: str) -> bool:
        try:
            async with asyncio.timeout(_LONGEST):
                await self._on_change(name)
        except Exception as exc:
            # It is in memory already, so nobody would say it again.
            logger().error("definitions.review.failed", server=name, error=type(exc).__name__)
            return False
        return True
