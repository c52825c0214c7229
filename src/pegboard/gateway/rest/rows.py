"""What the board knows, as rows for people and programs: the same for REST and for the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.listing.view import EVERYTHING, Filter
from pegboard.pace import Pace
from pegboard.servers.connection_key import is_per_user
from pegboard.servers.http.refusal import SIGN_IN_WORDS, wants_sign_in
from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState
from pegboard.tool import RegisteredTool

# A server may have thousands of tools that cannot be registered.
_MOST_LEFT_OUT = 100
# Tools that are looked at before others have their turn.
_SLICE = 500
# Characters of a text in a list of brief rows.
_LONGEST = 300
# States of a server that is there for whoever has signed in.
_WORKING = {ServerState.CONNECTED, ServerState.IDLE, ServerState.REGISTERED}


def server_rows(board: Board) -> list[dict[str, Any]]:
    """Every configured server, by name, for whoever may know everything."""
    return [server_row(board, server) for _, server in sorted(board.servers.items())]


def server_row(board: Board, server: Server) -> dict[str, Any]:
    """One of them: how it is, and what there is to say about it."""
    return server_head(board, server) | {"tools": board.configured.tool_count(server.name)}


async def client_rows(board: Board, client: Client) -> list[dict[str, Any]]:
    """The same as somebody may know of them."""
    servers = sorted((name, server) for name, server in board.servers.items() if client.filter.admits_server(name))
    return await _rows_for(board, [server for _, server in servers], client)


async def client_row(board: Board, server: Server, client: Client) -> dict[str, Any]:
    """One of them."""
    (row,) = await _rows_for(board, [server], client)
    return row


async def _rows_for(board: Board, servers: Sequence[Server], client: Client) -> list[dict[str, Any]]:
    rows = [server_head(board, server, client) for server in servers]
    whole = [server.name for server in servers if is_shown_whole(server, client.filter)]
    counts = {name: board.configured.tool_count(name) for name in whole}
    counts |= await count_tools(board, {server.name for server in servers} - counts.keys(), client.filter)
    return [{**row, "tools": counts[row["name"]]} for row in rows]


def server_head(board: Board, server: Server, client: Client | None = None) -> dict[str, Any]:
    """The row of a server, but for how many tools there are."""
    known = board.registry.server(server.name)
    wanted = EVERYTHING if client is None else client.filter
    discovered = known.discovered_at if known else None
    stale = board.discovery.stale_since.get(server.name)
    next_try = server.next_try_in if server.next_try_in is not None else board.discovery.next_try_in(server.name)
    row: dict[str, Any] = {
        "name": server.name,
        "state": server.state.value,
        "enabled": server.spec.enabled,
        "transport": server.spec.transport,
        "tools": None,
        "seen": known is not None or board.configured.tool_count(server.name) > 0,
        "lastSeen": moment(server.last_seen or discovered),
        "latencyMs": None if server.latency is None else round(server.latency * 1000, 1),
        "lastError": _last_error(board, server, client),
        "era": server.era,
        "protocolVersion": server.hello.version if server.hello else None,
        "staleSince": moment(stale),
        "nextTryInSeconds": None if next_try is None else round(next_try, 1),
    }
    if needs_login(server):
        row["needsLogin"] = True
    if is_per_user(server.spec):
        row["perUser"] = True
    if is_shown_whole(server, wanted):
        return row | _tool_problems(board, server)
    # Both are another with each call, also with those of tools that are hidden.
    row |= {"lastSeen": moment(discovered), "latencyMs": None}
    if not wanted.knows_whole_server(server.name):
        return row | {"lastError": None}
    return row if client is None or not _is_signed_in_to(server, wanted) else _own_row(board, server, client, row)


def is_shown_whole(server: Server, wanted: Filter) -> bool:
    """Whether whoever has this filter sees all of a server, and what everybody else sees of it."""
    is_limited = wanted.access is not None and wanted.access.is_read_only
    return wanted.knows_whole_server(server.name) and not is_limited and not _is_signed_in_to(server, wanted)


def _is_signed_in_to(server: Server, wanted: Filter) -> bool:
    """Whether sign-ins of their own decide what a server shows."""
    return wanted.holder is not None and is_per_user(server.spec)


def _tool_problems(board: Board, server: Server) -> dict[str, Any]:
    """What is wrong with tools of a server, by their names."""
    known = board.registry.server(server.name)
    row: dict[str, Any] = {}
    if known is not None and known.conflicts:
        row["conflicts"] = list(known.conflicts[:_MOST_LEFT_OUT])
    if changed := board.decisions.count(server.name):
        row["changed"] = changed
    rejected = {**(known.rejected if known is not None else {}), **board.discovery.reviews.list_refused(server.name)}
    if rejected:
        row["rejected"] = dict(islice(rejected.items(), _MOST_LEFT_OUT))
    if cuts := board.discovery.cuts.get(server.name):
        row["cut"] = list(cuts.values())
    return row


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
    if state_for(board, server, client.filter) is not server.state:
        said = wants_sign_in(server.name).removeprefix(f"{server.name} ")
        said = board.sign_in_advice.words(server.name, said, client)
        row |= {"state": ServerState.NEEDS_AUTH.value, "lastError": said, "needsLogin": True}
    elif server.state in _WORKING:
        # It may have been said to somebody else.
        row["lastError"] = None
    return row


async def count_tools(board: Board, servers: Collection[str], wanted: Filter) -> dict[str, int]:
    """How many tools of each of these servers there are for whoever has this filter: in one pass, with turns for
    everybody else."""
    counts = dict.fromkeys(servers, 0)
    if not counts:
        return counts
    pace = Pace()
    for tool in chain(board.registry.all(), board.configured.iter_shelved()):
        if tool.server_name in counts and wanted.admits(tool):
            counts[tool.server_name] += 1
        if pace.is_over:
            await pace.rest()
    return counts


def withheld_of(board: Board, server: str) -> dict[str, int]:
    """How many tools of a server wait for somebody to approve them; nothing where none does."""
    known = board.registry.server(server)
    return {"withheld": len(known.withheld)} if known is not None and known.withheld else {}


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools somebody wants to see, and in which order."""

    wanted: Filter
    status: str | None = None
    # Small letters, each of which a tool has in its name or description.
    words: Sequence[str] = ()
    order: str = "name"
    offset: int = 0
    limit: int | None = None
    brief: bool = False

    def admits(self, tool: RegisteredTool) -> bool:
        """Whether a tool is one of them, but for its status."""
        if not self.wanted.admits(tool):
            return False
        text = f"{tool.name}\n{tool.definition.get('description', '')}".casefold() if self.words else ""
        return all(word in text for word in self.words)


async def choose_tools(board: Board, choice: ToolChoice, client: Client | None = None) -> dict[str, Any]:
    """The tools of a choice, how many there are in all, and what all of them cost in a prompt."""
    found: list[RegisteredTool] = []
    for number, tool in enumerate(board.all_tools()):
        if number % _SLICE == _SLICE - 1:
            # Others have their turn.
            await asyncio.sleep(0)
        if choice.admits(tool) and _has_status(board, tool, choice.status, client):
            found.append(choice.wanted.pick(tool))
    if choice.order == "tokens":
        found.sort(key=lambda tool: -tool.tokens)
    elif choice.order == "server":
        found.sort(key=lambda tool: tool.server_name is None)
    end = None if choice.limit is None else choice.offset + choice.limit
    shown = [tool_row(board, tool, client) for tool in found[choice.offset : end]]
    if choice.brief:
        shown = [_brief(row) for row in shown]
    return {"tools": shown, "total": len(found), "tokens": sum(tool.tokens for tool in found)}


def _has_status(board: Board, tool: RegisteredTool, status: str | None, client: Client | None) -> bool:
    if status is None:
        return True
    found = board.availability(tool, client).to_dict()["status"]
    return found != "available" if status == "unavailable" else found == status


def tool_row(board: Board, tool: RegisteredTool, client: Client | None = None) -> dict[str, Any]:
    """One tool in brief."""
    return {
        "name": tool.name,
        "server": tool.server_name,
        "description": tool.definition.get("description", ""),
        "tokens": tool.tokens,
        **board.availability(tool, client).to_dict(),
    }


def _brief(row: dict[str, Any]) -> dict[str, Any]:
    said = row.get("description")
    return {**row, "description": cut(said)} if isinstance(said, str) else row


def cut(text: str) -> str:
    """A text as a list shows it; the whole is told of the thing itself."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


async def search_rows(board: Board, query: str, limit: int, caller: Caller | None = None) -> dict[str, Any]:
    """What `tool_find` answers, for whoever is no model, and what each tool costs in a prompt."""
    caller = caller or Caller()
    answer = await board.search(query, limit, caller)
    hits: list[dict[str, Any]] = []
    for hit in answer["tools"]:
        tool = board.lookup_tool(hit["name"], caller.client.filter)
        hits.append({**hit, "tokens": 0 if tool is None else tool.tokens})
    return {**answer, "tools": hits}


def moment(when: float | None) -> str | None:
    """A time as programs write it."""
    return None if when is None else datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds")
