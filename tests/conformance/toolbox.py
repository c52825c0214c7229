"""A table of tools that lists and calls them; several tables add up to one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from conformance.asking import Call, InputNeeded
from conformance.state import Context, FixtureState

ToolRun: TypeAlias = Callable[[Call], Awaitable[types.CallToolResult]]

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def _always(_state: FixtureState) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class FixtureTool:
    described: types.Tool
    run: ToolRun
    stands: Callable[[FixtureState], bool]


class ToolBox:
    def __init__(self, *parts: "ToolBox") -> None:
        self._tools: dict[str, FixtureTool] = {}
        for part in parts:
            self._tools |= part._tools

    def tool(
        self,
        name: str,
        description: str,
        schema: dict[str, Any] = NO_ARGUMENTS,
        stands: Callable[[FixtureState], bool] = _always,
    ) -> Callable[[ToolRun], ToolRun]:
        """Register the decorated function; `stands` says whether the tool is there at the moment."""

        def register(run: ToolRun) -> ToolRun:
            described = types.Tool(name=name, description=description, input_schema=schema)
            self._tools[name] = FixtureTool(described, run, stands)
            return run

        return register

    async def list_tools(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        standing = (entry for entry in self._tools.values() if entry.stands(ctx.lifespan_context))
        return types.ListToolsResult(tools=[entry.described for entry in standing])

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        entry = self._tools.get(params.name)
        if entry is None or not entry.stands(ctx.lifespan_context):
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            return await entry.run(Call(ctx, params))
        except InputNeeded as needed:
            return needed.result
