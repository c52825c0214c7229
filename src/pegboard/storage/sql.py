"""Statements about many values: a mark for each, and no more at once than a statement may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_MOST_AT_ONCE = 500


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many at a time as a statement may have."""
    return (values[at : at + _MOST_AT_ONCE] for at in range(0, len(values), _MOST_AT_ONCE))


def marks(values: Sequence[object]) -> str:
    """What stands in an `IN (…)` for these."""
    return ", ".join("?" * len(values))
