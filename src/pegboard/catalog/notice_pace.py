"""The pace of notices: whoever says again and again that its lists changed is asked with pauses that grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Pauses between the times that a server is asked because it says that its lists changed, and how long it has to be
# quiet for them to begin anew.
_FIRST_NOTICE, _LONGEST_NOTICE, _QUIET = 0.25, 60.0, 10.0


class NoticePace(Generic[K]):
    """Has somebody asked after a notice: at once the first time, then later (debounce).

    However often a notice comes, the last one counts: what is asked after it is asked in the end.
    """

    def __init__(self, ask: Callable[[K], None], is_wanted: Callable[[K], bool]) -> None:
        self._ask = ask
        # Whether whoever gave a notice is still to be asked after the pause.
        self._is_wanted = is_wanted
        # When each was last asked because of a notice, and how long the next ones wait.
        self._asked: dict[K, tuple[float, float]] = {}
        self.waiting: dict[K, asyncio.TimerHandle] = {}

    def note(self, who: K) -> None:
        """A notice came."""
        if who in self.waiting:
            return
        now = asyncio.get_running_loop().time()
        last, pause = self._asked.get(who, (-_QUIET, _FIRST_NOTICE))
        if now - last >= max(_QUIET, 2 * pause):
            pause = _FIRST_NOTICE
        elif now - last < pause:
            self.waiting[who] = asyncio.get_running_loop().call_at(last + pause, self._ask_after_pause, who, pause)
            return
        self._asked[who] = now, pause
        self._ask(who)

    def close(self) -> None:
        """Ask nobody any more."""
        for timer in self.waiting.values():
            timer.cancel()

    def _ask_after_pause(self, who: K, pause: float) -> None:
        del self.waiting[who]
        if self._is_wanted(who):
            self._asked[who] = asyncio.get_running_loop().time(), min(2 * pause, _LONGEST_NOTICE)
            self._ask(who)
