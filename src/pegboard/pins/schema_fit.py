"""Whether what fits one JSON Schema surely fits another: then a call by the first is taken by the second.

It says yes only where that follows from the schemas' own words. What it does not know, and what differs, is a no. A
member that the first schema does not describe counts as left out: whoever calls by it does not send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pegboard import exactjson
from pegboard.pins.canonical import sort_members

# So many pairs of schemas are compared; more is a no. So many values that are compared at once, or characters of a
# text, are one more step: a reference has the same ones compared again.
_MOST_STEPS = 5000
_STEP = 50
# What says something of a value and asks nothing of it.
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$id"}
)
# What is looked at by its own rule.
_RULED = frozenset(
    {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$schema"}
    | {"$defs", "definitions", "format"}
)
# Limits that may only become wider: of the first kind a smaller one is wider, of the second a larger one.
_LOW = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_HIGH = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
# What may be dropped, and else must stay the same.
_DROPPABLE = frozenset({"pattern", "multipleOf", "uniqueItems", "not", "propertyNames", "dependentRequired"})
# Where one of these is, it is not plain what becomes of a member that is not described any more.
_OPEN_MEMBERS = frozenset({"patternProperties", "unevaluatedProperties"})
_DEFINITIONS = ("$defs", "definitions")
# What is compared part by part, each with a step of its own.
_PARTS = frozenset({"properties", "items", "anyOf", *_DEFINITIONS})

Schema = Mapping[str, Any]


def fits_schema(approved: Any, other: Any) -> bool:
    """Whether every value that fits the approved schema, and has only members that it describes, fits the other."""
    try:
        return _Comparison(approved, other).fits(approved, other)
    except (_TooMuchError, RecursionError, exactjson.NotJson):
        return False


class _TooMuchError(Exception):
    """There is more to compare than anybody needs."""


class _Comparison:
    """Two whole schemas; parts of them are compared."""

    def __init__(self, approved: Any, other: Any) -> None:
        self._roots = exactjson.as_object(approved) or {}, exactjson.as_object(other) or {}
        self._has_same_definitions = all(
            exactjson.is_same(self._roots[0].get(key), self._roots[1].get(key)) for key in _DEFINITIONS
        )
        self._left = _MOST_STEPS
        # References that are being compared: a schema that contains itself fits if all the rest does.
        self._open: set[tuple[str, str]] = set()

    def fits(self, approved: Any, other: Any) -> bool:
        """Whether what fits one part fits the other part."""
        self._spend(1)
        if other is True or approved is False:
            return True
        if approved is True:
            approved = {}
        if not isinstance(approved, dict) or not isinstance(other, dict):
            return False
        return self._fit(cast("Schema", approved), cast("Schema", other))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError

    def _fit(self, approved: Schema, other: Schema) -> bool:
        self._spend(sum(_count_values(schema, self._left * _STEP) for schema in (approved, other)) // _STEP)
        if "$ref" in approved or "$ref" in other:
            return self._fit_references(approved, other)
        rules = (_fit_dialect, _fit_type, _fit_values, _fit_format)
        methods = (self._fit_members, self._fit_items, self._fit_any, self._fit_rest)
        return all(rule(approved, other) for rule in rules) and all(rule(approved, other) for rule in methods)

    def _fit_references(self, approved: Schema, other: Schema) -> bool:
        """Only a reference into the schema itself is followed, and only where nothing stands beside it."""
        key = str(approved.get("$ref", id(approved))), str(other.get("$ref", id(other)))
        if key in self._open:
            return True
        first, second = self._resolve(approved, 0), self._resolve(other, 1)
        if first is None or second is None:
            return False
        self._open.add(key)
        try:
            return self.fits(first, second)
        finally:
            self._open.discard(key)

    def _resolve(self, schema: Schema, side: int) -> Any:
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if not isinstance(reference, str) or not set(schema) <= _ANNOTATIONS | {"$ref", *_DEFINITIONS}:
            return None
        steps = reference.split("/")
        found: Any = self._roots[side]
        if steps[0] != "#":
            return None
        for step in steps[1:]:
            members = exactjson.as_object(found) or {}
            found = members.get(step.replace("~1", "/").replace("~0", "~"))
        return found

    def _fit_members(self, approved: Schema, other: Schema) -> bool:
        before, after = _object(approved, "properties"), _object(other, "properties")
        if before is None or after is None:
            return False
        required, was_required = _names(other, "required"), _names(approved, "required")
        if required is None or was_required is None or not required <= was_required:
            return False
        rest, was_rest = other.get("additionalProperties", True), approved.get("additionalProperties", True)
        if before.keys() - after.keys() and not _OPEN_MEMBERS.isdisjoint(other):
            return False
        for name, schema in before.items():
            if not self.fits(schema, after.get(name, rest)):
                return False
        if isinstance(was_rest, dict) and was_rest:
            # A map: whatever it has is described by that.
            return all(self.fits(was_rest, after[name]) for name in after.keys() - before.keys()) and self.fits(
                was_rest, rest
            )
        is_open = was_rest is True or was_rest == {}
        return not is_open or self.fits(True, rest)

    def _fit_items(self, approved: Schema, other: Schema) -> bool:
        if "items" not in other:
            return True
        before, after = approved.get("items", True), other["items"]
        if isinstance(before, list) or isinstance(after, list):
            return self._are_same(before, after)
        return self.fits(before, after)

    def _fit_any(self, approved: Schema, other: Schema) -> bool:
        """One of several: each of those that were has to fit one of those that are."""
        if "anyOf" not in other:
            return True
        after = exactjson.as_list(other["anyOf"]) or []
        before = exactjson.as_list(approved.get("anyOf"))
        if any(self.fits(approved, each) for each in after):
            return True
        return before is not None and all(any(self.fits(each, new) for new in after) for each in before)

    def _fit_rest(self, approved: Schema, other: Schema) -> bool:
        """Limits may become wider; of what is left, everything has to be the same."""
        for key in (approved.keys() | other.keys()) - _ANNOTATIONS - _RULED:
            before, after = approved.get(key), other.get(key)
            if self._are_same(before, after) and (key in approved) == (key in other):
                continue
            if key not in other and key in _LOW | _HIGH | _DROPPABLE:
                continue
            is_wider = _WIDER.get(key)
            if key not in approved or is_wider is None or not is_wider(before, after):
                return False
        return True

    def _are_same(self, before: Any, after: Any) -> bool:
        if not exactjson.is_same(before, after):
            return False
        return self._has_same_definitions or not _has_reference(before)


def _fit_dialect(approved: Schema, other: Schema) -> bool:
    return "$schema" not in other or approved.get("$schema", other["$schema"]) == other["$schema"]


def _fit_type(approved: Schema, other: Schema) -> bool:
    if "type" not in other:
        return True
    before, after = _types(approved), _types(other)
    if before is None or after is None:
        return False
    return all(each in after or (each == "integer" and "number" in after) for each in before)


def _types(schema: Schema) -> set[str] | None:
    """The types that a schema admits; `None` where it does not say."""
    given = schema.get("type")
    listed = [given] if isinstance(given, str) else exactjson.as_list(given)
    if listed is not None:
        return {str(each) for each in listed}
    values = _values(schema)
    return None if values is None else {_type_of(value) for value in values}


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds: tuple[tuple[type, str], ...] = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"))
    found = next((name for kind, name in kinds if isinstance(value, kind)), None)
    return found or ("null" if value is None else "object")


def _values(schema: Schema) -> list[Any] | None:
    """The only values that a schema admits, if it names them."""
    return [schema["const"]] if "const" in schema else exactjson.as_list(schema.get("enum"))


def _fit_values(approved: Schema, other: Schema) -> bool:
    allowed = _values(other)
    if allowed is None:
        return "enum" not in other
    known = _values(approved)
    return known is not None and _texts(known) <= _texts(allowed)


def _texts(values: list[Any]) -> set[bytes]:
    """Values as they are written, to be looked up: each with each would take the square of their number."""
    return {exactjson.dump(sort_members(value)) for value in values}


def _fit_format(approved: Schema, other: Schema) -> bool:
    return "format" not in other or approved.get("format") == other["format"]


def _object(schema: Schema, key: str) -> Mapping[str, Any] | None:
    return {} if key not in schema else exactjson.as_object(schema[key])


def _names(schema: Schema, key: str) -> set[str] | None:
    if key not in schema:
        return set()
    listed = exactjson.as_list(schema[key])
    return None if listed is None else {str(each) for each in listed}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_lower(before: Any, after: Any) -> bool:
    return _is_number(before) and _is_number(after) and after <= before


def _is_higher(before: Any, after: Any) -> bool:
    return _is_number(before) and _is_number(after) and after >= before


_WIDER: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(_LOW, _is_lower),
    **dict.fromkeys(_HIGH, _is_higher),
}


def _has_reference(value: Any) -> bool:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return any("ref" in key.lower() for key in members if key.startswith("$")) or any(
            map(_has_reference, members.values())
        )
    return any(map(_has_reference, cast("list[Any]", value))) if isinstance(value, list) else False


def _count_values(schema: Schema, most: int) -> int:
    """How many values of a schema are compared at once; no further than to so many."""
    total, left = 0, list[Any]()
    for key, item in schema.items():
        if key in _PARTS and isinstance(item, dict):
            total += len(cast("dict[str, Any]", item))
        elif key != "anyOf":
            left.append(item)
    while left and total <= most:
        item = left.pop()
        total += 1
        if isinstance(item, str):
            total += len(item) // _STEP
        elif isinstance(item, dict):
            left += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            left += cast("list[Any]", item)
    return total
