"""Chats over REST, for whoever is on this machine: a list and a search as the tools give them, and a whole dialog, as
data or as a file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from pegboard import exactjson
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    list_of,
    operation,
    path_parameter,
    plain_operation,
    query_parameter,
    query_parameters,
)
from pegboard.gateway.rest.params import check_query, query_arguments
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.result import invalid
from pegboard.toolsets.chats.answers import page_info, session_row, turn
from pegboard.toolsets.chats.chats import ChatPage
from pegboard.toolsets.chats.current import PATIENCE
from pegboard.toolsets.chats.export import file_name, markdown
from pegboard.toolsets.chats.tools import GetRequest, GetResponse, ListSessions, SearchChats
from pegboard.toolsets.chats.toolset import ChatsToolset
from pegboard.toolsets.validation import validate_choice

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

# How many requests of a dialog come at once.
_TURNS = 50
# What a dialog is saved as: how the name of the file ends, and its type.
_FORMS = {"markdown": (".md", "text/markdown"), "json": (".json", "application/json")}


async def _session(rest: Rest, request: Request) -> Any:
    _check_dialog(rest, request)
    paging = rest.board.gate.own_tool(ChatsToolset.name, ListSessions.name, rest.caller(request).client.filter)
    arguments = query_arguments(request, paging)
    if "workspace" in arguments:
        raise invalid("workspace: a dialog has its own")
    arguments = paging.check(arguments)
    limit, offset = int(arguments.get("limit", _TURNS)), int(arguments.get("offset", 0))
    chats = rest.board.toolsets.of(ChatsToolset).chats
    session = await chats.session(request.path_params["id"], patience=PATIENCE)
    requests = await chats.requests(session, offset + 1, offset + limit)
    turns = [turn(index, each) for index, each in enumerate(requests, offset + 1)]
    page = ChatPage(turns, session.requests_count, limit, offset)
    return {**session_row(session), "requests": turns, **page_info(page)}


async def _export(rest: Rest, request: Request) -> Response:
    check_query(request, ("format",))
    form = validate_choice(request.query_params.get("format") or "markdown", "format", tuple(_FORMS))
    _check_dialog(rest, request)
    chats = rest.board.toolsets.of(ChatsToolset).chats
    session = await chats.session(request.path_params["id"], patience=PATIENCE)
    requests = await chats.requests(session)

    def write() -> bytes:
        if form == "markdown":
            return markdown(session, requests).encode("utf-8", "replace")
        turns = [turn(index, each) for index, each in enumerate(requests, 1)]
        return exactjson.dump({**session_row(session), "requests": turns})

    # Of thousands of requests that takes a while.
    body = await asyncio.to_thread(write)
    ending, kind = _FORMS[form]
    name = quote(f"{file_name(session).removesuffix('.md')}{ending}")
    return Response(body, media_type=kind, headers={"content-disposition": f"attachment; filename*=utf-8''{name}"})


def _check_dialog(rest: Rest, request: Request) -> None:
    """A whole dialog is what these two give, request by request."""
    for tool in (GetRequest, GetResponse):
        rest.board.gate.own_tool(ChatsToolset.name, tool.name, rest.caller(request).client.filter)


ROUTES = (
    ToolRoute("GET", "/api/chats", ListSessions),
    ApiRoute(
        "GET",
        "/api/chats/{id}",
        _session,
        operation(
            "A dialog: its requests with their answers",
            {"type": "object", "properties": {"sessionId": TEXT, "requests": list_of(OBJECT)}},
            path_parameter("id", minLength=1),
            *query_parameters({name: ListSessions.input_schema["properties"][name] for name in ("limit", "offset")}),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/chats/{id}/export",
        _export,
        {
            **plain_operation("A dialog as a file", "text/markdown"),
            "parameters": [
                path_parameter("id", minLength=1),
                query_parameter("format", f"{' or '.join(_FORMS)}; markdown if nothing is said"),
            ],
        },
    ),
    ToolRoute("GET", "/api/chat/search", SearchChats, names={"q": "query"}, needs={"q": "what to search for"}),
)
