"""Room: how many characters of kept results may be on their way at once, to clients or to servers.

A request for one has a few hundred bytes, and nobody can say how soon what comes of it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pegboard.result import ToolFailure, unavailable

# Of each principal, and in all.
EACH, MOST = 64_000_000, 256_000_000


class Room:
    """So many characters in all, and so many of them for each principal."""

    def __init__(self, each: int = EACH, most: int = MOST) -> None:
        self._each = each
        self._most = most
        self._taken = Counter[str]()

    def take(self, principal: str, size: int) -> Callable[[], None]:
        """Take room; gives back what ends that, once. `ToolFailure` where there is none."""
        # Whoever has nothing under way may have one that is larger than all: there is no other way to read it.
        if self._taken[principal] and self._taken[principal] + size > self._each:
            raise self._refuse(self._each)
        if self._taken.total() and self._taken.total() + size > self._most:
            raise self._refuse(self._most)
        self._taken[principal] += size
        left = size

        def give_back() -> None:
            nonlocal left
            self._taken[principal] -= left
            left = 0
            if not self._taken[principal]:
                del self._taken[principal]

        return give_back

    @staticmethod
    def _refuse(most: int) -> ToolFailure:
        return unavailable(
            f"kept results of {most:,} characters are on their way already: try again when they have arrived",
            retryable=True,
        )
