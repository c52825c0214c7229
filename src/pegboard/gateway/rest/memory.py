"""Memories over REST: each route is one of the memory tools, with its arguments from path, query and body.

So a parameter means the same everywhere, is checked by the same schema, and gets the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.routing import Route

from pegboard.board import Board
from pegboard.gateway.rest.params import merge_arguments, query_arguments
from pegboard.gateway.rest.responses import Created, answering, body_of
from pegboard.listing.view import EVERYTHING
from pegboard.result import ToolErrorCode, ToolFailure, invalid

_HOME = "/api/memories/"
# What stands behind a key, and what it does with the memory.
_RENAME, _LINKED = "rename", "linked"
_BY_METHOD = {"GET": "memory_get", "PATCH": "memory_update", "DELETE": "memory_delete"}


class MemoryRest:
    """The routes of the memory toolset."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def routes(self) -> list[Route]:
        """What is served where."""
        return [
            Route("/api/memories", answering(self._all), methods=["GET", "POST"]),
            Route("/api/memories/{key:path}", answering(self._one), methods=["GET", "PATCH", "DELETE", "POST"]),
            Route("/api/memory/search", answering(self._search)),
            Route("/api/memory/fulltext", answering(self._fulltext)),
        ]

    async def _all(self, request: Request) -> Any:
        if _method(request) == "GET":
            return await self._do("memory_list", self._queried(request, "memory_list"))
        arguments = merge_arguments(await body_of(request), self._queried(request, "memory_add"))
        data = await self._do("memory_add", arguments)
        return Created(data) if data["created"] else data

    async def _one(self, request: Request) -> Any:
        key, action = _address(request)
        method = _method(request)
        if action == _RENAME and method == "POST":
            given = merge_arguments(await body_of(request), self._queried(request, "memory_rename"))
            return await self._do("memory_rename", merge_arguments(given, {"old_key": key}))
        if action == _LINKED and method == "GET":
            arguments = self._queried(request, "memory_read_linked")
            return await self._do("memory_read_linked", merge_arguments(arguments, {"key": key}))
        tool = _BY_METHOD.get(method)
        if tool is None or action is not None:
            raise ToolFailure(
                ToolErrorCode.NOT_FOUND, f"{request.method} is not possible there; /docs lists what there is"
            )
        given = await body_of(request) if method == "PATCH" else {}
        return await self._do(tool, merge_arguments(given, {**self._queried(request, tool), "key": key}))

    async def _search(self, request: Request) -> Any:
        return await self._do("memory_search", self._queried(request, "memory_search", q="query"))

    async def _fulltext(self, request: Request) -> Any:
        return await self._do("memory_fulltext_search", self._queried(request, "memory_fulltext_search"))

    async def _do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._board.run_own("memory", name, arguments)

    def _queried(self, request: Request, name: str, **names: str) -> dict[str, Any]:
        return query_arguments(request, self._board.gate.own_tool("memory", name, EVERYTHING), **names)


def _method(request: Request) -> str:
    """What is asked for; HEAD is a GET without the answer's body, and Starlette lets it in wherever GET is."""
    return "GET" if request.method == "HEAD" else request.method


def _address(request: Request) -> tuple[str, str | None]:
    """The key, which may have slashes, and what is to be done with it."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.partition(b"?")[0].removeprefix(_HOME.encode())
    key, slash, last = path.rpartition(b"/")
    action = last.decode("ascii", "replace")
    if not slash or action not in {_RENAME, _LINKED}:
        key, action = path, None
    try:
        return unquote_to_bytes(key).decode(), action
    except UnicodeDecodeError:
        raise invalid("key: the address is not UTF-8") from None
