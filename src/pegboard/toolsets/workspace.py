"""The folder that a client works in, as far as anybody tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from pegboard.clients.caller import Caller, current
from pegboard.exactjson import as_object
from pegboard.result import unavailable

# A client that is asked for its folders and says nothing keeps nobody waiting. In 2026-07-28 the question is the answer
# to its request, and it comes back with the folders when it has them.
PATIENCE = {"handshake": 2.0, "modern": 60.0}


class Workspace:
    """Knows the folders of the client that calls now: those in its address, else its roots, else the ones set here."""

    def __init__(self, configured: Callable[[], str | None] = lambda: None) -> None:
        self.configured = configured

    @staticmethod
    def is_elsewhere() -> bool:
        """Whether the client is on another machine, so that a path that it names need not be meant for this one."""
        return (current.get(None) or Caller()).client.endpoint.remote

    async def folders(self) -> list[str] | None:
        """Paths or `file:` addresses; `None` if nobody tells."""
        caller = current.get(None) or Caller()
        if caller.client.workspace:
            return [caller.client.workspace]
        return await self.roots() or ([default] if (default := self.configured()) else None)

    async def roots(self) -> list[str] | None:
        """The folders that the client itself names, if it names any."""
        try:
            return await self._list_roots()
        except Exception:
            # Whatever went wrong with that question, the one that was asked can still be answered.
            return None

    async def client_folders(self) -> list[str] | None:
        """The folders that bind a client: the one in its address, else its roots; `None` if it names none.

        A client that has roots and does not say which is told apart from one that has none: nobody knows its bounds.
        """
        caller = current.get(None) or Caller()
        if caller.client.workspace:
            return [caller.client.workspace]
        try:
            return await self._list_roots()
        except Exception:
            raise unavailable("your client did not say which folders it works in") from None

    @staticmethod
    async def _list_roots() -> list[str] | None:
        caller = current.get(None)
        if caller is None or caller.ask is None or "roots" not in caller.client.capabilities:
            return None
        async with asyncio.timeout(PATIENCE[caller.client.era]):
            answer = await caller.on_request("roots/list", {}, None)
        listed: object = answer.get("roots")
        roots = (as_object(root) or {} for root in (cast("list[object]", listed) if isinstance(listed, list) else ()))
        return [uri for root in roots if isinstance(uri := root.get("uri"), str) and uri] or None
