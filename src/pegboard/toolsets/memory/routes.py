"""Memories over REST: each route is one of the memory tools, save what the page shows of one: the whole, a picture."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.audit.request_record import RequestRecord
from pegboard.clients.caller import acting_for
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, path_parameter, query_parameter
from pegboard.gateway.rest.params import check_query, read_number
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.tool import Tool
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.neighbourhood import MAX_NODES, MOST_FAR
from pegboard.toolsets.memory.schemas import MEMORY_OUT
from pegboard.toolsets.memory.tools import (
    MemoryAdd,
    MemoryDelete,
    MemoryFulltextSearch,
    MemoryGet,
    MemoryList,
    MemoryReadLinked,
    MemoryRename,
    MemorySearch,
    MemoryUpdate,
)
from pegboard.toolsets.memory.toolset import MemoryToolset

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

# Memories, the key that is asked for, and the namespace that whoever asks has.
_Look = tuple[Memories, str | None, str | None]
_GRAPH = {
    "key": "The memory in the middle; without one, those that changed last.",
    "depth": f"How many links away at most: 1 to {MOST_FAR}, 2 if nothing is said.",
    "limit": f"How many memories at most: 1 to {MAX_NODES}, 200 if nothing is said.",
    "namespace": "The namespace.",
}
_WHOLE = {"key": "The memory's key.", "namespace": "The namespace."}
_NODE = {
    "type": "object",
    "required": ["key", "depth", "written", "summary"],
    "properties": {
        "key": TEXT,
        "depth": {"type": "integer", "description": "How many links it is away from the first."},
        "written": {"type": "boolean", "description": "A link may lead to a memory that is not written yet."},
        "summary": TEXT,
    },
}
_LINK = {"type": "object", "properties": dict.fromkeys(("from", "to", "type"), TEXT)}
_KEY = (path_parameter("key", minLength=1),)
_one = partial(ToolRoute, in_path={"key": _KEY}, path_wins=True)


@asynccontextmanager
async def _looking(rest: Rest, request: Request, tool_class: type[Tool], *names: str) -> AsyncGenerator[_Look]:
    """Look at memories for the page: only what this tool would show, held to the same limits, and recorded as read."""
    given = {name: value for name, value in request.query_params.items() if value}
    caller = rest.caller(request)
    tool = rest.board.gate.own_tool(MemoryToolset.name, tool_class.name, caller.client.filter)
    with acting_for(caller):
        accepted = await tool.accept({name: given[name] for name in names if name in given})
    slot = rest.board.limits.admit(caller.client.principal, None)
    try:
        record = RequestRecord(rest.board.audit, "read", caller.client, request.url.path.removeprefix("/api/"))
        async with record:
            record.target = tool.name
            yield rest.board.toolsets.of(MemoryToolset).memories, given.get("key"), accepted.get("namespace")
    finally:
        if slot is not None:
            slot.release()


async def _graph(rest: Rest, request: Request) -> Any:
    check_query(request, tuple(_GRAPH))
    depth, limit = read_number(request, "depth", 2), read_number(request, "limit", 200)
    async with _looking(rest, request, MemoryList, "namespace") as (memories, key, namespace):
        found = await memories.neighbourhood(key, depth, limit, namespace=namespace)
    return found.to_dict()


async def _whole(rest: Rest, request: Request) -> Any:
    check_query(request, tuple(_WHOLE))
    async with _looking(rest, request, MemoryGet, *_WHOLE) as (memories, key, namespace):
        memory = await memories.whole(key or "", namespace=namespace)
    return memory.to_dict()


ROUTES = (
    ToolRoute("GET", "/api/memories", MemoryList),
    ToolRoute(
        "POST",
        "/api/memories",
        MemoryAdd,
        in_query=("namespace",),
        created="It is written down.",
        shows=("summary", "text"),
    ),
    _one("GET", "/api/memories/{key:path}", MemoryGet),
    _one("PATCH", "/api/memories/{key:path}", MemoryUpdate, in_query=("namespace",), shows=("summary",)),
    _one("DELETE", "/api/memories/{key:path}", MemoryDelete),
    ToolRoute(
        "POST", "/api/memories/{key:path}/rename", MemoryRename, in_path={"old_key": _KEY}, in_query=("namespace",)
    ),
    ToolRoute("GET", "/api/memories/{key:path}/linked", MemoryReadLinked, in_path={"key": _KEY}),
    ApiRoute(
        "GET",
        "/api/memory/graph",
        _graph,
        operation(
            "How memories are linked around one of them, both ways",
            object_with("nodes", list_of(_NODE), links=list_of(_LINK), cut={"type": "boolean"}),
            *(query_parameter(name, description) for name, description in _GRAPH.items()),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/memory/whole",
        _whole,
        operation(
            "One memory in full however long it is, with its links as they were written; this counts as no access",
            {"type": "object", "properties": {name: each for name, each in MEMORY_OUT.items() if name != "moreLinks"}},
            *(query_parameter(name, description) for name, description in _WHOLE.items()),
        ),
    ),
    ToolRoute("GET", "/api/memory/search", MemorySearch, names={"q": "query"}),
    ToolRoute("GET", "/api/memory/fulltext", MemoryFulltextSearch),
)
