"""How OpenAPI describes one operation, and the schemas that several share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

Schema = dict[str, Any]
Operation = dict[str, Any]
Parameter = dict[str, Any]

_LONGEST_SUMMARY = 100
_LONGEST_REST = 400
_SENTENCE_END = re.compile(r"(?<=[.;])\s+")
# Of what is too long, all up to its last comma or colon.
_CLAUSE_END = re.compile(r"[,:;](?=[^,:;]*$)")
_TOOL_NAME = re.compile(r"\b[a-z]+_[a-z_]+\b")
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


def with_body(
    described: Operation, schema: Schema, *, required: bool, example: Mapping[str, Any] | None = None
) -> Operation:
    """An operation that takes a JSON object, with one that it would take."""
    body = {"schema": schema, "example": dict(example or {})}
    return {**described, "requestBody": {"required": required, "content": {"application/json": body}}}


def summarize(text: str) -> tuple[str, str]:
    """A description as one line, and what is left of it for people: words for models are theirs."""
    first, _, rest = text.partition("\n")
    sentence, *more = _SENTENCE_END.split(first.strip())
    rest = " ".join([*more, rest]).strip()
    if len(sentence) > _LONGEST_SUMMARY:
        rest = text
        sentence = _CLAUSE_END.split(sentence[:_LONGEST_SUMMARY])[0]
    for_people = not _TOOL_NAME.search(rest) and len(rest) <= _LONGEST_REST
    return sentence.rstrip(".;:,"), rest if for_people else ""


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
