"""Tasks over REST: each route is one of the task tools, save the picture of who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from pegboard.board import Board
from pegboard.gateway.rest.params import caller_of, merge_arguments, query_arguments
from pegboard.gateway.rest.responses import answering, body_of
from pegboard.listing.view import EVERYTHING
from pegboard.result import invalid
from pegboard.tool import Tool

_GRAPH = ("path", "change_id", "format")


class TaskRest:
    """The routes of the task toolset."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def routes(self) -> list[Route]:
        """What is served where."""
        return [
            Route("/api/tasks", answering(self._list)),
            Route("/api/tasks/next", answering(self._next)),
            Route("/api/tasks/graph", answering(self._graph)),
            Route("/api/tasks/sync", answering(self._sync), methods=["POST"]),
            Route("/api/tasks/{change}/{number}", answering(self._update), methods=["PATCH"]),
        ]

    async def _list(self, request: Request) -> Any:
        return await self._do(request, "registry_list", self._queried(request, "registry_list"))

    async def _next(self, request: Request) -> Any:
        return await self._do(request, "registry_next", self._queried(request, "registry_next"))

    async def _sync(self, request: Request) -> Any:
        given = merge_arguments(await body_of(request), self._queried(request, "registry_sync"))
        return await self._do(request, "registry_sync", given)

    async def _update(self, request: Request) -> Any:
        given = merge_arguments(await body_of(request), self._queried(request, "registry_update"))
        task = f"{request.path_params['change']}/{request.path_params['number']}"
        return await self._do(request, "registry_update", merge_arguments(given, {"task_id": task}))

    async def _graph(self, request: Request) -> Any:
        query = request.query_params
        for name in query:
            if name not in _GRAPH:
                raise invalid(f"{name} is not a parameter: there are {', '.join(_GRAPH)}")
            if len(query.getlist(name)) > 1:
                raise invalid(f"{name} is given {len(query.getlist(name))} times")
        if query.get("change_id") == "":
            raise invalid('change_id: "" is shorter than 1 character')
        form = query.get("format") or "mermaid"
        return await self._board.task_graph(form, query.get("change_id"), query.get("path"), caller_of(request))

    async def _do(self, request: Request, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._board.run_own("tasks", name, arguments, caller_of(request))

    def _queried(self, request: Request, name: str) -> dict[str, Any]:
        return query_arguments(request, self._tool(name))

    def _tool(self, name: str) -> Tool:
        return self._board.gate.own_tool("tasks", name, EVERYTHING)
