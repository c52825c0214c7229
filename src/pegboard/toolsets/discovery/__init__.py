"""The discovery toolset: find a tool, look at it, load it, call it."""

from pegboard.toolsets.discovery.house import House
from pegboard.toolsets.discovery.tools import NAMES, ToolFind, discovery_tools

__all__ = ["NAMES", "House", "ToolFind", "discovery_tools"]
