"""Turns: how much of something goes on at once, in all and for each principal, so that nobody waits for another's."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turns:
    """So many turns in all, and so many of them for each principal."""

    def __init__(self, each: int, most: int) -> None:
        self._each = each
        self._all = asyncio.Semaphore(most)
        self._own: dict[str, asyncio.Semaphore] = {}
        # Who takes or waits for how many: what nobody needs any more is forgotten.
        self._users = Counter[str]()

    @asynccontextmanager
    async def take(self, principal: str) -> AsyncGenerator[None]:
        """Wait for a turn. Whoever waits for an own one holds none of all."""
        own = self._own.setdefault(principal, asyncio.Semaphore(self._each))
        self._users[principal] += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._users[principal] -= 1
            if not self._users[principal]:
                del self._users[principal], self._own[principal]
