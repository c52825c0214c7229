"""Definitions of tools: checks what a server says of a tool, before it can spoil a client's whole list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import jsonschema_rs

from pegboard import exactjson
from pegboard.hidden_text import explain_hidden_text, may_hide
from pegboard.names import LONG_NAME, MAX_OWN_NAME

# The whole address must be one of these: any other is one the validator would go and fetch.
_DRAFTS = frozenset({"draft/2020-12", "draft/2019-09", "draft-07", "draft-06", "draft-04"})
_DIALECT = re.compile(r"https?://json-schema\.org/([a-z0-9/-]+)/schema#?")


def tool_problem(tool: object, *, allows_hidden_text: bool = False) -> str | None:
    """Why a tool cannot be registered, or `None`. Nothing is ever fetched for the answer."""
    if not isinstance(tool, dict):
        return "it is not an object"
    tool = cast("dict[str, Any]", tool)
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    if len(name) > MAX_OWN_NAME:
        return LONG_NAME
    if not exactjson.is_well_formed(name):
        return "its name is not valid Unicode: half of a surrogate pair"
    if "inputSchema" not in tool:
        return "it has no inputSchema"
    return (
        _schema_problem("inputSchema", tool["inputSchema"])
        or (_schema_problem("outputSchema", tool["outputSchema"]) if tool.get("outputSchema") is not None else None)
        or _shape_problem(tool)
        or (None if allows_hidden_text else hiding_problem(tool))
    )


def hiding_problem(definition: Any) -> str | None:
    """Why a definition would show a model what a person does not see, or `None`."""
    try:
        if not may_hide(exactjson.dump(definition)):
            return None
    except exactjson.NotJson:
        # It is left out of every list.
        return None
    problem = explain_hidden_text(definition)
    return None if problem is None else f'{problem}; with "unicode": "allow" in the server\'s entry it is let through'


def _schema_problem(key: str, schema: object) -> str | None:
    if not isinstance(schema, dict):
        return f"{key} is not an object"
    schema = cast("dict[str, Any]", schema)
    # What comes out of a tool may be anything since 2026-07-28; older clients are not told of it.
    if key == "inputSchema" and schema.get("type") != "object":
        return f'{key} must have "type": "object"'
    try:
        jsonschema_rs.meta.validate(_with_known_draft(schema))
    except jsonschema_rs.ValidationError as exc:
        where = ".".join(str(step) for step in exc.instance_path)
        return f"{key}{'.' + where if where else ''}: {exc.message[:200]}"
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as exc:
        return f"{key}: {str(exc)[:200]}"
    return None


def _with_known_draft(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of a dialect of its own is judged as plain JSON Schema: its dialect would have to be fetched."""
    dialect = schema.get("$schema")
    known = _DIALECT.fullmatch(dialect) if isinstance(dialect, str) else None
    if known is not None and known[1] in _DRAFTS:
        return dict(schema)
    return {key: value for key, value in schema.items() if key != "$schema"}


def _shape_problem(tool: dict[str, Any]) -> str | None:
    """Fields of the wrong kind would make a strict client refuse the whole list."""
    from mcp_types import Tool
    from pydantic import ValidationError

    try:
        Tool.model_validate(tool, by_name=False, strict=True)
    except ValidationError as exc:
        if not exactjson.is_well_formed(tool):
            # The SDK takes no half of a surrogate pair, which is carried in titles and descriptions.
            return _shape_problem(exactjson.well_formed(tool))
        error = exc.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(step) for step in error['loc'])}: {error['msg']}"
    return None
