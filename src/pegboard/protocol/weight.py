"""How much memory a message holds, roughly: what waits for a slow reader is bounded by that."""

from __future__ import annotations

from typing import Any, cast

# Bytes of notifications that wait for a client which does not read.
MAX_WEIGHT = 8 * 1024 * 1024
_EACH = 64
_MOST_LOOKED_AT = 1000


def weight(value: Any) -> int:
    """Bytes of a JSON value, roughly; of a large one, a part is looked at."""
    total, left = 0, [value]
    for _ in range(_MOST_LOOKED_AT):
        if not left:
            return total
        item = left.pop()
        total += _EACH
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            named = cast("dict[str, Any]", item)
            total += sum(map(len, named))
            left += named.values()
        elif isinstance(item, (list, tuple)):
            left += cast("list[Any]", item)
    return total + _EACH * len(left) + sum(len(item) for item in left if isinstance(item, str))
