"""REST: the board's answers as JSON, one shape for good ones and bad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from pegboard.board import Board
from pegboard.calls import FailedResult
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.proof import CHALLENGE_HEADER, MAX_CHALLENGE, http_purpose, prove
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.chats import ChatsRest
from pegboard.gateway.rest.memory import MemoryRest
from pegboard.gateway.rest.openapi import document
from pegboard.gateway.rest.pages import page
from pegboard.gateway.rest.params import caller_of, check_query
from pegboard.gateway.rest.responses import Failed, answering, body_of, json_response
from pegboard.gateway.rest.tasks import TaskRest
from pegboard.listing.view import Filter
from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.servers.errors import RpcError, failure_of
from pegboard.version import VERSION

_STATUSES = ("available", "unavailable", "disabled", "needs_auth")


class Rest:
    """Every REST route, on one board."""

    def __init__(
        self, board: Board, config: ConfigFile, identity: str, token: str, sessions: Callable[[], int]
    ) -> None:
        self._board = board
        self._config = config
        self._identity = identity
        self._token = token
        self._sessions = sessions

    def routes(self) -> list[Route]:
        """What is served where."""
        return [
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._openapi),
            Route("/docs", self._docs),
            Route("/api/servers", answering(self._servers)),
            Route("/api/servers/{name}/enable", answering(self._enable), methods=["POST"]),
            Route("/api/servers/{name}/disable", answering(self._disable), methods=["POST"]),
            Route("/api/servers/{name}/refresh", answering(self._refresh), methods=["POST"]),
            Route("/api/tools", answering(self._tools)),
            Route("/api/tools/search", answering(self._search)),
            Route("/api/tools/{name}", answering(self._tool)),
            Route("/api/tools/{name}/call", answering(self._call), methods=["POST"]),
            *MemoryRest(self._board).routes(),
            *ChatsRest(self._board).routes(),
            *TaskRest(self._board).routes(),
        ]

    async def _health(self, request: Request) -> Response:
        problem = self._board.storage.problem
        status = {"status": "ok"} if problem is None else {"status": "degraded", "storage": problem}
        about = {"version": VERSION, "config": self._identity}
        return json_response({**status, **about, **self._proof(request)}, 200)

    def _proof(self, request: Request) -> dict[str, str]:
        """That we are the gateway of our run file, where somebody asks for it."""
        challenge, server = request.headers.get(CHALLENGE_HEADER, ""), request.scope.get("server")
        if not challenge or len(challenge) > MAX_CHALLENGE or server is None:
            return {}
        return {"proof": prove(self._token, http_purpose(server[1]), challenge.encode("latin-1")).decode()}

    async def _metrics(self, _: Request) -> Response:
        states = [(name, server.state.value) for name, server in sorted(self._board.servers.items())]
        tools = len((await self._board.lists.view_in_slices(Filter())).items)
        text = self._board.metrics.text(states, tools, self._sessions(), self._board.relay.parked.count)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, _: Request) -> Response:
        return json_response(document(), 200)

    async def _docs(self, _: Request) -> Response:
        return HTMLResponse(page("docs"))

    async def _servers(self, _: Request) -> Any:
        problem = self._config.problem
        refused = {} if problem is None else {"configProblem": problem}
        return {"servers": rows.server_rows(self._board), **refused}

    async def _enable(self, request: Request) -> Any:
        return await self._switch(request, enabled=True)

    async def _disable(self, request: Request) -> Any:
        return await self._switch(request, enabled=False)

    async def _switch(self, request: Request, *, enabled: bool) -> Any:
        name = self._server_name(request)
        await self._config.switch(name, enabled=enabled)
        return rows.server_row(self._board, self._board.servers[name])

    async def _refresh(self, request: Request) -> Any:
        name = self._server_name(request)
        return (await self._board.refresh([name])).unwrap()

    async def _tools(self, request: Request) -> Any:
        check_query(request, ("server", "prefix", "status"))
        query = request.query_params
        status = query.get("status") or None
        if status is not None and status not in _STATUSES:
            raise invalid(f"status must be one of {', '.join(_STATUSES)}, found {status!r}")
        await self._board.list_tools()
        chosen = Filter.of(query.get("server"), query.get("prefix"))
        for name in sorted(chosen.servers or ()):
            self._check_server(name, invalid)
        wanted = chosen.within(caller_of(request).client.filter)
        tools = rows.tool_rows(self._board, wanted, status)
        return {"tools": tools, "total": len(tools)}

    async def _search(self, request: Request) -> Any:
        check_query(request, ("q", "limit"))
        query = request.query_params
        limit = query.get("limit") or "10"
        if not (limit.isascii() and limit.isdigit() and len(limit) < 10):
            raise invalid(f"limit must be a whole number from 1 to 50, found {limit[:40]!r}")
        if "q" not in query:
            raise invalid("q is missing: what to search for")
        return await rows.search_rows(self._board, query["q"], int(limit), caller_of(request))

    async def _tool(self, request: Request) -> Any:
        tool = await self._board.find_tool(request.path_params["name"], caller_of(request).client.filter)
        return self._board.describe(tool)

    async def _call(self, request: Request) -> Any:
        name = request.path_params["name"]
        params = {**await _arguments(request), "name": name}
        try:
            result = await self._board.calls.call(name, params, caller_of(request))
        except RpcError as exc:
            raise failure_of(exc, name) from None
        return Failed(result.error, result) if isinstance(result, FailedResult) else result

    def _server_name(self, request: Request) -> str:
        name = str(request.path_params["name"])
        self._check_server(name, _not_found)
        return name

    def _check_server(self, name: str, failure: Callable[[str], ToolFailure]) -> None:
        if name not in self._board.servers:
            close = nearest(name[:80], self._board.servers, 1)
            raise failure(f"there is no server {name[:80]!r}{f': did you mean {close[0]}?' if close else ''}")


def _not_found(message: str) -> ToolFailure:
    return ToolFailure(ToolErrorCode.NOT_FOUND, message, retryable=False)


async def _arguments(request: Request) -> dict[str, Any]:
    body = await body_of(request)
    for name in body:
        if name != "arguments":
            raise invalid(f'{name[:80]!r} is not a field of a call: did you mean {{"arguments": {{…}}}}?')
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise invalid("arguments must be an object")
    return {"arguments": cast("dict[str, Any]", arguments)}
