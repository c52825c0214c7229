"""What may be served in place of a definition that changed: the approved one, as long as a call by it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard import exactjson
from pegboard.pins.canonical import hint_of
from pegboard.pins.schema_fit import fits_schema

# What each hint says of a tool that may do more. Rules ask what a tool may do, so these are taken over at once.
_STRICT: Mapping[str, bool] = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}


def stand_in(kind: str, approved: Any, said: Any) -> Any | None:
    """The approved definition as it can be served while the server says something else; `None` where a call by it
    might be refused, or might mean something else."""
    before, after = exactjson.as_object(approved), exactjson.as_object(said)
    if before is None or after is None:
        return None
    if kind == "tool":
        return _stand_in_for_tool(before, after)
    if kind == "prompt":
        return before if _fits_prompt(before, after) else None
    return before


def _stand_in_for_tool(approved: dict[str, Any], said: Mapping[str, Any]) -> Any | None:
    if not exactjson.is_same(approved.get("execution"), said.get("execution")):
        return None
    if not fits_schema(approved.get("inputSchema"), said.get("inputSchema")):
        return None
    promised, given = approved.get("outputSchema"), said.get("outputSchema")
    if promised is None or (given is not None and fits_schema(given, promised)):
        return _with_stricter_hints(approved, said)
    # Clients check answers by it, and what comes now may be another shape.
    kept = {key: item for key, item in approved.items() if key != "outputSchema"}
    return _with_stricter_hints(kept, said)


def _with_stricter_hints(approved: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    stricter = {
        hint: strict
        for hint, strict in _STRICT.items()
        if hint_of(said, hint) is strict and hint_of(approved, hint) is not strict
    }
    if not stricter:
        return approved
    return {**approved, "annotations": {**(exactjson.as_object(approved.get("annotations")) or {}), **stricter}}


def _fits_prompt(approved: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    before, after = _arguments(approved), _arguments(said)
    if before is None or after is None or not before.keys() <= after.keys():
        return False
    return all(before.get(name, False) for name, is_required in after.items() if is_required)


def _arguments(prompt: Mapping[str, Any]) -> dict[str, bool] | None:
    """The names of a prompt's arguments, and whether each is required."""
    found: dict[str, bool] = {}
    for item in exactjson.as_list(prompt.get("arguments") or []) or ():
        argument = exactjson.as_object(item)
        if argument is None or not isinstance(name := argument.get("name"), str):
            return None
        found[name] = argument.get("required") is True
    return found
