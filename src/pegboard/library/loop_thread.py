"""An event loop in a thread of its own, for programs that have none.

Not anyio's `BlockingPortal`: that cancels a task again at every `await`, so that a tool could not clean up after
Ctrl-C, and at its end it waits without limit for threads and for tasks that ignore a cancellation.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

# How long a cancelled task is waited for.
_CANCEL_WAIT = 5.0


class LoopThread:
    """Runs coroutines for other threads, until it is closed."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def is_current(self) -> bool:
        """Whether the caller is the loop's own thread, which must not wait for itself."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Cancel whatever still runs, so that nobody waits for it for ever, and end the thread."""
        self.start(_cancel_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_CANCEL_WAIT)
