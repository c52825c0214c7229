"""What the board knows, as rows for people and programs: the same for REST and for the commands."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pegboard.access.access import Access
from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.listing.view import EVERYTHING, Filter
from pegboard.servers.connection_key import is_per_user
from pegboard.servers.http.refusal import SIGN_IN_WORDS, wants_sign_in
from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState
from pegboard.tool import RegisteredTool

# A server may have thousands of tools that cannot be registered.
_MOST_LEFT_OUT = 100
# States of a server that is there for whoever has signed in.
_WORKING = {ServerState.CONNECTED, ServerState.IDLE, ServerState.REGISTERED}


def server_rows(board: Board, client: Client | None = None) -> list[dict[str, Any]]:
    """Every configured server that somebody may know of, by name."""
    wanted = EVERYTHING if client is None else client.filter
    servers = sorted((name, server) for name, server in board.servers.items() if wanted.admits_server(name))
    return [server_row(board, server, client) for _, server in servers]


def server_row(board: Board, server: Server, client: Client | None = None) -> dict[str, Any]:
    """One server: how it is, and what there is to say about it."""
    known = board.registry.server(server.name)
    wanted = EVERYTHING if client is None else client.filter
    access = wanted.access
    if access is not None and not access.admits_whole_server(server.name):
        return _partial_row(board, server, access)
    count = board.configured.tool_count(server.name)
    stale = board.discovery.stale_since.get(server.name)
    next_try = server.next_try_in if server.next_try_in is not None else board.discovery.next_try_in(server.name)
    row: dict[str, Any] = {
        "name": server.name,
        "state": server.state.value,
        "enabled": server.spec.enabled,
        "transport": server.spec.transport,
        "tools": count,
        "seen": known is not None or count > 0,
        "lastSeen": moment(server.last_seen or (known.discovered_at if known else None)),
        "latencyMs": None if server.latency is None else round(server.latency * 1000, 1),
        "lastError": _last_error(board, server, client),
        "era": server.era,
        "protocolVersion": server.hello.version if server.hello else None,
        "staleSince": moment(stale),
        "nextTryInSeconds": None if next_try is None else round(next_try, 1),
    }
    if needs_login(server):
        row["needsLogin"] = True
    if known is not None and known.conflicts:
        row["conflicts"] = list(known.conflicts[:_MOST_LEFT_OUT])
    if known is not None and known.rejected:
        row["rejected"] = dict(islice(known.rejected.items(), _MOST_LEFT_OUT))
    if cuts := board.discovery.cuts.get(server.name):
        row["cut"] = list(cuts.values())
    if client is None or wanted.holder is None or not is_per_user(server.spec):
        return row
    return _own_row(board, server, client, row)


def _last_error(board: Board, server: Server, client: Client | None) -> str | None:
    said = server.last_error
    return said if said is None or client is None else board.sign_in_advice.words(server.name, said, client)


def needs_login(server: Server) -> bool:
    """Whether a server waits for somebody who signs in to it."""
    said = server.last_error or ""
    return server.state is ServerState.NEEDS_AUTH and server.spec.signs_in and said.startswith(SIGN_IN_WORDS)


def state_for(board: Board, server: Server, wanted: Filter) -> ServerState:
    """How a server is for whoever has this filter: one that works for others may want their own sign-in."""
    waits = server.state in _WORKING and board.discovery.own.needs_sign_in(server.name, wanted.holder)
    return ServerState.NEEDS_AUTH if waits else server.state


def _own_row(board: Board, server: Server, client: Client, row: dict[str, Any]) -> dict[str, Any]:
    """The same for one of those who each sign in to it: nothing that tells of what others are shown."""
    wanted = client.filter
    row = {key: value for key, value in row.items() if key not in {"conflicts", "rejected", "cut"}}
    row["tools"] = sum(1 for tool in board.all_tools() if tool.server_name == server.name and wanted.admits(tool))
    if state_for(board, server, wanted) is not server.state:
        said = wants_sign_in(server.name).removeprefix(f"{server.name} ")
        said = board.sign_in_advice.words(server.name, said, client)
        row |= {"state": ServerState.NEEDS_AUTH.value, "lastError": said, "needsLogin": True}
    elif server.state in _WORKING:
        # It may have been said to somebody else.
        row["lastError"] = None
    return row


def _partial_row(board: Board, server: Server, access: Access) -> dict[str, Any]:
    """The same for somebody who may see a part of it: nothing that tells of the rest."""
    row = server_row(board, server)
    row["tools"] = sum(1 for tool in board.all_tools() if tool.server_name == server.name and access.admits(tool))
    return {key: value for key, value in row.items() if key not in {"conflicts", "rejected", "cut", "lastError"}} | {
        "lastError": None
    }


def tool_rows(
    board: Board, wanted: Filter = EVERYTHING, status: str | None = None, client: Client | None = None
) -> list[dict[str, Any]]:
    """Every tool that passes the filter, by name, with whether it can be used."""
    rows = [tool_row(board, wanted.pick(tool), client) for tool in board.all_tools() if wanted.admits(tool)]
    if status is None:
        return rows
    if status == "unavailable":
        return [row for row in rows if row["status"] != "available"]
    return [row for row in rows if row["status"] == status]


def tool_row(board: Board, tool: RegisteredTool, client: Client | None = None) -> dict[str, Any]:
    """One tool in brief."""
    return {
        "name": tool.name,
        "server": tool.server_name,
        "description": tool.definition.get("description", ""),
        "tokens": tool.tokens,
        **board.availability(tool, client).to_dict(),
    }


async def search_rows(board: Board, query: str, limit: int, caller: Caller | None = None) -> dict[str, Any]:
    """What `tool_find` answers, for whoever is no model."""
    return await board.search(query, limit, caller or Caller())


def moment(when: float | None) -> str | None:
    """A time as programs write it."""
    return None if when is None else datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds")
