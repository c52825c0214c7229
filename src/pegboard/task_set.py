"""A task set: background tasks that somebody owns and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TaskSet(set[asyncio.Task[Any]]):
    """Tasks under way. The event loop keeps only weak references to tasks, so somebody else has to keep them."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task, and keep it until it has ended."""
        task = asyncio.get_running_loop().create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task

    def cancel(self) -> None:
        """Cancel all of them."""
        for task in tuple(self):
            task.cancel()

    async def wait(self) -> None:
        """Wait until all of them have ended, whatever came of them."""
        await asyncio.gather(*self, return_exceptions=True)

    async def close(self) -> None:
        """Cancel all of them, and wait until they have ended."""
        self.cancel()
        await self.wait()
