"""How long a value is as JSON, without writing all of it: a large one is walked through in slices."""

from __future__ import annotations

from typing import Any, cast

from pegboard import exactjson
from pegboard.pace import Pace
from pegboard.protocol.weight import weight

_SMALL = 128 * 1024
_PORTION = 64 * 1024


async def json_size(value: Any) -> int:
    """The bytes of a value as JSON."""
    if weight(value) <= _SMALL:
        return len(exactjson.dump(value))
    pace, size, left = Pace(), 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            size += _text_size(item)
        elif isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            # Braces, and a colon and a comma for each, but for the last.
            size += 2 + max(2 * len(members) - 1, 0) + sum(map(_text_size, members))
            left += members.values()
        elif isinstance(item, list):
            items = cast("list[Any]", item)
            size += 2 + max(len(items) - 1, 0)
            left += items
        else:
            size += len(exactjson.dump(item))
        if pace.is_over:
            await pace.rest()
    return size


def _text_size(text: str) -> int:
    # Both quotes once, whatever it is cut into.
    return 2 + sum(len(exactjson.dump(text[at : at + _PORTION])) - 2 for at in range(0, len(text), _PORTION))
