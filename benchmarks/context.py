"""What tools cost in a prompt: every schema, against finding, loading and calling one.

`python -m benchmarks.context [FILE]`: FILE is JSON, server → tools as `tools/list` gives them; by default
`../shared/real-tools.json`. A token is four bytes of UTF-8.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.config import Settings
from pegboard.listing.loaded import session_board_key
from pegboard.listing.view import ListKey
from pegboard.log import configure
from pegboard.names import fold_server_name
from pegboard.storage import SqliteDatabase, Storage

QUERIES = (
    "create a pull request",
    "take a screenshot of a page",
    "read a file",
    "query a database",
    "draw a bar chart",
)


def tokens(value: Any) -> float:
    """The size of a message, in tokens."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) / 4


async def measure(catalogue: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Tokens of each part of a conversation."""
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(SqliteDatabase(Path(folder) / "pegboard.db"))
        async with Board(Settings(expose="search"), storage=storage) as board:
            for server, tools in catalogue.items():
                board.registry.register_mcp_tools(fold_server_name(server), tools).unwrap()
            caller = Caller(Client(session="s", board=session_board_key("s")))
            every = [tool.definition for tool in board.registry.all() if tool.server_name is not None]
            first = board.lists.list_for(ListKey(board=caller.client.board)).definitions
            finds, loads, calls = [], [], []
            for query in QUERIES:
                found = await board.calls.call("tool_find", {"arguments": {"query": query}}, caller)
                finds.append(tokens(found))
                names = [hit["name"] for hit in found["structuredContent"]["data"]["tools"][:1]]
                loads.append(tokens(await board.calls.call("tool_load", {"arguments": {"names": names}}, caller)))
                calls.append(tokens({"name": names[0], "arguments": {}}))
            again = board.lists.list_for(ListKey(board=caller.client.board)).definitions
            return {
                "tools": len(every),
                "all": tokens(every),
                "search": tokens(first),
                "find": max(finds),
                "load": sum(loads) / len(loads),
                "call": sum(calls) / len(calls),
                "again": (tokens(again) - tokens(first)) / len(QUERIES),
            }


def main() -> None:
    """Print the table."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/real-tools.json")
    if not given.exists():
        raise SystemExit(f"{given} is not there: name a file with tools, server → list")
    configure("warning")
    catalogue = json.loads(given.read_text("utf-8"))
    cost = asyncio.run(measure(catalogue))
    print(f"{len(catalogue)} servers, {cost['tools']:.0f} tools; a token is four bytes")
    print(f"tools/list, all      {cost['all']:>9,.0f} tokens")
    print(f"tools/list, search   {cost['search']:>9,.0f} tokens  ({1 - cost['search'] / cost['all']:.1%} fewer)")
    print(f"tool_find            {cost['find']:>9,.0f} tokens at most, of {len(QUERIES)} queries")
    print(f"tool_load of one     {cost['load']:>9,.0f} tokens, mean of {len(QUERIES)} tools")
    print(f"its place in a list  {cost['again']:>9,.0f} tokens")
    print(f"its call             {cost['call']:>9,.0f} tokens, beside its own arguments and result")
    trip = sum(cost[part] for part in ("find", "load", "again", "call"))
    print(f"find + load + call   {trip:>9,.0f} tokens")


if __name__ == "__main__":
    main()
