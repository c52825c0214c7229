"""Random JSON Schemas with everything that can stand at their top, and argument objects that may fit them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

Schema = dict[str, Any]

DRAFTS = (
    None,
    None,
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
)
NAMES = ("a", "b", "c", "ab", "$x")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 1.5, "", "a", "circle", [], [1], ["a", 1], {}, {"a": 1}, {"a": {"b": "a"}}, {"b": None},
)  # fmt: skip
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
IN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
ALONE = ("not", "if", "then", "else", "items", "additionalItems", "additionalProperties", "unevaluatedProperties",
         "propertyNames", "contains")  # fmt: skip

names = st.sampled_from(NAMES)
values = st.sampled_from(VALUES)
# One of them looks around, which not every provider takes.
patterns = st.sampled_from(["^a", "b$", "^\\$", "^(?!b)a"])
arguments = st.dictionaries(names, values, max_size=4)
# Filled in when the whole is known: the number chooses among all of its parts.
references = st.integers(0, 10_000).map(lambda number: {"$ref": number})


def leaves(old: bool) -> st.SearchStrategy[Any]:
    """What a property may have to be."""
    kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
    booleans: list[st.SearchStrategy[Any]] = [] if old else [st.booleans(), values.map(lambda value: {"const": value})]
    return st.one_of(
        st.builds(dict),
        kinds.map(lambda kind: {"type": kind}),
        st.lists(kinds, min_size=1, max_size=3, unique=True).map(lambda found: {"type": found, "description": "d"}),
        st.lists(values, min_size=1, max_size=3, unique_by=repr).map(lambda found: {"enum": found}),
        references,
        patterns.map(lambda pattern: {"pattern": pattern}),
        st.builds(lambda low, flag: _bounded(low, flag, old), st.integers(0, 2), st.booleans()),
        *booleans,
    )


def _bounded(low: int, flag: bool, old: bool) -> Schema:
    if old:
        return {"type": "number", "minimum": low, "exclusiveMinimum": flag}
    return {"type": "number", "exclusiveMinimum" if flag else "minimum": low}


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A schema for arguments; its references lead to parts of itself, and never in a circle without a step down."""
    draft = draw(st.sampled_from(DRAFTS))
    old = draft is not None and "draft-04" in draft
    leaf = leaves(old)
    part = st.recursive(objects(leaf, leaf, draft), lambda inner: objects(inner, leaf, draft), max_leaves=6)
    root = draw(part.filter(lambda found: isinstance(found, dict)))
    store = "$defs" if draft is None or "draft/" in draft else "definitions"
    root = {**root, store: {"one": draw(leaf), "two": draw(part), "a/b~c %": draw(leaf)}}
    if draft is not None:
        root["$schema"] = draft
    _fill_in(root)
    return root


def objects(inner: st.SearchStrategy[Any], leaf: st.SearchStrategy[Any], draft: str | None) -> st.SearchStrategy[Any]:
    """A schema of an object that may be composed of others."""
    several = st.lists(st.one_of(inner, leaf), min_size=1, max_size=3)
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["object", ["object", "null"], "string"]),
        "properties": st.dictionaries(names, st.one_of(leaf, tuples(leaf, draft)), max_size=3),
        "required": st.lists(names, min_size=1, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), leaf),
        "patternProperties": st.dictionaries(patterns, leaf, min_size=1, max_size=2),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(1, 4),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "$ref": st.integers(0, 10_000),
        "enum": st.lists(st.one_of(arguments, values), min_size=1, max_size=3, unique_by=repr),
        "title": st.just("Some title"),
    }
    # Also in drafts that do not know them: they are passed over there.
    words |= {
        "if": inner,
        "then": inner,
        "else": inner,
        "const": arguments,
        "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^[ab]"}]),
        "unevaluatedProperties": st.one_of(st.just(value=False), leaf),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=1),
    }
    if draft is not None and "draft/" not in draft:
        words["dependencies"] = st.dictionaries(
            names, st.one_of(inner, st.lists(names, min_size=1, max_size=2, unique=True)), max_size=2
        )
    chosen = st.lists(st.sampled_from(sorted(words)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: words[key] for key in keys}))


def tuples(leaf: st.SearchStrategy[Any], draft: str | None) -> st.SearchStrategy[Any]:
    """An array whose first items differ, in the words of its draft."""
    both = st.tuples(leaf, leaf)
    if draft is None or "2020" in draft:
        return both.map(lambda two: {"type": "array", "prefixItems": [two[0]], "items": two[1]})
    return both.map(lambda two: {"type": "array", "items": [two[0]], "additionalItems": two[1]})


def parts(schema: Any, pointer: str = "#") -> Iterator[tuple[str, Any]]:
    """Every part of a schema with where it is."""
    if not isinstance(schema, (dict, bool)):
        return
    yield pointer, schema
    if isinstance(schema, bool):
        return
    for key, value in schema.items():
        step = f"{pointer}/{key}"
        if key in BY_NAME and isinstance(value, dict):
            for name, each in value.items():
                yield from parts(each, f"{step}/{quote(name.replace('~', '~0').replace('/', '~1'))}")
        elif key in IN_LISTS and isinstance(value, list):
            for number, each in enumerate(value):
                yield from parts(each, f"{step}/{number}")
        elif key in ALONE:
            yield from parts(value, step)


def _fill_in(root: Schema) -> None:
    places = dict(parts(root))
    pointers = list(places)
    for schema in places.values():
        if isinstance(schema, dict) and isinstance(schema.get("$ref"), int):
            schema["$ref"] = pointers[schema["$ref"] % len(pointers)]
            if _leads_back(schema, places):
                del schema["$ref"]


def _leads_back(start: Schema, places: dict[str, Any]) -> bool:
    """Whether a schema has to hold for a value if it holds for that value: nobody could ever tell."""
    waiting, seen = [start], set[int]()
    while waiting:
        schema = waiting.pop()
        for key in IN_PLACE:
            found = schema.get(key)
            inner = found if isinstance(found, list) else list(found.values()) if key in BY_NAME and found else [found]
            waiting += [each for each in inner if isinstance(each, dict) and id(each) not in seen]
            seen |= {id(each) for each in inner}
        reference = schema.get("$ref")
        target = places.get(reference) if isinstance(reference, str) else None
        if target is start or any(each is start for each in waiting):
            return True
        if isinstance(target, dict) and id(target) not in seen:
            seen.add(id(target))
            waiting.append(target)
    return False
