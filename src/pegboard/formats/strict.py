"""Which schemas OpenAI's strict mode takes as they are.

Strict mode makes a model's arguments fit the schema by force, for a part of JSON Schema: every object is closed, all of
its properties are required, and only some words are known. A schema that meets this is marked strict; any other is left
as it is and marked not strict. Nothing is rewritten to get there: an optional parameter that has to be given as null
is another tool than the one the server has.
"""

from __future__ import annotations

from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.formats.references import MISSING, at
from pegboard.formats.walk import Schema, schemas

_WORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
    "definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
})  # fmt: skip
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_MOST_PROPERTIES = 5_000
_MOST_LEVELS = 10
_MOST_VALUES = 1_000
_MOST_CHARACTERS = 120_000
# An enum of more values than these may have so many characters in all.
_MANY_VALUES, _MOST_IN_VALUES = 250, 15_000


def is_strict(schema: Schema) -> bool:
    """Whether strict mode takes a schema as it is."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    found = list(schemas(schema))
    return (
        all(_is_supported(each, schema) for each in found)
        and _levels(schema, _MOST_LEVELS)
        and sum(len(_properties(each)) for each in found) <= _MOST_PROPERTIES
        and sum(len(_values(each)) for each in found) <= _MOST_VALUES
        and sum(map(_characters, found)) <= _MOST_CHARACTERS
    )


def _is_supported(schema: Schema, root: Schema) -> bool:
    if not schema.keys() <= _WORDS:
        return False
    if "$ref" in schema:
        reference = schema["$ref"]
        # Beside a reference nothing else may stand.
        alone = len(schema) == 1 and isinstance(reference, str) and reference.startswith("#")
        return alone and at(root, reference[1:]) is not MISSING
    if not (schema.keys() & {"type", "anyOf", "enum", "const"}) or not _all_schemas(schema):
        return False
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else as_list(kinds) or []
    return (
        all(kind in _TYPES for kind in kinds)
        and schema.get("format", "date") in _FORMATS
        and not any(isinstance(value, (dict, list)) for value in _values(schema))
        and not _is_long(_values(schema))
        and ("object" not in kinds or _is_closed(schema))
        and ("array" not in kinds or as_object(schema.get("items")) is not None)
    )


def _is_long(values: list[Any]) -> bool:
    return len(values) > _MANY_VALUES and sum(len(each) for each in values if isinstance(each, str)) > _MOST_IN_VALUES


def _is_closed(schema: Schema) -> bool:
    names = _properties(schema)
    required = as_list(schema.get("required"))
    return schema.get("additionalProperties") is False and required is not None and set(names) == set(required)


def _all_schemas(schema: Schema) -> bool:
    """`true` and `false` are no schemas here."""
    inner = [*_properties(schema).values(), *(as_list(schema.get("anyOf")) or [])]
    inner += [schema["items"]] if "items" in schema else []
    inner += [each for store in ("$defs", "definitions") for each in (as_object(schema.get(store)) or {}).values()]
    return all(as_object(each) is not None for each in inner)


def _levels(schema: Schema, left: int) -> bool:
    """Whether objects and arrays stand no deeper inside each other; a reference counts where it stands."""
    inner = [*_properties(schema).values(), schema.get("items")]
    beside = as_list(schema.get("anyOf")) or []
    if "properties" in schema or "items" in schema:
        left -= 1
    return left >= 0 and all(_levels(each, left) for part in (*inner, *beside) if (each := as_object(part)) is not None)


def _properties(schema: Schema) -> Schema:
    return as_object(schema.get("properties")) or {}


def _values(schema: Schema) -> list[Any]:
    return as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])


def _characters(schema: Schema) -> int:
    """How long names and constant texts are."""
    names = [name for key in ("properties", "$defs", "definitions") for name in as_object(schema.get(key)) or {}]
    return sum(map(len, names)) + sum(len(value) for value in _values(schema) if isinstance(value, str))
