"""A static tool made from a plain function and its definition, in MCP's words or in Anthropic's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pegboard.tool import ResultTool


class HandlerTool(ResultTool):
    """A static tool made from a function."""

    name = ""
    description = ""
    # A program's function gets what was given.
    fills_defaults = False

    def __init__(self, handler: Any, definition: Mapping[str, Any]) -> None:
        self._handler = handler
        self._definition = dict(definition)
        self.input_schema = definition["inputSchema"]  # pyright: ignore[reportAttributeAccessIssue]

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        answer = self._handler(dict(arguments))
        return await answer if hasattr(answer, "__await__") else answer

    def definition(self) -> dict[str, Any]:
        return dict(self._definition)


def mcp_definition(name: object, definition: object) -> object:
    """A definition in MCP's words; Anthropic's differ in one."""
    if not isinstance(definition, Mapping):
        return definition
    named: dict[str, Any] = {**cast("Mapping[str, Any]", definition), "name": name}
    if "inputSchema" not in named and "input_schema" in named:
        named["inputSchema"] = named.pop("input_schema")
    return named
