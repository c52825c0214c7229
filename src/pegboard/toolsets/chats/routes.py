"""Chats over REST, for whoever is on this machine: a list and a search as the tools give them, and a whole dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import OBJECT, TEXT, list_of, operation, path_parameter, query_parameters
from pegboard.gateway.rest.params import query_arguments
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.result import invalid
from pegboard.toolsets.chats.answers import page_info, session_row, turn
from pegboard.toolsets.chats.chats import ChatPage
from pegboard.toolsets.chats.current import PATIENCE
from pegboard.toolsets.chats.tools import GetRequest, GetResponse, ListSessions, SearchChats
from pegboard.toolsets.chats.toolset import ChatsToolset

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

# How many requests of a dialog come at once.
_TURNS = 50


async def _session(rest: Rest, request: Request) -> Any:
    wanted = rest.caller(request).client.filter
    # A whole dialog is what these two give, request by request.
    for tool in (GetRequest, GetResponse):
        rest.board.gate.own_tool(ChatsToolset.name, tool.name, wanted)
    paging = rest.board.gate.own_tool(ChatsToolset.name, ListSessions.name, wanted)
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
    ToolRoute("GET", "/api/chat/search", SearchChats, names={"q": "query"}, needs={"q": "what to search for"}),
)
