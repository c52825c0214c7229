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

    async def run(self, work: Callable[[], T], patience: float | None = None) -> T:
        """Do this in a thread. Given up while it runs, it is still done to its end.

        With patience, what has not begun after so many seconds is never begun: `TimeoutError`.
        """
        # What is logged there belongs to whoever asked.
        waiting = self._executor.submit(contextvars.copy_context().run, work)
        future = asyncio.wrap_future(waiting)
        if patience is not None:
            try:
                await asyncio.wait({future}, timeout=patience)
            except asyncio.CancelledError:
                # That it fails after all is no fault that asyncio should report.
                future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                raise
            if not future.done() and waiting.cancel():
                raise TimeoutError("everything before it took too long")
        return await future

    async def end(self, patience: float | None = None) -> bool:
        """Finish what is under way, within so many seconds; whether it is."""
        ending = asyncio.ensure_future(asyncio.to_thread(self._executor.shutdown))
        done, _ = await asyncio.wait({ending}, timeout=patience)
        return bool(done)
