"""The shape of an object: its properties and what holds for them, joined from the parts of a schema.

Joining may only widen: whatever object fits the parts fits the shape. What is lost on the way stands in `words`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pegboard.exactjson import as_object, dump
from pegboard.formats.walk import ANNOTATIONS, Schema, is_trivial

_EXACT = {"const", "enum", "type", "title"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema says of an object."""

    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    required: tuple[str, ...] = ()
    patterns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # What properties besides those have to be; `True` is anything.
    additional: Any = True
    # minProperties, dependentRequired and the like.
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # What it is called, and what cannot be said by the rest.
    label: str = ""
    words: tuple[str, ...] = ()
    # Whether every property it knows of stands above, so that "no others" can be said of it.
    complete: bool = True

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing here that a person could be told."""
        return not (self.properties or self.required or self.words or self.label)


ANYTHING = Shape(complete=False)

_OTHERS = {
    "minProperties": (int, float),
    "maxProperties": (int, float),
    "propertyNames": (dict, bool),
    "dependentRequired": dict,
    "dependentSchemas": dict,
}


def own_shape(schema: Schema) -> Shape:
    """What stands in a schema itself, whatever it is composed of."""
    others = {key: schema[key] for key, kinds in _OTHERS.items() if isinstance(schema.get(key), kinds)}
    label = schema.get("title") or schema.get("description") or ""
    return Shape(
        properties=as_object(schema.get("properties")) or {},
        required=tuple(dict.fromkeys(_strings(schema.get("required")))),
        patterns=as_object(schema.get("patternProperties")) or {},
        additional=schema.get("additionalProperties", True),
        others=others,
        label=label if isinstance(label, str) else "",
        complete="additionalProperties" not in schema and "dependentSchemas" not in others,
    )


def exactly(value: Mapping[str, Any]) -> Shape:
    """The shape of one object and no other."""
    return Shape({key: {"const": each} for key, each in value.items()}, tuple(value), additional=False, complete=False)


def both(one: Shape, other: Shape) -> Shape:
    """What fits two shapes at once."""
    properties: Schema = {}
    for name in dict.fromkeys((*one.properties, *other.properties)):
        said = [_of(name, one), _of(name, other)]
        # A property that one of them forbids is left to `additional`, which forbids it then.
        if False not in said:
            properties[name] = all_of(*said)
    patterns = dict(one.patterns)
    for pattern, schema in other.patterns.items():
        patterns[pattern] = all_of(patterns[pattern], schema) if pattern in patterns else schema
    return Shape(
        properties,
        tuple(dict.fromkeys((*one.required, *other.required))),
        patterns,
        all_of(one.additional, other.additional),
        _join(one.others, other.others),
        one.label,
        tuple(dict.fromkeys((*one.words, *other.words))),
        one.complete and other.complete,
    )


def either(shapes: Sequence[Shape]) -> Shape:
    """What fits at least one of several shapes; their words are for the caller to tell apart."""
    first, *rest = shapes
    if not rest:
        return first
    same_patterns = all(same(shape.patterns, first.patterns) for shape in rest)
    names = dict.fromkeys(name for shape in shapes for name in shape.properties)
    additional = [shape.additional for shape in shapes]
    return Shape(
        {name: any_of([_of(name, shape) for shape in shapes]) for name in names},
        tuple(name for name in first.required if all(name in shape.required for shape in rest)),
        first.patterns if same_patterns else {},
        any_of(additional) if same_patterns and True not in additional else True,
        {
            key: value
            for key, value in first.others.items()
            if all(key in shape.others and same(shape.others[key], value) for shape in rest)
        },
        complete=same_patterns and all(shape.complete for shape in shapes),
    )


def close(shape: Shape, unevaluated: Any) -> Shape:
    """The shape with what holds for properties that no part of it knows; only where it knows all of them."""
    return replace(shape, additional=unevaluated, complete=False) if shape.complete else shape


def _of(name: str, shape: Shape) -> Any:
    """What a shape says of one property."""
    if name in shape.properties:
        return shape.properties[name]
    # Whether a pattern fits the name is not asked: what holds then holds by the pattern alone.
    return True if shape.patterns else shape.additional


def all_of(one: Any, other: Any) -> Any:
    """A schema for values that fit two."""
    if one is False or other is False:
        return False
    if _admits_all(other) or same(one, other):
        return _annotate(other if is_trivial(one) else one, other)
    if _admits_all(one):
        return _annotate(other, one)
    parts: list[Any] = []
    for each in (one, other):
        parts += each["allOf"] if (as_object(each) or {}).keys() == {"allOf"} else [each]
    return {"allOf": parts}


def any_of(given: Iterable[Any]) -> Any:
    """A schema for values that fit one of several; one that is anything still shows what the others are."""
    kept: dict[object, Any] = {}
    for each in given:
        if each is not False:
            # `True` comes by the thousand, from every alternative that does not know a property.
            kept.setdefault(True if each is True else dump(each), each)
    telling = [each for each in kept.values() if not is_trivial(each)]
    if len(telling) < len(kept):
        notes = next((found for each in kept.values() if is_trivial(each) and (found := as_object(each))), None)
        return _annotate({"anyOf": [*telling, {}]} if telling else {}, notes)
    if len(telling) <= 1:
        return telling[0] if telling else False
    return _one_enum(telling) or {"anyOf": telling}


def _admits_all(schema: Any) -> bool:
    """Whether a schema only hints at what a value may be."""
    if is_trivial(schema):
        return True
    found = as_object(schema) or {}
    return found.keys() - ANNOTATIONS == {"anyOf"} and any(is_trivial(each) for each in found["anyOf"])


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1 is not true."""
    return one is other or dump(one) == dump(other)


def _annotate(schema: Any, notes: Any) -> Any:
    """A schema with another's annotations, where it has none of its own."""
    said = {key: value for key, value in (as_object(notes) or {}).items() if key in ANNOTATIONS}
    if not said or schema is False:
        return schema
    return {**said, **(as_object(schema) or {})}


def _one_enum(schemas: Sequence[Any]) -> Schema | None:
    """Several constants as one list of them."""
    values: list[Any] = []
    for each in schemas:
        schema = as_object(each)
        if schema is None or not schema.keys() <= _EXACT or not schema.keys() & {"const", "enum"}:
            return None
        values += [schema["const"]] if "const" in schema else schema["enum"]
    unique = list({dump(value): value for value in values}.values())
    types = [schema.get("type") for schema in schemas]
    return {"enum": unique} if None in types or any(kind != types[0] for kind in types) else {
        "type": types[0], "enum": unique
    }  # fmt: skip


def _join(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(one)
    for key, value in other.items():
        joined[key] = _join_value(key, joined[key], value) if key in joined else value
    return joined


def _join_value(key: str, one: Any, other: Any) -> Any:
    if same(one, other):
        return one
    if key == "minProperties":
        return max(one, other)
    if key == "maxProperties":
        return min(one, other)
    if key == "propertyNames":
        return all_of(one, other)
    joined = dict(one)
    for name, value in other.items():
        if name not in joined:
            joined[name] = value
        elif key == "dependentRequired":
            joined[name] = list(dict.fromkeys((*joined[name], *value)))
        else:
            joined[name] = all_of(joined[name], value)
    return joined


def _strings(value: object) -> list[str]:
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []
