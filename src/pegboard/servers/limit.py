"""A time limit that measures the server, not our own busy loop.

A loop that is busy, or a machine that gives it no turn, is no reason to call a server slow whose answer may have been
there all the time. So a limit is counted in ticks, each as long as it should have been, however long it was; and when
they have run out, what has arrived by then is still read.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

_TICKS = 50
_SHORTEST_TICK = 0.005
# Turns of the loop in which what has arrived reaches whoever waits for it.
_LAST_TURNS = 5


class Limit:
    """As `asyncio.timeout`: cancels what is inside of it, and raises `TimeoutError`."""

    __slots__ = ("_left", "_loop", "_seconds", "_tick", "_timeout", "_timer")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._left = self._tick = 0.0
        self._timer: asyncio.Handle | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> Limit:
        """Begin."""
        await self._timeout.__aenter__()
        if self._seconds is not None:
            self.restart(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End; raises `TimeoutError` if it was used up."""
        if self._timer is not None:
            self._timer.cancel()
        return await self._timeout.__aexit__(kind, exc, trace)

    @property
    def is_over(self) -> bool:
        """Whether it was used up."""
        return self._timeout.expired()

    def restart(self, seconds: float) -> None:
        """Begin anew."""
        if self._timer is not None:
            self._timer.cancel()
        self._left, self._tick = seconds, max(seconds / _TICKS, _SHORTEST_TICK)
        self._wait()

    def _wait(self) -> None:
        if self._left > 0:
            wait = min(self._tick, self._left)
            self._left -= wait
            self._timer = self._loop.call_later(wait, self._wait)
        else:
            self._end(_LAST_TURNS)

    def _end(self, turns: int) -> None:
        if turns:
            self._timer = self._loop.call_soon(self._end, turns - 1)
        else:
            self._timeout.reschedule(self._loop.time())
