"""Sight: what the sign-ins of one principal show of servers that everybody signs in to for themselves."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar

from pegboard.access.rule import RuledItem

T = TypeVar("T", bound=RuledItem)


class Sight(Protocol):
    """Which lists of servers are a principal's own."""

    @property
    def principal_id(self) -> str:
        """Whose sign-ins they are."""
        ...

    @property
    def key(self) -> Hashable:
        """The same for all principals whose sign-ins show the same."""
        ...

    def shows(self, item: RuledItem) -> bool:
        """Whether an item is in the principal's own list, where there is one."""
        ...

    def pick(self, item: T) -> T:
        """The item as the principal's own list has it."""
        ...
