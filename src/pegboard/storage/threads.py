"""A few threads of a database's own: what waits there for a lock or a network keeps nothing else waiting."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """Does work in the order it came, as many pieces at once as there are threads; they start when needed."""

    def __init__(self, name: str, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=f"pegboard-{name}")

    async def run(self, work: Callable[[], T]) -> T:
        """Do this in a thread. Given up while it runs, it is still done to its end."""
        # What is logged there belongs to whoever asked.
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._executor, context.run, work)

    async def end(self) -> None:
        """Finish what is under way."""
        await asyncio.to_thread(self._executor.shutdown)
