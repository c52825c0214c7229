"""Chats over REST, for whoever is on this machine: a list and a search as the tools give them, and a whole dialog."""

from __future__ import annotations

from typing import Any, cast

from starlette.requests import Request
from starlette.routing import Route

from pegboard.board import Board
from pegboard.gateway.rest.params import query_arguments
from pegboard.gateway.rest.responses import answering
from pegboard.listing.view import EVERYTHING
from pegboard.protocol.nearness import is_remote
from pegboard.result import invalid
from pegboard.toolsets.chats.answers import page_info, session_row, turn
from pegboard.toolsets.chats.chats import ChatPage
from pegboard.toolsets.chats.current import PATIENCE
from pegboard.toolsets.chats.tools import ChatTool, GetRequest, GetResponse, ListSessions, SearchChats
from pegboard.toolsets.chats.toolset import ChatsToolset

# How many requests of a dialog come at once.
_TURNS = 50


class ChatsRest:
    """The routes of the chats toolset."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def routes(self) -> list[Route]:
        """What is served where."""
        return [
            Route("/api/chats", answering(self._sessions)),
            Route("/api/chats/{id}", answering(self._session)),
            Route("/api/chat/search", answering(self._search)),
        ]

    async def _sessions(self, request: Request) -> Any:
        return await self._asked(request, ListSessions.name)

    async def _search(self, request: Request) -> Any:
        tool = self._tool(request, SearchChats.name)
        if not request.query_params.get("q", "").strip():
            raise invalid("q is missing: what to search for")
        return await self._asked(request, tool.name, q="query")

    async def _session(self, request: Request) -> Any:
        # A whole dialog is what these two give, request by request.
        for name in (GetRequest.name, GetResponse.name):
            self._tool(request, name)
        arguments = query_arguments(request, self._tool(request, ListSessions.name))
        if "workspace" in arguments:
            raise invalid("workspace: a dialog has its own")
        arguments = self._tool(request, ListSessions.name).check(arguments)
        limit, offset = int(arguments.get("limit", _TURNS)), int(arguments.get("offset", 0))
        chats = self._board.toolsets.of(ChatsToolset).chats
        session = await chats.session(request.path_params["id"], patience=PATIENCE)
        requests = await chats.requests(session, offset + 1, offset + limit)
        turns = [turn(index, each) for index, each in enumerate(requests, offset + 1)]
        return {
            **session_row(session),
            "requests": turns,
            **page_info(ChatPage(turns, session.requests_count, limit, offset)),
        }

    async def _asked(self, request: Request, name: str, **names: str) -> Any:
        tool = self._tool(request, name)
        arguments = query_arguments(request, tool, **names)
        # Not as its result for a model: what is not there has a status of its own here.
        return await tool.answer(tool.check(arguments))

    def _tool(self, request: Request, name: str) -> ChatTool:
        wanted = self._board.restrict_to_local(EVERYTHING, remote=is_remote(request.scope))
        return cast("ChatTool", self._board.gate.own_tool("chats", name, wanted))
