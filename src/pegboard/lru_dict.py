"""A bounded dict: beyond its capacity, what was used least recently (LRU) is dropped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruDict(OrderedDict[K, V]):
    """A dict with a capacity. Setting a key makes it the youngest, and so does `use`; plain reading does not."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.capacity:
            self.popitem(last=False)

    def use(self, key: K) -> V | None:
        """The value of a key, which is the youngest from now on."""
        value = self.get(key)
        if key in self:
            self.move_to_end(key)
        return value
