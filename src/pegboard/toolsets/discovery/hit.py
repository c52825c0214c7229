"""A hit: a found tool in as few words as tell a model whether it is the one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard import exactjson
from pegboard.toolsets.discovery.house import Available, Found

# Bytes for an answer of up to ten hits, and for each hit beyond. It goes to a model twice, as text and as structured
# content; a model's token is about four bytes, and ten hits should cost it less than 1,500 of them.
_ROOM, _ROOM_FOR_ANOTHER = 5300, 530
# From generous to terse: how long a description may be, and how many parameters are named.
_MEASURES = (
    (240, 24),
    (160, 16),
    (120, 12),
    (100, 10),
    (80, 8),
    (70, 6),
    (60, 5),
    (50, 4),
    (40, 3),
    (30, 2),
    (16, 1),
    (8, 0),
    (0, 0),
)

_REASON = 16


def hits(found: Sequence[tuple[Found, Available, bool, bool]]) -> list[dict[str, Any]]:
    """Every hit, in the most generous measure that fits the room there is."""
    room = _ROOM + _ROOM_FOR_ANOTHER * max(len(found) - 10, 0)
    listed: list[dict[str, Any]] = []
    for length, parameters in _MEASURES:
        listed = [_hit(*each, length, parameters) for each in found]
        if _cost(listed) <= room:
            break
    return listed


def _cost(listed: list[dict[str, Any]]) -> int:
    """Bytes of both forms; inside the text, each quote and backslash takes one more."""
    text = exactjson.dump(listed)
    return 2 * len(text) + text.count(b'"') + text.count(b"\\")


def _hit(
    found: Found,
    available: Available,
    active: bool,
    listed: bool,
    length: int,
    parameters: int,
) -> dict[str, Any]:
    tool = found.tool
    hit: dict[str, Any] = {
        "name": tool.name,
        "server": tool.server_name,
        "description": one_line(str(tool.definition.get("description") or ""), length),
        "score": round(found.score, 3),
        "active": active,
        "listed": listed,
        "availability": {"status": available.status},
        "parameters": parameter_names(tool.definition.get("inputSchema"), parameters),
    }
    if available.reason is not None:
        hit["availability"]["reason"] = one_line(available.reason, max(length, _REASON))
    return hit


def one_line(text: str, length: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    if length <= 0:
        return ""
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def parameter_names(schema: object, most: int) -> list[str]:
    """A tool's parameters, required ones first; where there are more than fit, the last entry says so."""
    described = exactjson.as_object(schema) or {}
    properties = exactjson.as_object(described.get("properties")) or {}
    required = [name for name in exactjson.as_list(described.get("required")) or [] if name in properties]
    names = list(dict.fromkeys([*required, *properties]))
    if most <= 0:
        return []
    return names if len(names) <= most else [*names[: most - 1], f"…{len(names) - most + 1} more"]
