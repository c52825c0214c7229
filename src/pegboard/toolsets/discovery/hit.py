"""A hit: a found tool in as few words as tell a model whether it is the one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.catalog.finder import ToolHit
from pegboard.text import one_line
from pegboard.toolsets.toolset import ToolAvailability

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
    (0, 1),
)
_SHORTEST_REASON = 16
_LONGEST_NAME = 40
_LONGEST_SERVER = 48


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tool that was found, and what the one who asked has of it."""

    found: ToolHit
    available: ToolAvailability
    active: bool
    listed: bool


def hits(sightings: Sequence[Sighting]) -> list[dict[str, Any]]:
    """Every hit, as generously as the room allows; a wordy tool is cut before others are."""
    full = [_in_measures(sighting) for sighting in sightings]
    room = _ROOM + _ROOM_FOR_ANOTHER * max(len(full) - 10, 0)
    listed: list[dict[str, Any]] = [{}] * len(full)
    # What a short one leaves over is for the longer ones.
    for left, at in enumerate(sorted(range(len(full)), key=lambda at: full[at][0][0])):
        share = room // (len(full) - left)
        cost, hit = next((each for each in full[at] if each[0] <= share), full[at][-1])
        listed[at] = hit
        room -= cost
    return listed


def _in_measures(sighting: Sighting) -> list[tuple[int, dict[str, Any]]]:
    """A hit in every measure, with what it costs, the most generous first."""
    tool = sighting.found.tool
    words = one_line(str(tool.definition.get("description") or ""), _MEASURES[0][0])
    names = parameter_names(tool.definition.get("inputSchema"))
    made = [_hit(sighting, words, names, length, most) for length, most in _MEASURES]
    return [(_cost(hit), hit) for hit in made]


def _cost(hit: dict[str, Any]) -> int:
    """Bytes of both forms; inside the text, each quote and backslash takes one more."""
    text = exactjson.dump(hit)
    return 2 * len(text) + text.count(b'"') + text.count(b"\\") + 2


def _hit(sighting: Sighting, words: str, names: Sequence[str], length: int, most: int) -> dict[str, Any]:
    tool, available = sighting.found.tool, sighting.available
    hit: dict[str, Any] = {
        "name": tool.name,
        "server": None if tool.server_name is None else one_line(tool.server_name, _LONGEST_SERVER),
        "description": one_line(words, length),
        "score": round(sighting.found.score, 3),
        "active": sighting.active,
        "listed": sighting.listed,
        "availability": {"status": available.status},
        "parameters": _first(names, most),
    }
    if available.reason is not None:
        hit["availability"]["reason"] = one_line(available.reason, max(length, _SHORTEST_REASON))
    return hit


def parameter_names(schema: object) -> list[str]:
    """A tool's parameters, required ones first."""
    described = exactjson.as_object(schema) or {}
    properties = exactjson.as_object(described.get("properties")) or {}
    required = [name for name in exactjson.as_list(described.get("required")) or [] if name in properties]
    return [one_line(name, _LONGEST_NAME) for name in dict.fromkeys([*required, *properties])]


def _first(names: Sequence[str], most: int) -> list[str]:
    """As many as there is room for; where there are more, the last entry says so."""
    return list(names) if len(names) <= most else [*names[: most - 1], f"…{len(names) - most + 1} more"]
