"""The tasks toolset on a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.clients.caller import Caller, acting_for
from pegboard.tool import Tool
from pegboard.toolsets.tasks.graph import draw_graph
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
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


TOOLSET = TasksToolset
