"""Pace: long work of a coroutine in slices, so that everybody else on the event loop has their turns in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

# How long one slice of work may take, in seconds.
SLICE = 0.005


async def take_off_loop(size: int, most: int, work: Callable[[], T]) -> T:
    """What work comes to: in a thread of its own if it is about more than so much, where a thread costs less than the
    work."""
    return work() if size <= most else await asyncio.to_thread(work)


class Pace:
    """Tells a coroutine that loops over much when to pause."""

    def __init__(self, *, waits: bool = True) -> None:
        # Whether a pause is as long as the work before it, or only a turn for everybody else: for work that others
        # wait for, as at the start.
        self._waits = waits
        self._began = perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether a slice of time was used up."""
        return perf_counter() - self._began > SLICE

    async def through(self, steps: Iterable[object]) -> None:
        """Take all of these steps."""
        for _ in steps:
            if self.is_over:
                await self.rest()

    async def outcome(self, steps: Generator[object, None, T]) -> T:
        """Take all of these steps; what comes of them."""
        while True:
            try:
                next(steps)
            except StopIteration as over:
                return over.value
            if self.is_over:
                await self.rest()

    async def rest(self) -> None:
        """Wait as long as was worked, so that the others have half of the loop, and begin the next slice."""
        await asyncio.sleep(perf_counter() - self._began if self._waits else 0)
        self._began = perf_counter()
