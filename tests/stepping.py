"""Work in steps, taken one after another."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def outcome(steps: Generator[object, None, T]) -> tuple[T, int]:
    """What comes of them, and how many there were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as over:
            return over.value, count
        count += 1
