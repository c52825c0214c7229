"""Refusals as they are recorded: the first few of an address one by one, the rest of a minute as a number.

Whoever may not come in could otherwise write as much as they like into what is kept of everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pegboard.access.principal import Principal

# Seconds that are counted together.
WINDOW = 60.0
# So many of one address and reason have a record of their own.
SINGLE = 20
# So many addresses and reasons are told apart; the others are counted together.
MOST_SENDERS = 256
_OTHERS = ("", "", "")
# So many of them have lines of their own in the log.
MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """Somebody was not let in: who, why, from what kind of network, and at what."""

    principal: Principal
    outcome: str
    network: str
    detail: str


@dataclass(slots=True)
class _Tally:
    count: int
    last: Refusal
    is_told: bool


class Refusals:
    """Counts refusals, and hands on those that are to be recorded (`note`), and what is to be told of them in the log:
    the first of an address, and at the end of the minute how many there were (`tell`)."""

    def __init__(self, note: Callable[[Refusal, str], None], tell: Callable[[str, Refusal | None, int], None]) -> None:
        self._note = note
        self._tell = tell
        self._tallies: dict[tuple[str, str, str], _Tally] = {}
        self._end: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._tallies)

    def add(self, holder: str, refusal: Refusal) -> None:
        """Take one of this address (`share_holder`)."""
        key = holder, refusal.principal.id, refusal.outcome
        if key not in self._tallies and len(self._tallies) >= MOST_SENDERS:
            key = _OTHERS
        is_told = len(self._tallies) < MOST_TOLD and key != _OTHERS
        tally = self._tallies.setdefault(key, _Tally(0, refusal, is_told))
        tally.count += 1
        if tally.count == 1 and tally.is_told:
            self._tell(holder, refusal, 1)
        tally.last = refusal
        if tally.count <= SINGLE:
            self._note(refusal, refusal.detail)
        if self._end is None:
            self._end = asyncio.get_running_loop().call_later(WINDOW, self.flush)

    def flush(self) -> None:
        """Record how many more there were, and begin anew."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        tallies, self._tallies = self._tallies, {}
        for key, tally in tallies.items():
            if (more := tally.count - SINGLE) > 0:
                where = " from other addresses" if key == _OTHERS else ""
                self._note(tally.last, f"… and {more} more within a minute{where}, the last one: {tally.last.detail}")
            if tally.is_told and tally.count > 1:
                self._tell(key[0], tally.last, tally.count)
        if others := sum(tally.count for tally in tallies.values() if not tally.is_told):
            self._tell("", None, others)
