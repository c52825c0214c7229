"""Floods of bad bearers: whoever sends many is slowed, by the address that they come from. Nobody is locked out: a
bearer that is known to be good is none of this file's business, and one that is new waits for its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from pegboard.auth.refused import AuthRefused
from pegboard.lru_dict import LruDict

# So many bad ones in so many seconds pass as mistakes.
_MISTAKES, _WINDOW = 20, 60.0
_MOST_ADDRESSES = 4096
# Of an address that sends bad ones: how many seconds apart new ones are looked at, and how many may wait for that.
_APART = 0.1
_MOST_WAITING = 16
_TOO_MANY = "too many bearer tokens that are not valid came from this address: try again later"


@dataclass(slots=True)
class _Address:
    """What one address may send yet."""

    left: float
    at: float
    next_turn: float = 0.0
    waiting: int = 0


class BearerFlood:
    """Counts bad bearers by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._addresses: LruDict[str, _Address] = LruDict(_MOST_ADDRESSES)

    def record(self, address: str, refused: AuthRefused) -> AuthRefused:
        """A bearer was refused; what is answered, which beyond the bound is 429."""
        now = self._clock()
        entry = self._addresses.use(address)
        if entry is None:
            entry = self._addresses[address] = _Address(_MISTAKES, now)
        _refill(entry, now)
        if entry.left >= 1:
            entry.left -= 1
            return refused
        retry_after = (1 - entry.left) * _WINDOW / _MISTAKES
        return AuthRefused(429, _TOO_MANY, retry_after=retry_after, principal=refused.principal, claim=refused.claim)

    async def wait_turn(self, address: str) -> None:
        """Before a bearer is verified: at once, unless its address has sent too many bad ones."""
        entry = self._addresses.get(address)
        now = self._clock()
        if entry is None or _refill(entry, now) >= 1:
            return
        if entry.waiting >= _MOST_WAITING:
            raise AuthRefused(429, _TOO_MANY, retry_after=_MOST_WAITING * _APART)
        entry.next_turn = turn = max(entry.next_turn + _APART, now)
        entry.waiting += 1
        try:
            await asyncio.sleep(turn - now)
        finally:
            entry.waiting -= 1


def _refill(entry: _Address, now: float) -> float:
    entry.left = min(entry.left + (now - entry.at) * _MISTAKES / _WINDOW, _MISTAKES)
    entry.at = now
    return entry.left
