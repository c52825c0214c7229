"""Work that a server's bytes make, done in slices: no callback takes long, and the server waits (backpressure).

Whatever loops over what a server wrote is an iterator of small steps. A slice of them is done at once, which is nearly
always all; the rest takes turns with everything else on the loop, for half of its time at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter

from pegboard.log import logger
from pegboard.pace import SLICE


class Backlog:
    """The steps that are still to be done about one stream of bytes, in their order."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume
        self._works: deque[Iterator[object]] = deque()
        self._next: asyncio.Handle | None = None
        self._working = self._held = self._paused = False

    @property
    def is_empty(self) -> bool:
        """Whether all was done."""
        return not self._works

    @property
    def is_idle(self) -> bool:
        """Whether what comes next would be done at once."""
        return not (self._works or self._held or self._working) and self._next is None

    def add(self, work: Iterator[object]) -> None:
        """Do it now, as far as a slice of time goes, or in its turn."""
        self._works.append(work)
        if not self._working and not self._held and self._next is None:
            self._work()

    def then(self, last: Callable[[], object]) -> None:
        """Do this when all that came before is done."""
        self.add(_once(last))

    def hold(self) -> None:
        """Wait with all of it until `release`."""
        self._held = True
        self._set_paused(True)

    def release(self) -> None:
        """Go on."""
        if self._held:
            self._held = False
            if self._next is None and not self._working:
                self._next = asyncio.get_running_loop().call_soon(self._work)

    def clear(self) -> None:
        """Do no more of it."""
        self._works.clear()
        self._held = False
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _work(self) -> None:
        self._next = None
        self._working, took = True, SLICE
        try:
            took = self._slice()
        except Exception as exc:
            # What came behind it is still to be done.
            logger().error("server.bytes.failed", error=f"{type(exc).__name__}: {exc}"[:300])
        self._working = False
        if self._held:
            return
        if self._works:
            # As long as it worked: whoever else needs the loop gets half of it, however much there is to do here.
            self._next = asyncio.get_running_loop().call_later(took, self._work)
        self._set_paused(bool(self._works))

    def _slice(self) -> float:
        """As many steps as fit, and how long they took."""
        began, took = perf_counter(), 0.0
        while self._works and not self._held:
            work = self._works.popleft()
            for _ in work:
                took = perf_counter() - began
                if took > SLICE or self._held:
                    self._works.appendleft(work)
                    return took
        return took

    def _set_paused(self, paused: bool) -> None:
        if paused is not self._paused:
            self._paused = paused
            (self._pause if paused else self._resume)()


def work_off(steps: Iterator[object]) -> None:
    """Take these steps, whatever else is done: now, as far as a slice of time goes, and the rest in later ones."""
    Backlog(lambda: None, lambda: None).add(steps)


def _once(work: Callable[[], object]) -> Iterator[None]:
    work()
    yield
