"""A watch on the event loop: how much CPU time the longest callback took, whatever the load of the machine.

    async with open_board(tmp_path, {"hostile": toy(...)}) as board:
        with loopwatch() as watch:
            answered = await served_during(board.refresh(), lambda: board.list_tools(...))
        watch.check()            # no callback took longer than it may
        assert answered > 1      # others were served while the attack was under way

Only for the plain asyncio loop, which tests run on. What the test itself does on the loop counts as well: a client that
reads a huge answer belongs into a thread or a process (`in_thread`), and so does a hostile server.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# The house rule is 20 ms. An attack is no matter of a factor of three.
LIMIT = 0.06
_TICK = 0.005
# What `_yardstick` takes on the machine that the limits are meant for, while it has nothing else to do.
_YARDSTICK = 0.020


@dataclass
class LoopWatch:
    """What was seen of the loop so far; times are seconds of CPU."""

    # The longest callback, and what it was.
    longest: float = 0.0
    culprit: str = ""
    callbacks: int = 0
    # The most that the whole process did while the loop got no turn: more than `longest` where a thread held the GIL.
    pause: float = 0.0

    def check(self, limit: float = LIMIT) -> None:
        """Nobody held the loop: neither one of its callbacks, nor a thread. A slower machine, or one whose cores are
        all busy, has more time: as much as it needs for a piece of work that is always the same."""
        limit *= max(1.0, *(_yardstick() / _YARDSTICK for _ in range(3)))
        assert self.longest <= limit, f"a callback held the loop for {self.longest * 1000:.0f} ms: {self.culprit}"
        assert self.pause <= 2 * limit, f"the loop got no turn while the process worked {self.pause * 1000:.0f} ms"


@contextmanager
def loopwatch() -> Generator[LoopWatch]:
    """Watch every callback of the running loop."""
    watch, run = LoopWatch(), asyncio.Handle._run
    loop = asyncio.get_running_loop()

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        try:
            run(handle)
        finally:
            took = time.thread_time() - before
            watch.callbacks += 1
            if took > watch.longest:
                watch.longest, watch.culprit = took, repr(handle)

    ticking = loop.create_task(_tick(watch))
    # What other tests imported or left behind is none of the gateway's business: no collection looks at it again.
    gc.collect()
    gc.freeze()
    asyncio.Handle._run = measured  # type: ignore[method-assign]
    try:
        yield watch
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        ticking.cancel()


async def served_during(attack: Awaitable[Any], serve: Callable[[], Awaitable[Any]]) -> int:
    """How often somebody else was served before an attack was over; what the attack raises does not matter."""
    under_way, count = asyncio.ensure_future(attack), 0
    try:
        while not under_way.done():
            await serve()
            count += 1
            # However quick serving is, the attack gets its turn.
            await asyncio.sleep(0.001)
    finally:
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
    return count


async def in_thread(work: Callable[[], Any]) -> Any:
    """Do something of the test's own where it does not count as work of the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def _yardstick() -> float:
    """The CPU time of some work in Python and in C."""
    before = time.thread_time()
    numbers = [str(number) for number in range(40_000)]
    json.loads(json.dumps([numbers, "x" * 4_000_000]))
    return time.thread_time() - before


async def _tick(watch: LoopWatch) -> None:
    before = time.process_time()
    while True:
        await asyncio.sleep(_TICK)
        now = time.process_time()
        watch.pause, before = max(watch.pause, now - before), now
