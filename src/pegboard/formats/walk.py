"""Walks through a JSON Schema: which of its parts are schemas, and which are only data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pegboard.exactjson import as_list, as_object

Schema = dict[str, Any]

# Values of these are examples and constants: a "$ref" in there is no reference.
DATA = frozenset({"enum", "const", "default", "examples", "example"})
# Values of these are schemas by name: a name may be any word, "$ref" included.
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
# Where a schema keeps what is only used by reference.
STORES = ("$defs", "definitions")
# What says something about a value without judging it.
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
)

Change = Callable[[Schema], Schema]


def rebuilt(schema: Schema, change: Change, made: dict[int, Schema] | None = None) -> Schema:
    """A copy in which every schema, the innermost first, is what `change` makes of it; `made` tells which became which.

    A part with an `$id` of its own is a document of its own, and stays as it is.
    """
    new = change({key: _rebuilt_value(key, value, change, made) for key, value in schema.items()})
    if made is not None:
        made[id(schema)] = new
    return new


def _rebuilt_value(key: str, value: Any, change: Change, made: dict[int, Schema] | None) -> Any:
    if key in DATA:
        return value
    if (found := as_object(value)) is not None:
        if key in NAMED:
            return {name: _rebuilt_value("", each, change, made) for name, each in found.items()}
        return found if is_document(found) else rebuilt(found, change, made)
    if (items := as_list(value)) is not None:
        return [_rebuilt_value("", each, change, made) for each in items]
    return value


def schemas(schema: object) -> Iterator[Schema]:
    """The schema and every one inside of it, save documents of their own; each object once."""
    waiting: list[object] = [schema]
    seen: set[int] = set()
    while waiting:
        found = as_object(waiting.pop())
        if found is None or id(found) in seen or (seen and is_document(found)):
            continue
        seen.add(id(found))
        yield found
        for key, value in found.items():
            if key not in DATA:
                waiting += _inside(key, value)


def _inside(key: str, value: object) -> list[object]:
    if (items := as_list(value)) is not None:
        return items
    if key in NAMED and (named := as_object(value)) is not None:
        return list(named.values())
    return [value]


def is_document(schema: Schema) -> bool:
    """Whether references inside are relative to this part, and not to the whole."""
    said = schema.get("$id")
    return isinstance(said, str) and not said.startswith("#")


def is_trivial(schema: object) -> bool:
    """Whether a schema admits every value: only annotations, or `true`."""
    if isinstance(schema, Mapping):
        return all(key in ANNOTATIONS for key in cast("Mapping[str, Any]", schema))
    return schema is True
