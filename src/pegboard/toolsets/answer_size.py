"""How large an answer is for a model, and what of it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard import exactjson

Row = dict[str, Any]


def json_size(value: Any) -> int:
    """How many characters a value takes where it is written."""
    return len(exactjson.dump(value).decode())


def first_that_fit(rows: Sequence[Row], room: int) -> list[Row]:
    """As many rows as there is room for, but one at least."""
    fit: list[Row] = []
    for row in rows:
        room -= json_size(row) + 1
        if fit and room < 0:
            break
        fit.append(row)
    return fit
