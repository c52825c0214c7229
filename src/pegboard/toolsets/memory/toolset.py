"""The memory toolset on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.config import Settings
from pegboard.tool import Tool
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.settings import MemorySettings
from pegboard.toolsets.memory.tools import memory_tools
from pegboard.toolsets.toolset import BoardApi, Toolset


class MemoryToolset(Toolset):
    """What an agent writes down, and finds again."""

    name = "memory"

    def __init__(self, board: BoardApi) -> None:
        self.memories = Memories(board.storage.database)
        self._tools = memory_tools(self.memories, lambda: board.settings.of(MemorySettings).answer_size)

    def tools(self) -> Sequence[Tool]:
        """Add, get, update, rename, delete, list, search."""
        return self._tools

    def apply(self, settings: Settings) -> None:
        """Where memories belong that nobody names a namespace for."""
        self.memories.namespace = settings.of(MemorySettings).namespace

    def last_changes(self) -> Mapping[str, int]:
        """Each namespace is for those who have it."""
        return self.memories.last_writes


TOOLSET = MemoryToolset
