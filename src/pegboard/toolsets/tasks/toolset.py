"""The tasks toolset on a board."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pegboard.clients.caller import Caller, acting_for
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.tool import Tool
from pegboard.toolsets.tasks.changes import overview
from pegboard.toolsets.tasks.graph import draw_graph
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.rows import format_dependencies
from pegboard.toolsets.tasks.tools import RegistryList, task_tools
from pegboard.toolsets.toolset import BoardApi, Toolset


class TasksToolset(Toolset):
    """The tasks of an OpenSpec folder."""

    name = "tasks"

    def __init__(self, board: BoardApi) -> None:
        workspace = board.workspace
        project = Project(
            workspace.client_folders, configured=workspace.configured, is_elsewhere=workspace.is_elsewhere
        )
        self.registry = Registry(board.storage.database, project)
        self._gate = board.gate
        self._tools = task_tools(self.registry)

    def tools(self) -> Sequence[Tool]:
        """Those of the registry and those of specs."""
        return self._tools

    async def graph(self, form: str, change: str | None, path: str | None, caller: Caller) -> dict[str, Any]:
        """Who waits for whom, for whoever may list tasks: it shows what the list does."""
        self._gate.own_tool(self.name, RegistryList.name, caller.client.filter)
        with acting_for(caller):
            return await draw_graph(self.registry, form, change, path=path)

    async def changes(self, path: str | None, caller: Caller) -> dict[str, Any]:
        """Changes and which waits for which, for whoever may list tasks."""
        self._gate.own_tool(self.name, RegistryList.name, caller.client.filter)
        with acting_for(caller):
            try:
                state = await self.registry.state(path)
            except ToolFailure as exc:
                if exc.error.code is not ToolErrorCode.NOT_FOUND:
                    raise
                # Most people have no such folder: whoever looks is told so, and nothing is wrong.
                return {"changes": [], "left_out": 0, "held_up": [], "message": str(exc)}
        return await asyncio.to_thread(overview, state)

    async def task(self, task_id: str, path: str | None, caller: Caller) -> dict[str, Any]:
        """A task with what it depends on and who waits for it, for whoever may list tasks."""
        self._gate.own_tool(self.name, RegistryList.name, caller.client.filter)
        with acting_for(caller):
            return format_dependencies(await self.registry.deps(task_id, path=path))


TOOLSET = TasksToolset
