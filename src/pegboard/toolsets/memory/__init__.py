"""The memory toolset: what an agent writes down, and finds again."""

from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link, Memory
from pegboard.toolsets.memory.tools import memory_tools

__all__ = ["Link", "Memories", "Memory", "memory_tools"]
