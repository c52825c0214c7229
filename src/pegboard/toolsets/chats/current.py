"""The current dialog: the newest one, in the folder that the client works in, as far as that is known."""

from __future__ import annotations

from pegboard.toolsets.chats.chats import Chats, NotThere
from pegboard.toolsets.chats.session import ChatSession
from pegboard.toolsets.workspace import Workspace

# How long a call may take to read chats that nobody has read yet; it then answers with what there is.
PATIENCE = 20.0


class CurrentDialog:
    """Knows which dialog a call without a session is about."""

    def __init__(self, chats: Chats, workspace: Workspace | None = None) -> None:
        self._chats = chats
        self._workspace = workspace or Workspace()

    async def session(self) -> ChatSession:
        """The dialog, or `NotThere`."""
        found = await self._chats.newest(await self._workspace.folders(), patience=PATIENCE)
        if found is None:
            raise NotThere("No active dialog found")
        return found
