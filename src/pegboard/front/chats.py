"""Chats over REST, for whoever is on this machine: a list and a search as the tools give them, and a whole dialog."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from pegboard.board import Board
from pegboard.front.queried import queried
from pegboard.front.reply import answering
from pegboard.protocol.nearness import is_remote
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure, invalid
from pegboard.toolsets.chats import CurrentDialog
from pegboard.toolsets.chats.answers import listed, paged, turn
from pegboard.toolsets.chats.chats import Page
from pegboard.toolsets.chats.tools import ChatTool, ListSessions, SearchChats
from pegboard.view import EVERYTHING

# How many requests of a dialog come at once.
_TURNS = 50


class ChatsRest:
    """The routes of the chats toolset."""

    def __init__(self, board: Board) -> None:
        self._board = board
        dialog = CurrentDialog(board.chats, board.workspace)
        self._list = ListSessions(dialog, board.chats)
        self._search = SearchChats(dialog, board.chats)

    def routes(self) -> list[Route]:
        """What is served where."""
        return [
            Route("/api/chats", answering(self._sessions)),
            Route("/api/chats/{id}", answering(self._session)),
            Route("/api/chat/search", answering(self._found)),
        ]

    async def _sessions(self, request: Request) -> Any:
        return await self._asked(request, self._list)

    async def _found(self, request: Request) -> Any:
        if not request.query_params.get("q", "").strip():
            raise invalid("q is missing: what to search for")
        return await self._asked(request, self._search, q="query")

    async def _session(self, request: Request) -> Any:
        self._admit(request)
        arguments = queried(request, self._list)
        if "workspace" in arguments:
            raise invalid("workspace: a dialog has its own")
        self._list.check(arguments)
        limit, offset = int(arguments.get("limit", _TURNS)), int(arguments.get("offset", 0))
        chats = self._board.chats
        session = await chats.session(request.path_params["id"])
        requests = await chats.requests(session, offset + 1, offset + limit)
        turns = [turn(index, each) for index, each in enumerate(requests, offset + 1)]
        return {**listed(session), "requests": turns, **paged(Page(turns, session.requests_count, limit, offset))}

    async def _asked(self, request: Request, tool: ChatTool, **names: str) -> Any:
        self._admit(request)
        arguments = queried(request, tool, **names)
        tool.check(arguments)
        return await tool.answer(arguments)

    def _admit(self, request: Request) -> None:
        if "chats" not in self._board.settings.toolsets:
            raise ToolFailure(ToolErrorCode.NOT_IMPLEMENTED, "the chats toolset is switched off", retryable=False)
        if self._board.seen_from(EVERYTHING, remote=is_remote(request.scope)).remote:
            raise Forbidden("chats are only for clients on the machine that Pegboard runs on (chats.remote)")
