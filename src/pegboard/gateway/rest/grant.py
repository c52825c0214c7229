"""A grant: how much of what there is now somebody is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard.access.access import Access
from pegboard.access.rule import DISCOVERY
from pegboard.board import Board
from pegboard.gateway.rest.operations import TEXT, Schema, list_of
from pegboard.listing.view import Filter

_COUNT: Schema = {"type": "integer", "minimum": 0}
GRANT: Schema = {
    "type": "object",
    "description": "What it is given of what there is now.",
    "required": ["tools", "servers"],
    "properties": {
        "tools": _COUNT,
        "of": {**_COUNT, "description": "How many tools there are; for admins."},
        "finding": {**_COUNT, "description": "How many of them find other tools, which everybody has."},
        "onlyHere": {**_COUNT, "description": "How many of them are only for clients on the gateway's machine."},
        "servers": list_of(TEXT),
        "notAsked": {**list_of(TEXT), "description": "Servers among them whose tools are not known yet."},
        "toolsets": {**list_of(TEXT), "description": "Which of Pegboard's own toolsets it has tools of."},
    },
}


@dataclass(frozen=True, slots=True)
class Grant:
    """Tools and servers that somebody is given."""

    tools: int
    total: int
    finding: int
    only_here: int
    servers: tuple[str, ...]
    # Servers among them whose tools are not known yet.
    unasked: tuple[str, ...]
    toolsets: tuple[str, ...]

    def to_dict(self, *, with_total: bool = True) -> dict[str, Any]:
        """As programs read it; how many tools there are in all is for admins."""
        row: dict[str, Any] = {"tools": self.tools, "servers": list(self.servers), "toolsets": list(self.toolsets)}
        row |= {"of": self.total} if with_total else {}
        row |= {"finding": self.finding} if self.finding else {}
        row |= {"onlyHere": self.only_here} if self.only_here else {}
        return {**row, "notAsked": list(self.unasked)} if self.unasked else row


async def find_grant(board: Board, access: Access | None, *, remote: bool = False) -> Grant:
    """What this access gives now."""
    wanted = Filter(access=access, remote=remote)
    every = await board.lists.view_in_slices(Filter())
    given = await board.lists.view_in_slices(wanted)
    toolsets = {tool.toolset for tool in given.items if tool.toolset not in {None, DISCOVERY}}
    enabled = sorted(name for name, server in board.servers.items() if server.spec.enabled)
    servers = tuple(name for name in enabled if wanted.admits_server(name))
    return Grant(
        len(given.items),
        len(every.items),
        sum(tool.toolset == DISCOVERY for tool in given.items),
        sum(tool.local_only for tool in given.items),
        servers,
        tuple(name for name in servers if board.registry.server(name) is None),
        tuple(sorted(filter(None, toolsets))),
    )
