"""The shape of records: the keys that they have, and of which type the values are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MOST_KEYS, _MOST_DEPTH = 40, 4


def write_shape(values: Sequence[Any], depth: int = 0) -> str:
    """The shape of all of these values: `{id: integer, labels: [string], body?: string or null}`."""
    kinds = list(dict.fromkeys(map(_kind, values)))
    words = [_write_kind(kind, [value for value in values if _kind(value) == kind], depth) for kind in kinds]
    return " or ".join(words)


def _write_kind(kind: str, values: Sequence[Any], depth: int) -> str:
    if kind == "object":
        return _write_object(values, depth) if depth < _MOST_DEPTH else "{…}"
    if kind == "list":
        items = [item for value in values for item in value[:_MOST_KEYS]][:_MOST_KEYS]
        return f"[{write_shape(items, depth + 1)}]" if depth < _MOST_DEPTH and items else "[]" if not items else "[…]"
    return kind


def _write_object(values: Sequence[Any], depth: int) -> str:
    keys = list(dict.fromkeys(key for value in values for key in value))
    members: list[str] = []
    for key in keys[:_MOST_KEYS]:
        inner = [value[key] for value in values if key in value]
        mark = "" if len(inner) == len(values) else "?"
        members.append(f"{key[:80]}{mark}: {write_shape(inner, depth + 1)}")
    more = [f"… {len(keys) - _MOST_KEYS:,} more keys"] if len(keys) > _MOST_KEYS else []
    return f"{{{', '.join([*members, *more])}}}"


def _kind(value: Any) -> str:
    # A bool is an int, and so comes first.
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list", dict: "object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "null")
