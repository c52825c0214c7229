"""The results toolset on a board."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.config import Settings
from pegboard.tool import Tool
from pegboard.toolsets.installed import USUAL
from pegboard.toolsets.results.tools import ResultRead, ResultReadForHandles
from pegboard.toolsets.toolset import BoardApi, Toolset


class ResultsToolset(Toolset):
    """What was left out of large results."""

    name = "results"

    def __init__(self, board: BoardApi) -> None:
        self._reader, self._reader_for_handles = ResultRead(board.results), ResultReadForHandles(board.results)
        self._takes_handles = False

    def tools(self) -> Sequence[Tool]:
        """The one, with a word on kept results as arguments where a server takes them."""
        return [self._reader_for_handles if self._takes_handles else self._reader]

    def apply(self, settings: Settings) -> None:
        """Take over whether any server takes kept results."""
        self._takes_handles = any(spec.result_handles and spec.is_usable for spec in settings.servers.values())

    def is_wanted(self, settings: Settings) -> bool:
        """It comes with all others, and with any cap: without it what was left out cannot be read."""
        return self.name in settings.toolsets or set(USUAL) <= set(settings.toolsets) or any(settings.caps)


TOOLSET = ResultsToolset
