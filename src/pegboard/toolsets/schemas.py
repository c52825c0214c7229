"""The words in which tools of Pegboard's own describe their parameters and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
MAYBE_STRING: Schema = {"type": ["string", "null"]}
MAYBE_INTEGER: Schema = {"type": ["integer", "null"]}
STRINGS: Schema = {"type": "array", "items": STRING}


def text(description: str, *examples: str, **more: Any) -> Schema:
    """A parameter that is a text."""
    return {"type": "string", "description": description, "examples": list(examples), **more}


def choice(description: str, choices: Sequence[str], example: str, default: str | None = None) -> Schema:
    """A parameter that is one of a few words."""
    usual = {} if default is None else {"default": default}
    return {"enum": list(choices), "description": description, **usual, "examples": [example]}


def number(description: str, least: int, most: int | None, default: int, example: int | None = None) -> Schema:
    """A parameter that is a whole number."""
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    shown = default if example is None else example
    return {"type": "integer", "description": description, **bounds, "default": default, "examples": [shown]}


def switch(description: str) -> Schema:
    """A parameter that is on or off."""
    return {"type": "boolean", "description": description, "default": False, "examples": [True]}


def fields(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """An object with these fields, all of which are there save the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def hints(title: str, *, reads: bool = False, destroys: bool = False, again: bool = False) -> dict[str, Any]:
    """What a client may tell its user of a tool."""
    return {
        "title": title,
        "readOnlyHint": reads,
        "destructiveHint": destroys,
        "idempotentHint": reads or again,
        "openWorldHint": False,
    }


PAGINATION = fields({"total": INTEGER, "limit": INTEGER, "offset": INTEGER, "hasMore": BOOLEAN})
