"""A fair cache: what many owners have in common room for, without one of them taking the room of the others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairCache(Generic[K, V]):
    """Values by their owner and a key, up to a number of them. Beyond it, whoever has most loses its oldest, if that is
    more than a hundredth of all; else whoever put nothing in for the longest time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._share = limit // 100
        # Owners in the order in which they last put something in, and what they have in the order in which they did.
        self._owners: OrderedDict[str, OrderedDict[K, V]] = OrderedDict()
        # Those with more than their share: a hundred at most, one more while something is put in.
        self._large: set[str] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, owner: str, key: K) -> V | None:
        """What an owner has under a key."""
        own = self._owners.get(owner)
        return None if own is None else own.get(key)

    def put(self, owner: str, key: K, value: V) -> tuple[K, V] | None:
        """Keep a value as its owner's youngest; gives back what had to go for it, if anything."""
        own = self._owners.setdefault(owner, OrderedDict())
        self._owners.move_to_end(owner)
        self._count += key not in own
        own[key] = value
        own.move_to_end(key)
        if len(own) > self._share:
            self._large.add(owner)
        return self._drop() if self._count > self._limit else None

    def _drop(self) -> tuple[K, V]:
        loser = max(self._large, key=self._size) if self._large else next(iter(self._owners))
        own = self._owners[loser]
        dropped = own.popitem(last=False)
        self._count -= 1
        if len(own) <= self._share:
            self._large.discard(loser)
        if not own:
            del self._owners[loser]
        return dropped

    def _size(self, owner: str) -> int:
        return len(self._owners[owner])
