"""A fair queue: those who wait for something that a server has little of take turns, so that whoever has many requests
waiting does not keep the others from their one (round robin)."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """What waits, by the principal that it is for: principals in turns, and each one's own in its order."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, principal: str, item: T) -> None:
        """Wait behind whatever of this principal waits."""
        own = self._waiting.get(principal)
        if own is None:
            own = self._waiting[principal] = deque()
        own.append(item)
        self._count += 1

    def get(self) -> T:
        """The next one; there has to be one. Its principal has its next turn after all others that wait."""
        principal, own = next(iter(self._waiting.items()))
        item = own.popleft()
        self._count -= 1
        if own:
            self._waiting.move_to_end(principal)
        else:
            del self._waiting[principal]
        return item
