"""How OpenAPI describes one operation, and the schemas that several share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

Schema = dict[str, Any]
Operation = dict[str, Any]
Parameter = dict[str, Any]

TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}


def operation(summary: str, data: Schema, *parameters: Parameter) -> Operation:
    """One that answers with data, or says what failed."""
    success = {
        "type": "object",
        "required": ["success", "data"],
        "properties": {"success": {"const": True}, "data": data},
    }
    return {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {
            "200": {"description": "It worked.", "content": {"application/json": {"schema": success}}},
            "default": {
                "description": "It failed; the status fits the code.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
            },
        },
    }


def plain_operation(summary: str, kind: str = "application/json") -> Operation:
    """One that answers in a form of its own."""
    return {"summary": summary, "responses": {"200": {"description": "It is.", "content": {kind: {}}}}}


def with_body(described: Operation, schema: Schema, *, required: bool) -> Operation:
    """An operation that takes a JSON object."""
    return {**described, "requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def object_with(key: str, schema: Schema, **optional: Schema) -> Schema:
    """An object that has this, and may have the others."""
    return {"type": "object", "required": [key], "properties": {key: schema, **optional}}


def list_of(items: Schema) -> Schema:
    """A list of such."""
    return {"type": "array", "items": items}


def path_parameter(name: str, **more: Any) -> Parameter:
    """A text in the path."""
    return {"name": name, "in": "path", "required": True, "schema": {**TEXT, **more}}


def query_parameter(name: str, description: str, *, required: bool = False) -> Parameter:
    """A text in the query."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": TEXT}


def query_parameters(
    properties: Mapping[str, Any], required: Sequence[str] = (), names: Mapping[str, str] = MappingProxyType({})
) -> list[Parameter]:
    """A tool's parameters in the query, some under other names."""
    return [
        {
            "name": names.get(key, key),
            "in": "query",
            "required": key in required,
            "description": schema["description"],
            "schema": schema,
        }
        for key, schema in properties.items()
    ]
