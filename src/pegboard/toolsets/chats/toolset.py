"""The chats toolset on a board."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.config import Settings
from pegboard.tool import Tool
from pegboard.toolsets.chats.chats import Chats
from pegboard.toolsets.chats.current import CurrentDialog
from pegboard.toolsets.chats.index import chat_index
from pegboard.toolsets.chats.settings import ChatsSettings
from pegboard.toolsets.chats.tools import chat_tools
from pegboard.toolsets.toolset import BoardApi, Toolset


class ChatsToolset(Toolset):
    """What was asked and answered in an editor's chats."""

    name = "chats"

    def __init__(self, board: BoardApi) -> None:
        self._index = chat_index()
        self.chats = Chats(self._index, ())
        self._tools = chat_tools(self.chats, CurrentDialog(self.chats, board.workspace))

    def tools(self) -> Sequence[Tool]:
        """Read, list and search."""
        return self._tools

    def apply(self, settings: Settings) -> None:
        """Where chats are looked for, and whether clients on other machines may read them."""
        own = settings.of(ChatsSettings)
        self.chats.look_at_exports(own.exports)
        self.chats.allows_remote = own.remote

    async def close(self) -> None:
        """Finish what is under way, then close the index."""
        await self.chats.close()
        await self._index.close()


TOOLSET = ChatsToolset
