"""REST routes of servers: state, enable, disable, refresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from starlette.requests import Request

from pegboard.board import Board
from pegboard.config.settings import Transport
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, path_parameter
from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

SERVER = {
    "type": "object",
    "required": ["name", "state", "enabled", "transport", "tools"],
    "properties": {
        "name": TEXT,
        "state": {
            "enum": [
                *("registered", "connecting", "connected", "idle", "unreachable", "lost", "disabled", "needs_auth"),
                "invalid",
            ]
        },
        "enabled": {"type": "boolean"},
        "transport": {"enum": [*get_args(Transport)]},
        "tools": {"type": "integer", "minimum": 0},
        "seen": {"type": "boolean", "description": "Whether its tools are known."},
        "lastSeen": {"type": ["string", "null"], "format": "date-time"},
        "latencyMs": {"type": ["number", "null"]},
        "lastError": {"type": ["string", "null"]},
        "era": {"enum": ["handshake", "modern", None]},
        "protocolVersion": {"type": ["string", "null"]},
        "staleSince": {"type": ["string", "null"], "format": "date-time"},
        "nextTryInSeconds": {"type": ["number", "null"]},
        "conflicts": {"type": "array", "items": TEXT},
        "rejected": {"type": "object", "additionalProperties": TEXT},
        "cut": {"type": "array", "items": TEXT, "description": "Which of its lists are too long, and were cut."},
    },
}
_NAME = path_parameter("name")


def server_problem(board: Board, name: str) -> str | None:
    """What is wrong with the name of a server, if there is none of that name."""
    if name in board.servers:
        return None
    close = nearest(name[:80], board.servers, 1)
    return f"there is no server {name[:80]!r}{f': did you mean {close[0]}?' if close else ''}"


async def _servers(rest: Rest, _: Request) -> Any:
    problem = rest.config.problem
    refused = {} if problem is None else {"configProblem": problem}
    return {"servers": rows.server_rows(rest.board), **refused}


async def _enable(rest: Rest, request: Request) -> Any:
    return await _switch(rest, request, enabled=True)


async def _disable(rest: Rest, request: Request) -> Any:
    return await _switch(rest, request, enabled=False)


async def _switch(rest: Rest, request: Request, *, enabled: bool) -> Any:
    name = _server_name(rest, request)
    await rest.config.switch(name, enabled=enabled)
    return rows.server_row(rest.board, rest.board.servers[name])


async def _refresh(rest: Rest, request: Request) -> Any:
    name = _server_name(rest, request)
    return (await rest.board.refresh([name])).unwrap()


def _server_name(rest: Rest, request: Request) -> str:
    name = str(request.path_params["name"])
    if problem := server_problem(rest.board, name):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, problem, retryable=False)
    return name


ROUTES = (
    ApiRoute(
        "GET",
        "/api/servers",
        _servers,
        operation(
            "Every server and its state",
            object_with("servers", list_of(SERVER), configProblem=TEXT),
        ),
    ),
    ApiRoute("POST", "/api/servers/{name}/enable", _enable, operation("Enable a server", SERVER, _NAME)),
    ApiRoute("POST", "/api/servers/{name}/disable", _disable, operation("Disable a server", SERVER, _NAME)),
    ApiRoute(
        "POST",
        "/api/servers/{name}/refresh",
        _refresh,
        operation("Ask a server for its tools now", object_with("registered", {"type": "integer"}), _NAME),
    ),
)
