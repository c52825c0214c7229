"""REST without a gateway: the routes of one, on a board that is open as long as the answers take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from pegboard import exactjson
from pegboard.access.principal import LOCAL
from pegboard.board import Board
from pegboard.cli.rest_client import Answer, RestRequest, failure
from pegboard.clients.endpoint import PRINCIPAL_KEY
from pegboard.config import identity
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.rest.app import Rest
from pegboard.library.loop_thread import LoopThread
from pegboard.storage import StorageError

if TYPE_CHECKING:
    from pegboard.config import Settings

# Whoever asks for these waits for servers that were never seen; a gateway has time to ask them in the background.
_LISTS = frozenset({"/api/tools", "/api/tools/search"})
_NEW_SERVER_WAIT = 90.0


class InProcessTransport:
    """Answers requests by calling the endpoints of a gateway's routes."""

    is_running = False

    def __init__(self, settings: Settings, config: Path) -> None:
        self._settings = settings
        self._config = config

    def send(self, request: RestRequest) -> Answer:
        """The answer to one request."""
        (answer,) = self.send_all([request], lambda: None)
        return answer

    def send_all(self, requests: Sequence[RestRequest], on_answer: Callable[[], None]) -> list[Answer]:
        """The answers to several requests that are made at once, in their order."""
        try:
            return asyncio.run(self._answer_all(requests, on_answer))
        except StorageError as exc:
            # No server is at fault, and whoever is at this machine may know where the storage is.
            return [failure("TOOL_EXECUTION_FAILED", str(exc), retryable=True) for _ in requests]

    async def _answer_all(self, requests: Sequence[RestRequest], on_answer: Callable[[], None]) -> list[Answer]:
        async with Board(self._settings, audit="command") as board:
            routes = Rest(board, ConfigFile(board, self._config), "", "", lambda: 0).routes()

            async def answer(request: RestRequest) -> Answer:
                if request.target.partition("?")[0] in _LISTS:
                    await board.discovery.discover_new(_NEW_SERVER_WAIT)
                answer = await _answer(routes, request)
                on_answer()
                return answer

            return await asyncio.gather(*map(answer, requests))


class OpenBoardTransport:
    """The same on a board that stays open between answers, for what takes several: a temporary gateway of this process,
    whose answers may be asked for by any thread."""

    is_running = False

    def __init__(self, settings: Settings, config: Path) -> None:
        self._thread = LoopThread("pegboard-command")
        self._board = Board(settings, audit="command")
        self._rest = Rest(self._board, ConfigFile(self._board, config), identity(config), "", lambda: 0)
        self._routes = self._rest.routes()
        self._problem: StorageError | None = None
        self._is_over = False

    def __enter__(self) -> OpenBoardTransport:
        try:
            self._thread.start(self._board.__aenter__()).result()
        except StorageError as exc:
            self._problem = exc
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._problem is None:
            self._thread.start(self._close()).result()
        self._thread.close()

    async def _close(self) -> None:
        await self._rest.logins.close()
        await self._board.__aexit__(None, None, None)

    def send(self, request: RestRequest) -> Answer:
        """The answer to one request."""
        if self._problem is not None:
            return failure("TOOL_EXECUTION_FAILED", str(self._problem), retryable=True)
        if self._is_over:
            return failure("TOOL_EXECUTION_FAILED", "the command ends", retryable=False)
        try:
            return self._thread.start(_answer(self._routes, request)).result()
        except CancelledError:
            # Another thread of the command waited for it.
            return failure("TOOL_EXECUTION_FAILED", "the command ends", retryable=False)

    def send_all(self, requests: Sequence[RestRequest], on_answer: Callable[[], None]) -> list[Answer]:
        """The answers to several requests, in their order."""
        return [self._answer_next(request, on_answer) for request in requests]

    def _answer_next(self, request: RestRequest, on_answer: Callable[[], None]) -> Answer:
        answer = self.send(request)
        on_answer()
        return answer


async def _answer(routes: Sequence[Route], request: RestRequest) -> Answer:
    path, _, query = request.target.partition("?")
    scope: dict[str, Any] = {"type": "http", "method": request.method, "path": path, "headers": []}
    scope[PRINCIPAL_KEY] = LOCAL
    for route in routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            # Decoded after the route is found: a slash in a name is a part of the name.
            names = {name: unquote(value) for name, value in found["path_params"].items()}
            scope |= {"path_params": names, "query_string": query.encode()}
            response: Response = await route.endpoint(Request(scope, _receive(request.payload())))
            return exactjson.parse_object(bytes(response.body))
    return failure("TOOL_NOT_FOUND", f"{path}: there is nothing here", retryable=False)


def _receive(body: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
