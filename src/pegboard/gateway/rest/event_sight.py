"""What one onlooker sees of servers and tools: whether a change was one of what they may see. Whoever sees everything
is told of every change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from pegboard.board import Board
from pegboard.clients.client import Client
from pegboard.gateway.rest.rows import is_shown_whole, server_head

_MASK = (1 << 64) - 1
# They are another at each moment, or with each call of anybody.
_UNSTEADY = frozenset({"lastSeen", "latencyMs", "staleSince", "nextTryInSeconds"})


class OnlookerSight:
    """What an onlooker saw last."""

    def __init__(self, board: Board, client: Client) -> None:
        self._board = board
        self._client = client
        self._wanted = client.filter
        # Of the list that was told of last, and of the one that was seen since: its tools, by server.
        self._list = self._newest_list = 0
        self._tools: dict[str, int] = {}
        self._servers: dict[str, int] = {}

    @property
    def digest(self) -> int:
        """The same for all who see the same, as far as it was looked at."""
        if self._wanted.access is None:
            return 0
        return hash((self._list, tuple(sorted(self._servers.items())))) & _MASK

    async def look(self) -> None:
        """See everything that there is now."""
        await self.has_other_tools()
        if self._wanted.access is not None:
            names = [name for name in self._board.servers if self._wanted.admits_server(name)]
            self._servers = {name: self._server_digest(name) for name in names}

    async def has_other_tools(self) -> bool:
        """Whether the list of tools is another than at the last look."""
        if self._wanted.access is None:
            return True
        await self._see_tools()
        before, self._list = self._list, self._newest_list
        return self._list != before

    async def _see_tools(self) -> None:
        view = await self._board.lists.view_in_slices(self._wanted)
        if view.digest == self._newest_list:
            return
        self._newest_list = view.digest
        tools = defaultdict[str, list[Hashable]](list)
        for tool in view.items:
            tools[tool.server_name or ""].append((tool.name, tool.digest))
        self._tools = {server: hash(tuple(each)) for server, each in tools.items()}

    async def has_other_server(self, name: str) -> bool:
        """Whether a server is another than at the last look, or may be where nothing of it is hidden."""
        if self._wanted.access is None:
            return True
        before = self._servers.get(name)
        server = self._board.servers.get(name)
        if server is None:
            return self._servers.pop(name, None) is not None
        # Its tools may have changed just before, of which the list tells.
        await self._see_tools()
        self._servers[name] = self._server_digest(name)
        is_all = self._client.principal.admin or is_shown_whole(server, self._wanted)
        return is_all or self._servers[name] != before

    def _server_digest(self, name: str) -> int:
        row = server_head(self._board, self._board.servers[name], self._client)
        shown = tuple((key, repr(value)) for key, value in row.items() if key not in _UNSTEADY)
        return hash((shown, self._tools.get(name)))
