"""A hit: a found tool in as few words as tell a model whether it is the one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard import exactjson
from pegboard.toolsets.discovery.house import Available, Found

# Bytes for each hit. An answer goes to a model twice, as text and as structured content.
_ROOM = 210
# From generous to terse: how long a description may be, and how many parameters are named.
_MEASURES = ((160, 16), (120, 12), (90, 9), (60, 6), (40, 4), (30, 3), (24, 1))


def hits(found: Sequence[tuple[Found, Available, bool, bool]]) -> list[dict[str, Any]]:
    """Every hit, in the most generous measure that fits the room there is."""
    listed: list[dict[str, Any]] = []
    for length, parameters in _MEASURES:
        listed = [_hit(*each, length, parameters) for each in found]
        if len(exactjson.dump(listed)) <= _ROOM * max(len(listed), 1):
            break
    return listed


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
        hit["availability"]["reason"] = one_line(available.reason, length)
    return hit


def one_line(text: str, length: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def parameter_names(schema: object, most: int) -> list[str]:
    """A tool's parameters, required ones first; where there are more than fit, the last entry says so."""
    described = exactjson.as_object(schema) or {}
    properties = exactjson.as_object(described.get("properties")) or {}
    required = [name for name in exactjson.as_list(described.get("required")) or [] if name in properties]
    names = list(dict.fromkeys([*required, *properties]))
    return names if len(names) <= most else [*names[: most - 1], f"…{len(names) - most + 1} more"]
