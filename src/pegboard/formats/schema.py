"""A tool's input schema as model providers take it: an object at the top, and nothing composed there.

Anthropic refuses `oneOf`, `anyOf` and `allOf` at the top level; OpenAI these, `not` and `enum`. What stands there is
joined into one object: properties of every alternative, required what all of them require, and in words what the
alternatives are. Every argument object that fits the original fits what comes out. Below the top nothing changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from pegboard.exactjson import as_list, as_object, dump
from pegboard.formats.patterns import with_plain_patterns
from pegboard.formats.references import MISSING, SchemaDocument
from pegboard.formats.shape import ANYTHING, Shape, all_of, both, close, either, exactly, own_shape
from pegboard.formats.walk import Schema, is_document, rebuilt, schemas
from pegboard.text import quote_start

# What is composed at the top.
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "$ref", "$dynamicRef"})
# Joined into the object as they are, or said otherwise.
_JOINED = frozenset({"properties", "required", "patternProperties", "additionalProperties", "unevaluatedProperties"})
# A server could write alternatives of alternatives without end: beyond so many parts, large ones counting for more, the
# rest is taken for anything.
_MOST_PARTS = 500
_DEEPEST = 60
_SHOWN = 300
_MOST_WORDS = 2_000
_SPECIAL = re.compile(r"([\\^$.*+?()\[\]{}|/])")


@dataclass(frozen=True, slots=True)
class Converted:
    """An input schema for a provider, and what it can no longer say itself."""

    schema: Schema
    words: str = ""


def object_schema(
    given: object, *, key: re.Pattern[str] | None = None, items: bool = False, plain_patterns: bool = False
) -> Converted:
    """Any JSON Schema as that of an object.

    `key`: how properties may be called. Others go into `patternProperties`, under a pattern that only they fit.
    `items`: every array says something of its items.
    `plain_patterns`: no regular expression that OpenAI refuses.
    """
    if (schema := as_object(given)) is None:
        return Converted({"type": "object", "properties": {}})
    document = SchemaDocument(schema)
    root = {name: value for name, value in document.root.items() if name != "$id"}
    words = ""
    composed = not root.keys().isdisjoint(_COMPOSED)
    if composed:
        root, words = _plain(document)
    means_the_same = not composed and root.get("type") == "object"
    root = {**root, "type": "object", "properties": as_object(root.get("properties")) or {}}
    if key is not None:
        root, strange = _move_to_patterns(root, key)
        words = _together([words, strange])
    if means_the_same:
        document.adopt(root)
    root = document.fix_references(root)
    if items:
        root = _with_items(root)
    if plain_patterns:
        root = with_plain_patterns(root)
    return Converted(root, words)


def _plain(document: SchemaDocument) -> tuple[Schema, str]:
    """The root without composition, and what it said."""
    shape = _ShapeReader(document).read(document.root) or ANYTHING
    kept = {
        name: value
        for name, value in document.root.items()
        if name not in _COMPOSED and name not in _JOINED and name != "$id"
    }
    properties = dict(shape.properties)
    for name in shape.required:
        if name not in properties:
            properties[name] = (None if shape.patterns else as_object(shape.additional)) or {}
    plain: Schema = {"type": "object", **kept, "properties": properties}
    if shape.required:
        plain["required"] = list(shape.required)
    if shape.patterns:
        plain["patternProperties"] = dict(shape.patterns)
    if shape.additional is not True:
        plain["additionalProperties"] = shape.additional
    plain.update(shape.others)
    return plain, _together(shape.words)


class _ShapeReader:
    """Reads the shape of an object out of a document."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._parts = 0
        # References that are being followed: one that leads back to itself says nothing new.
        self._open: list[int] = []

    def read(self, part: Any) -> Shape | None:
        """The shape of the objects that fit a part; `None` if no object can."""
        schema = as_object(part)
        if schema is None:
            return None if part is False else Shape()
        foreign = schema is not self._document.root and is_document(schema)
        if self._parts >= _MOST_PARTS or len(self._open) > _DEEPEST or id(schema) in self._open or foreign:
            return ANYTHING
        self._parts += 1 + len(as_object(schema.get("properties")) or {}) // 10
        self._open.append(id(schema))
        try:
            return self._read(schema)
        finally:
            self._open.pop()

    def _read(self, schema: Schema) -> Shape | None:
        kinds = schema.get("type")
        if isinstance(kinds, (str, list)) and "object" not in ([kinds] if isinstance(kinds, str) else kinds):
            return None
        shape = own_shape(schema)
        for part in self._read_composition(schema):
            if part is None:
                return None
            shape = both(shape, part)
        if "unevaluatedProperties" in schema:
            shape = close(shape, schema["unevaluatedProperties"])
        return shape

    def _read_composition(self, schema: Schema) -> list[Shape | None]:
        """Every part that has to hold beside what a schema says itself."""
        found = [self.read(part) for part in as_list(schema.get("allOf")) or ()]
        if isinstance(reference := schema.get("$ref"), str):
            target = self._document.target(reference)
            found.append(ANYTHING if target is MISSING else self.read(target))
        if "$dynamicRef" in schema:
            found.append(ANYTHING)
        for key, start in (("anyOf", "At least one of these has to hold"), ("oneOf", "Exactly one of these holds")):
            if (parts := as_list(schema.get(key))) is not None:
                found.append(self._alternatives(parts, start))
        if "if" in schema:
            found.append(self._condition(schema))
        if "not" in schema:
            found.append(Shape(words=(f"Not accepted is what fits {_compact(schema['not'])}.",)))
        values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
        if values is not None:
            found.append(_one_of(values))
        return found

    def _alternatives(self, parts: list[Any], start: str) -> Shape | None:
        read = [(part, shape) for part in parts if (shape := self.read(part)) is not None]
        if not read:
            return None
        joined = either([shape for _, shape in read])
        if len(read) == 1:
            return joined
        told = [_describe(part, shape) for part, shape in read]
        listed = "; ".join(f"({number}) {each}" for number, each in enumerate(told, 1))
        return replace(joined, words=(f"{start}: {listed}.",))

    def _condition(self, schema: Schema) -> Shape | None:
        """`if`, `then` and `else`: one of two, whichever it is."""
        condition, then, otherwise = schema["if"], schema.get("then", True), schema.get("else", True)
        sides = [self.read(condition), self.read(then)]
        fits = None if None in sides else both(*[side for side in sides if side is not None])
        shapes = [shape for shape in (fits, self.read(otherwise)) if shape is not None]
        if not shapes:
            return None
        words = f"If the arguments fit {_compact(condition)}"
        words += f" then {_compact(then)} has to hold" if then is not True else " then nothing else has to hold"
        words += f", else {_compact(otherwise)}." if otherwise is not True else "."
        return replace(either(shapes), words=(words,))


def _one_of(values: list[Any]) -> Shape | None:
    shapes = [exactly(value) for each in values if (value := as_object(each)) is not None]
    if not shapes:
        return None
    words = () if len(shapes) == 1 else (f"The arguments as a whole are one of {_compact(values)}.",)
    return replace(either(shapes), words=words)


def _describe(part: Any, shape: Shape) -> str:
    """One alternative in a few words."""
    if shape.says_nothing:
        return _compact(part)
    needed = [_describe_property(name, shape) for name in shape.required]
    optional = [_describe_property(name, shape) for name in shape.properties if name not in shape.required]
    said = [
        quote_start(shape.label, _SHOWN),
        f"with {', '.join(needed)}" if needed else "",
        f"optional {', '.join(optional)}" if optional else "",
        " ".join(shape.words).removesuffix("."),
    ]
    return ", ".join(each for each in said if each)


def _describe_property(name: str, shape: Shape) -> str:
    schema = as_object(shape.properties.get(name)) or {}
    if "const" in schema:
        return f"{name} = {_compact(schema['const'])}"
    if len(values := as_list(schema.get("enum")) or ()) == 1:
        return f"{name} = {_compact(values[0])}"
    return name


def _compact(value: Any) -> str:
    return quote_start(dump(value).decode(), _SHOWN)


def _together(words: tuple[str, ...] | list[str]) -> str:
    return quote_start("\n".join(each for each in words if each), _MOST_WORDS)


def _move_to_patterns(schema: Schema, key: re.Pattern[str]) -> tuple[Schema, str]:
    """Properties that a provider would refuse by their names, as patterns that fit nothing but these names."""
    strange = [name for name in schema["properties"] if key.fullmatch(name) is None]
    if not strange:
        return schema, ""
    patterns: Schema = dict(as_object(schema.get("patternProperties")) or {})
    for name in strange:
        pattern = "^" + _SPECIAL.sub(r"\\\1", name) + "$"
        own = schema["properties"][name]
        patterns[pattern] = all_of(patterns[pattern], own) if pattern in patterns else own
    kept = {name: value for name, value in schema["properties"].items() if name not in strange}
    told = ", ".join(dump(name).decode() for name in strange)
    return {**schema, "properties": kept, "patternProperties": patterns}, f"Takes also, by these exact names: {told}."


def _with_items(schema: Schema) -> Schema:
    """OpenAI refuses an array that says nothing of its items."""
    if not any(_lacks_items(each) for each in schemas(schema)):
        return schema
    return rebuilt(schema, lambda each: {**each, "items": {}} if _lacks_items(each) else each)


def _lacks_items(schema: Schema) -> bool:
    kinds = schema.get("type")
    return "items" not in schema and (kinds == "array" or (isinstance(kinds, list) and "array" in kinds))
