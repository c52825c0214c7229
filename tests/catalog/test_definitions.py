"""The check at the door: what keeps one bad tool from spoiling a client's whole list."""

from typing import Any

import pytest

from catalog.ear import listening
from pegboard.catalog.definitions import tool_problem

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def with_schema(schema: Any, key: str = "inputSchema") -> dict[str, Any]:
    return {"name": "x", "inputSchema": {"type": "object"}, key: schema}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (None, "not an object"),
        ("x", "not an object"),
        ([], "not an object"),
        (5, "not an object"),
        ({}, "no name"),
        ({"name": ""}, "no name"),
        ({"name": None}, "no name"),
        ({"name": 5, "inputSchema": {"type": "object"}}, "no name"),
        ({"name": "x" * 1025, "inputSchema": {"type": "object"}}, "longer than 1,024"),
        ({"name": "x"}, "no inputSchema"),
        ({"name": "x", "input_schema": {"type": "object"}}, "no inputSchema"),
        (with_schema(None), "inputSchema is not an object"),
        (with_schema(True), "inputSchema is not an object"),
        (with_schema([]), "inputSchema is not an object"),
        (with_schema({}), '"type": "object"'),
        (with_schema({"type": "array"}), '"type": "object"'),
        (with_schema({"type": ["object", "null"]}), '"type": "object"'),
        (with_schema({"type": "object", "properties": []}), "inputSchema.properties: "),
        (with_schema({"type": "object", "properties": {"a": 5}}), "inputSchema.properties.a: "),
        (with_schema({"type": "object", "properties": {"a": {"type": "strin"}}}), "inputSchema.properties.a.type: "),
        (with_schema({"type": "object", "required": "a"}), "inputSchema.required: "),
        (with_schema({"type": "object", "required": "long" * 1000}), "inputSchema.required: "),
        (with_schema({"type": "object", "required": ["a", "a"]}), "inputSchema.required: "),
        (with_schema({"type": "object", "properties": {"a": {"minimum": "1"}}}), "inputSchema.properties.a.minimum: "),
        (with_schema({"type": "object", "properties": {"a": {"enum": 5}}}), "inputSchema.properties.a.enum: "),
        (with_schema({"type": "object", "$defs": {"a": 5}}), "inputSchema.$defs.a: "),
        (with_schema({"type": "object", "anyOf": []}), "inputSchema.anyOf: "),
        (with_schema([], "outputSchema"), "outputSchema is not an object"),
        (with_schema({"type": "object", "properties": 5}, "outputSchema"), "outputSchema.properties: "),
        (with_schema(5, "title"), "title: "),
        (with_schema(5, "description"), "description: "),
        (with_schema([], "annotations"), "annotations: "),
        (with_schema({"readOnlyHint": "yes"}, "annotations"), "annotations.readOnlyHint: "),
        (with_schema({"destructiveHint": 1}, "annotations"), "annotations.destructiveHint: "),
        (with_schema({}, "icons"), "icons: "),
        (with_schema([{"src": 5}], "icons"), "icons.0.src: "),
        (with_schema([], "_meta"), "_meta: "),
    ],
)
def test_a_bad_definition_is_told_by_what_is_wrong_with_it(tool: object, words: str) -> None:
    """Every kind of bad definition is refused with a reason that says where and what."""
    problem = tool_problem(tool)
    assert problem is not None
    assert words in problem
    assert len(problem) < 400


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "properties": {"a": True, "b": {}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "const": None, "maximum": 2**70}}},
        {"type": "object", "oneOf": [{"required": ["a"]}], "x-vendor": {"any": None}},
        {"type": "object", "if": {"required": ["a"]}, "then": {"dependentRequired": {"a": ["b"]}}},
        {"type": "object", "properties": {"a": {"pattern": r"^(?<year>\d+)$", "format": "unheard-of"}}},
        {"$schema": DRAFT_2020, "type": "object", "properties": {"a": {"prefixItems": [{}], "items": False}}},
        {"$schema": DRAFT_2020 + "#", "type": "object"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object", "$recursiveAnchor": True},
        {"$schema": DRAFT_07, "type": "object", "definitions": {"a": {}}, "properties": {"a": {"items": [{}, {}]}}},
        {"$schema": "http://json-schema.org/draft-07/schema", "type": "object"},
        {"$schema": "https://json-schema.org/draft-07/schema#", "type": "object"},
        {"$schema": "http://json-schema.org/draft-06/schema#", "type": "object"},
        {"$schema": DRAFT_04, "type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
        deep(60),
    ],
)
@pytest.mark.parametrize("key", ["inputSchema", "outputSchema"])
def test_good_schemas_of_every_draft_are_taken(schema: dict[str, Any], key: str) -> None:
    """A schema that is right in its own draft is fine, whatever it holds, and is not changed by looking at it."""
    before = repr(schema)
    assert tool_problem(with_schema(schema, key)) is None
    assert repr(schema) == before


@pytest.mark.parametrize(
    ("dialect", "fine"),
    [(DRAFT_04, True), (DRAFT_07, False), (DRAFT_2020, False), (None, False), ("https://x.y/z", False)],
)
def test_a_schema_is_judged_by_its_own_draft(dialect: str | None, fine: bool) -> None:
    """What draft-04 allowed and later drafts do not is told apart; without a known draft the newest one judges."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}
    if dialect is not None:
        schema["$schema"] = dialect
    assert (tool_problem(with_schema(schema)) is None) is fine


@pytest.mark.parametrize(
    "more", [{}, {"outputSchema": None}, {"description": None}, {"title": None, "annotations": None}]
)
def test_what_is_not_there_is_no_problem(more: dict[str, Any]) -> None:
    """Only name and input schema are a must; null means not there."""
    assert tool_problem({"name": "x", "inputSchema": {"type": "object"}, **more}) is None


def test_fields_nobody_knows_are_no_problem() -> None:
    """A newer protocol's fields, at any level, do not keep a tool out."""
    rich = {
        "name": "x",
        "inputSchema": {"type": "object"},
        "annotations": {"title": "X", "readOnlyHint": True, "futureHint": [1]},
        "icons": [{"src": "data:image/png;base64,", "theme": "dark", "future": {}}],
        "_meta": {"vendor/thing": {"n": 2**70}},
        "execution": {"taskSupport": "optional"},
        "futureField": {"a": None},
        "output_schema": 5,
        "input_schema": 5,
        "meta": 5,
    }
    assert tool_problem(rich) is None


def dialects(address: str) -> dict[str, dict[str, Any]]:
    """Schemas that point elsewhere, each of a different kind."""
    return {
        "dialect": {"$schema": f"{address}/schema", "type": "object"},
        "dialect that looks like 2020-12": {"$schema": f"{address}/draft/2020-12/schema", "type": "object"},
        "dialect that looks like draft-07": {"$schema": f"{address}/draft-07/schema#", "type": "object"},
        "address inside of an address": {
            "$schema": f"{address}/?https://json-schema.org/draft/2020-12/schema",
            "type": "object",
        },
        "ref": {"type": "object", "properties": {"a": {"$ref": f"{address}/a.json"}}},
        "top ref": {"type": "object", "$ref": f"{address}/a.json#/x"},
        "dynamic ref": {"type": "object", "$dynamicRef": f"{address}/a.json"},
        "id": {"$id": f"{address}/id", "type": "object", "properties": {"a": {"$ref": "other.json"}}},
        "inner dialect": {
            "type": "object",
            "properties": {"a": {"$id": f"{address}/i", "$schema": f"{address}/draft-07/schema", "type": "string"}},
        },
    }


@pytest.mark.parametrize("kind", list(dialects("")))
@pytest.mark.parametrize("key", ["inputSchema", "outputSchema"])
def test_nothing_is_fetched_to_judge_a_schema(kind: str, key: str) -> None:
    """A schema that points elsewhere is judged as plain JSON Schema, and nobody is asked for the rest of it."""
    with listening() as ear:
        problem = tool_problem(with_schema(dialects(ear.url)[kind], key))
    assert ear.visits == []
    assert problem is None


@pytest.mark.parametrize(
    "dialect",
    [
        5,
        None,
        "",
        "draft-07",
        "urn:draft-07",
        "file:///etc/2020-12",
        "JSON Schema 2020-12",
        [],
        "::",
        DRAFT_07 + "/../x",
        DRAFT_2020 + ".local",
    ],
)
def test_an_odd_dialect_is_no_reason_to_refuse(dialect: object) -> None:
    """A `$schema` that means nothing to anybody is passed over, and the rest of the schema is still judged."""
    assert tool_problem(with_schema({"$schema": dialect, "type": "object"})) is None
    assert tool_problem(with_schema({"$schema": dialect, "type": "object", "required": 5})) is not None
