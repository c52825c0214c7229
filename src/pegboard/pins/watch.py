"""Follows the pins in storage, so that what is decided at one gateway holds at every other one a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from pegboard.log import logger
from pegboard.pins.pins import Pins
from pegboard.storage.database import StorageError

_LOOK_EVERY = 0.5


class PinWatch:
    """Looks again and again. Where storage is away, what is known stays in force."""

    def __init__(self, pins: Pins, on_change: Callable[[Collection[str]], Awaitable[None]]) -> None:
        self._pins = pins
        # Told the names of servers of which others have changed something.
        self._on_change = on_change
        self._is_away = False

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """Take over what others have changed."""
        try:
            if await self._pins.has_news() and (changed := await self._pins.load()):
                await self._on_change(changed)
        except StorageError as exc:
            if not self._is_away:
                logger().warning("definitions.storage.away", reason=exc.reason)
            self._is_away = True
        except Exception as exc:
            # Whatever it is: the next change must still be seen.
            logger().error("definitions.watch.failed", error=type(exc).__name__)
        else:
            self._is_away = False
