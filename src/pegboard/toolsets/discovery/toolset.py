"""The discovery toolset on a board."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.tool import Tool
from pegboard.toolsets.discovery.tools import discovery_tools
from pegboard.toolsets.toolset import BoardApi, Toolset


class DiscoveryToolset(Toolset):
    """Find a tool, look at it, load it, call it."""

    name = "discovery"

    def __init__(self, board: BoardApi) -> None:
        self._tools = discovery_tools(board)

    def tools(self) -> Sequence[Tool]:
        """The six of them."""
        return self._tools


TOOLSET = DiscoveryToolset
