"""The current dialog: the newest one, in the folder that the client works in, as far as that is known."""

from __future__ import annotations

import asyncio

from pegboard.relay.caller import current
from pegboard.toolsets.chats.chats import Chats, NotThere
from pegboard.toolsets.chats.fields import a_list, a_name, an_object
from pegboard.toolsets.chats.session import Session

# A client that is asked for its folders and says nothing keeps nobody waiting.
_PATIENCE = 2.0


class CurrentDialog:
    """Knows which dialog a call without a session is about."""

    def __init__(self, chats: Chats, workspace: str | None = None, *, patience: float = _PATIENCE) -> None:
        self._chats = chats
        self.workspace = workspace
        self._patience = patience

    async def session(self) -> Session:
        """The dialog, or `NotThere`."""
        found = await self._chats.newest(await self.places())
        if found is None:
            raise NotThere("No active dialog found")
        return found

    async def places(self) -> list[str] | None:
        """The folders that it has to be in: the one that was set, else those that the client tells."""
        return [self.workspace] if self.workspace else await self._roots()

    async def _roots(self) -> list[str] | None:
        caller = current.get(None)
        # In 2026-07-28 a server asks by ending the call with a question, which a static tool has no way to do.
        if caller is None or caller.ask is None or "roots" not in caller.capabilities:
            return None
        try:
            async with asyncio.timeout(self._patience):
                answer = await caller.asked("roots/list", {}, None)
        except Exception:
            # Whatever went wrong with that question, the one that was asked can still be answered.
            return None
        uris = (a_name(an_object(root).get("uri")) for root in a_list(answer.get("roots")))
        return [uri for uri in uris if uri is not None] or None
