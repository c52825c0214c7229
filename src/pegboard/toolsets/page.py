"""A page: some of what there is, from an offset on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pegboard.toolsets.validation import validate_number

T = TypeVar("T")
# The largest whole number that every JSON reader holds exactly.
MAX_OFFSET = 2**53


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what there is."""

    items: Sequence[T]
    total: int
    limit: int
    offset: int

    def pagination(self, count: int | None = None) -> dict[str, Any]:
        """Where it stands among all there is, if so many of its items are shown, or all of them."""
        end = self.offset + (len(self.items) if count is None else count)
        return {"total": self.total, "limit": self.limit, "offset": self.offset, "hasMore": end < self.total}


def validate_page(limit: float, offset: float, most: int) -> tuple[int, int]:
    """A limit and an offset, or a clear refusal."""
    return validate_number(limit, "limit", 1, most), validate_offset(offset)


def validate_offset(offset: float, parameter: str = "offset") -> int:
    """An offset, or a clear refusal."""
    return validate_number(offset, parameter, 0, MAX_OFFSET)
