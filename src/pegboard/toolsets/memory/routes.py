"""Memories over REST: each route is one of the memory tools."""

from __future__ import annotations

from functools import partial

from pegboard.gateway.rest.operations import path_parameter
from pegboard.gateway.rest.tool_route import ToolRoute
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

_KEY = (path_parameter("key", minLength=1),)
_one = partial(ToolRoute, in_path={"key": _KEY}, path_wins=True)

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
    ToolRoute("GET", "/api/memory/search", MemorySearch, names={"q": "query"}),
    ToolRoute("GET", "/api/memory/fulltext", MemoryFulltextSearch),
)
