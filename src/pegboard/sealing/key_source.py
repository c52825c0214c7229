"""Where keys come from, as a sealer sees it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from pegboard.sealing.secret_key import SecretKey


class KeySource(Protocol):
    """Keys that are kept somewhere, the one that seals first. They may change while we run."""

    @property
    def place(self) -> str:
        """Where they are, for people."""
        ...

    @property
    def is_there(self) -> bool:
        """Whether there is a key already; else `load` makes one."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether `load` takes no time to speak of."""
        ...

    def stamp(self) -> Hashable:
        """Another value when the keys may have changed; cheap, and never fails."""
        ...

    def load(self) -> tuple[SecretKey, ...]:
        """The keys as they are now; `SealingError` if they cannot be read."""
        ...
