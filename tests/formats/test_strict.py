"""Strict mode: only where a schema meets its rules as it is."""

from __future__ import annotations

from typing import Any

import pytest
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic import BaseModel, ConfigDict

from pegboard.formats.strict import is_strict


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = closed(a=schema)
    return schema


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(a=TEXT, b={"type": ["integer", "null"], "minimum": 1, "description": "d"}),
        closed(a={"type": "array", "items": closed(b=TEXT), "maxItems": 3}),
        closed(a={"anyOf": [TEXT, {"type": "null"}]}, b={"enum": ["x", 1]}, c={"const": "y"}),
        {**closed(a={"$ref": "#/$defs/A"}, b={"$ref": "#"}), "$defs": {"A": closed(a={"$ref": "#/$defs/A"})}},
        closed(a={**TEXT, "format": "date-time", "pattern": "^2"}),
        nested(10),
        closed(a={"enum": [f"{number:061}" for number in range(250)]}),
    ],
)
def test_schemas_that_are_strict(schema: dict[str, Any]) -> None:
    """Closed objects, everything required, known words; OpenAI's own helper would change nothing."""
    assert is_strict(schema)
    assert _ensure_strict_json_schema(schema, path=(), root=schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {**closed(a=TEXT), "required": []},
        {**closed(a=TEXT), "additionalProperties": True},
        {**closed(a=TEXT), "required": ["a", "b"]},
        {key: value for key, value in closed().items() if key != "required"},
        closed(a={"type": "object", "properties": {}}),
        closed(a={}),
        closed(a=True),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "items": {}}),
        closed(a={**TEXT, "default": "x"}),
        closed(a={**TEXT, "minLength": 1}),
        closed(a={**TEXT, "format": "uri"}),
        closed(a={"oneOf": [TEXT]}),
        closed(a={"allOf": [TEXT]}),
        closed(a={"not": TEXT, "type": "string"}),
        closed(a={"enum": [{"b": 1}]}),
        closed(a={"type": "anything"}),
        closed(a={"$ref": "#/$defs/Gone"}),
        closed(a={"$ref": "https://example.com/a"}),
        {**closed(a={"$ref": "#/$defs/A", "description": "d"}), "$defs": {"A": TEXT}},
        {**closed(), "anyOf": [closed()]},
        {"type": "string"},
        nested(11),
        closed(a={"enum": list(range(1001))}),
        closed(a={"enum": [f"{number:061}" for number in range(251)]}),
        closed(**{f"p{number}": TEXT for number in range(5001)}),
        closed(**{"p" * 120_001: TEXT}),
    ],
)
def test_schemas_that_are_not(schema: dict[str, Any]) -> None:
    """Each for one reason."""
    assert not is_strict(schema)


def test_a_closed_model_of_pydantic_is_strict() -> None:
    """As the decorator's functions without defaults are."""

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="forbid")
        a: int
        b: list[str] | None

    assert is_strict(Arguments.model_json_schema())
