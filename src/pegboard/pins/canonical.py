"""The canonical form of a definition: the same for definitions that mean the same, however they are written.

Members are sorted, numbers are as they were sent, a hint that is left out has the default of the specification, and
what is empty is as if it were left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from pegboard import exactjson

# Another formula has another number: what was pinned by an older one is pinned anew, by the same definition.
FORMAT = 1
# What a hint is where it is left out (MCP 2025-11-25, ToolAnnotations).
HINTS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
# Members of a schema that say nothing when they are empty. Of others that is not so: `{"not": {}}` refuses everything.
_VOID = frozenset(
    {"properties", "required", "description", "title", "$defs", "definitions", "examples", "patternProperties"}
)
_SCHEMAS = frozenset({"inputSchema", "outputSchema"})
_EMPTY: tuple[Any, ...] = (None, "", {}, [])
# Members of a schema that hold names of its author's: what is empty below them is a schema, and stays.
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


def canonical_form(definition: Any, *, has_hints: bool = False) -> Any:
    """The definition of a tool (`has_hints`), a prompt or a template as it is compared."""
    members = exactjson.as_object(definition)
    if members is None:
        return definition
    form = {key: _sort_schema(item) if key in _SCHEMAS else sort_members(item) for key, item in sorted(members.items())}
    if has_hints:
        given = exactjson.as_object(form.get("annotations")) or {}
        form["annotations"] = dict(sorted({**HINTS, **_without_empty(given)}.items()))
    return dict(sorted(_without_empty(form).items()))


def hint_of(tool: Mapping[str, Any], hint: str) -> bool:
    """What a tool says by a hint, which has its default where it is left out."""
    given = (exactjson.as_object(tool.get("annotations")) or {}).get(hint)
    return given if isinstance(given, bool) else HINTS[hint]


def digest_of_definition(definition: Any, *, has_hints: bool = False) -> str:
    """The same for the same canonical form."""
    try:
        text = exactjson.dump(canonical_form(definition, has_hints=has_hints))
    except exactjson.NotJson:
        # It is left out of every list.
        text = b"?"
    return hashlib.sha256(b"%d\0" % FORMAT + text).hexdigest()


def sort_members(value: Any) -> Any:
    """A value with the members of all its objects in order."""
    if isinstance(value, dict):
        return {key: sort_members(item) for key, item in sorted(cast("dict[str, Any]", value).items())}
    if isinstance(value, list):
        return [sort_members(item) for item in cast("list[Any]", value)]
    return value


def _without_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in members.items() if not _is_empty(item)}


def _is_empty(value: Any) -> bool:
    # For Python 0 and False are equal, and neither is empty.
    return any(type(value) is type(empty) and value == empty for empty in _EMPTY)


def _sort_schema(value: Any) -> Any:
    """The same for a schema, without members that say nothing."""
    if isinstance(value, list):
        return [_sort_schema(item) for item in cast("list[Any]", value)]
    members = exactjson.as_object(value)
    if members is None:
        return value
    return {key: _sort_member(key, item) for key, item in sorted(members.items()) if not _is_void(key, item)}


def _sort_member(key: str, item: Any) -> Any:
    named = exactjson.as_object(item) if key in _NAMED else None
    if named is not None:
        return {name: _sort_schema(each) for name, each in sorted(named.items())}
    return sort_members(item) if key in {"enum", "const", "default", "examples"} else _sort_schema(item)


def _is_void(key: str, item: Any) -> bool:
    return key in _VOID and _is_empty(item)
