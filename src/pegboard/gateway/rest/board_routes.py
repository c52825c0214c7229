"""REST routes of sessions, and of boards: which clients are there, and which tools they have loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.access.principal import Principal
from pegboard.audit.composer import session_digest
from pegboard.clients.client import Client, identify
from pegboard.clients.endpoint import endpoint_of
from pegboard.config.settings import MOST_ON_BOARD
from pegboard.exactjson import as_list
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, path_parameter, with_body
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import members_of
from pegboard.gateway.rest.rows import moment
from pegboard.listing.loaded import is_shared
from pegboard.listing.view import Filter
from pegboard.names import is_board_name
from pegboard.result import ToolErrorCode, ToolFailure, invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_NAME = path_parameter("name")
_INTEGER = {"type": "integer"}
_SESSION = {
    "type": "object",
    "required": ["id", "client", "principal", "loaded"],
    "properties": {
        "id": {**TEXT, "description": "As records of the audit have it: a digest."},
        **dict.fromkeys(("client", "version", "protocolVersion", "board"), TEXT),
        "principal": {"type": "object", "properties": {"id": TEXT, "name": TEXT}},
        "loaded": {**_INTEGER, "description": "How many tools it has loaded."},
        "since": {"type": ["string", "null"], "format": "date-time"},
    },
}
_BOARD = object_with("name", TEXT, tools={**list_of(TEXT), "description": "In the order in which they were used."})
_CHANGE = {
    "type": "object",
    "properties": {"load": list_of(TEXT), "unload": list_of(TEXT)},
    "additionalProperties": False,
}


async def _sessions(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    seen = list_sessions(rest, endpoint_of(request.scope).principal)
    return {"sessions": [_session_row(rest, client) for client in seen], "total": len(seen)}


def list_sessions(rest: Rest, principal: Principal) -> list[Client]:
    """The clients of the sessions that somebody may know of."""
    every = rest.board.relay.sessions.list_all()
    return [client for client in every if principal.admin or client.principal.id == principal.id]


def _session_row(rest: Rest, client: Client) -> dict[str, Any]:
    texts = {
        "version": client.version,
        "protocolVersion": client.protocol_version,
        "board": client.endpoint.board or "",
    }
    return {
        "id": session_digest(client.session),
        "client": client.name,
        **{name: text for name, text in texts.items() if text},
        "principal": {"id": client.principal.id, "name": client.principal.name},
        "loaded": len(rest.board.loaded.on(client.board)),
        "since": moment(rest.board.relay.sessions.since(client.session)),
    }


async def _boards(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    sessions = [client for client in rest.board.relay.sessions.list_all() if client.endpoint.board]
    used = {name for client in sessions if client.board == _key(request, name := str(client.endpoint.board))}
    names = {name for key in rest.board.loaded.boards if is_board_name(name := key.rpartition(":")[2])}
    # A name may stand for a board of theirs, or for one that they share; somebody else's has nothing for them.
    rows = [_board_row(rest, request, name, _key(request, name)) for name in sorted(names | used)]
    return {"boards": [row for row in rows if row["tools"] or row["name"] in used]}


async def _board(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    name = _board_name(request)
    return _board_row(rest, request, name, _key(request, name))


async def _change_board(rest: Rest, request: Request) -> Any:
    body, name = await members_of(request, ("load", "unload")), _board_name(request)
    key = _key(request, name)
    wanted = rest.caller(request).client.filter
    # Each is looked up: no more than there can be.
    bounds = {"load": rest.board.settings.board_size, "unload": MOST_ON_BOARD}
    names = {what: _names(body.get(what, []), what, most) for what, most in bounds.items()}
    # Before anything is changed: each has to be a tool that its board may have.
    load = [(await rest.board.find_tool(name, wanted)).name for name in names["load"]]
    # What somebody may not see on a board that they share is not there for them.
    removed = await rest.board.loaded.remove(key, _visible(rest, wanted, key, names["unload"]))
    removed += await rest.board.loaded.add(key, load)
    return {**_board_row(rest, request, name, key), "unloaded": _visible(rest, wanted, key, removed)}


def _board_name(request: Request) -> str:
    name = str(request.path_params["name"])
    if not is_board_name(name):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, f"{name[:80]!r} cannot be a board's name", retryable=False)
    return name


def _key(request: Request, name: str) -> str:
    """Where the board of this name keeps its tools for whoever asks: a name may stand for a board of their own."""
    key = identify(replace(endpoint_of(request.scope), board=name)).board
    assert key is not None
    return key


def _board_row(rest: Rest, request: Request, name: str, key: str) -> dict[str, Any]:
    wanted = rest.caller(request).client.filter
    return {"name": name, "tools": _visible(rest, wanted, key, rest.board.loaded.on(key))}


def _visible(rest: Rest, wanted: Filter, key: str, names: Iterable[str]) -> list[str]:
    """Those of these tools that somebody may know of. One that is gone for the moment stays on its board; whose it was
    nobody knows, so on a shared board it is for those who may see everything."""
    known = [(name, rest.board.lookup_tool(name)) for name in names]
    sees_gone = wanted.access is None or not is_shared(key)
    return [name for name, tool in known if (sees_gone if tool is None else wanted.admits(tool))]


def _names(value: object, what: str, most: int) -> list[str]:
    names = as_list(value)
    if names is None or not all(isinstance(name, str) for name in names):
        raise invalid(f"{what} must be a list of names of tools")
    different = list(dict.fromkeys(map(str, names)))
    if len(different) > most:
        raise invalid(f"a board holds {most} tools: {what} no more than {most} at once")
    return different


ROUTES = (
    ApiRoute(
        "GET",
        "/api/sessions",
        _sessions,
        operation(
            "The sessions of clients that are open now; clients of 2026-07-28 have none",
            object_with("sessions", list_of(_SESSION), total=_INTEGER),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/boards",
        _boards,
        operation("The named boards that have tools or that sessions use now", object_with("boards", list_of(_BOARD))),
    ),
    ApiRoute("GET", "/api/boards/{name}", _board, operation("The tools that are loaded on a board", _BOARD, _NAME)),
    ApiRoute(
        "PATCH",
        "/api/boards/{name}",
        _change_board,
        with_body(
            operation("Load tools on a board, and unload others", _BOARD, _NAME),
            _CHANGE,
            required=True,
            example={"load": []},
        ),
    ),
)
