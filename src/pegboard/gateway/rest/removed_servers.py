"""Servers that were removed a moment ago, so that a removal can be undone. They are kept in memory alone: an entry may
hold secrets."""

from __future__ import annotations

import time
from collections import OrderedDict

from pegboard.config.edit import RemovedEntry

_SECONDS = 600.0
_MOST = 20


class RemovedServers:
    """The last ones, each for a while."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, RemovedEntry]] = OrderedDict()

    def keep(self, name: str, removed: RemovedEntry) -> None:
        """One more."""
        self._kept.pop(name, None)
        self._kept[name] = time.monotonic(), removed
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def find(self, name: str) -> RemovedEntry | None:
        """What was removed under this name, if that is not too long ago."""
        at, removed = self._kept.get(name, (0.0, None))
        return removed if removed is not None and time.monotonic() - at <= _SECONDS else None

    def forget(self, name: str) -> None:
        """It is back."""
        self._kept.pop(name, None)
