"""Who answers a command: a running gateway of the same config, else a board of the command's own."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import http.client
import json
import secrets
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.config import Location, RunningGateway, Settings

T = TypeVar("T")
Answer = dict[str, Any]
_UNANSWERED = (OSError, ValueError, http.client.HTTPException)
_PROOF_LIMIT = 5.0
_MAX_HEALTH = 10_000


class Answerer(Protocol):
    """Gives the same answers, whoever it is: each a `ToolResult` as a plain object."""

    def servers(self) -> Answer: ...
    def tools(self, server: str | None, prefix: str | None, status: str | None) -> Answer: ...
    def find(self, query: str, limit: int) -> Answer: ...
    def describe(self, name: str) -> Answer: ...
    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer: ...
    def task_graph(self, path: str | None, change: str | None, form: str) -> Answer: ...
    def refresh(self, names: Sequence[str], done: Callable[[str], None]) -> dict[str, Answer]: ...


def answerer(location: Location) -> Answerer:
    """The running gateway, if there is one, else ourselves."""
    from pegboard.cli.common import load_settings, quiet_logs

    gateway = running(location.path)
    if gateway is not None:
        return gateway
    settings = load_settings(location)
    quiet_logs()
    return Alone(settings)


def running(config: Path) -> Running | None:
    """A gateway that serves this config, if one does."""
    from pegboard.config.runfile import find_gateways, forget

    for file, gateway in find_gateways(config):
        try:
            with _connect(gateway):
                return Running(gateway)
        except ConnectionRefusedError:
            forget(file)
        except _UNANSWERED:
            continue
    return None


class Running:
    """Asks a running gateway over REST."""

    def __init__(self, gateway: RunningGateway) -> None:
        self._gateway = gateway

    def servers(self) -> Answer:
        """Every server."""
        return self._ask("GET", "/api/servers")

    def tools(self, server: str | None, prefix: str | None, status: str | None) -> Answer:
        """Every tool that passes."""
        query = {"server": server, "prefix": prefix, "status": status}
        given = urlencode({key: value for key, value in query.items() if value})
        return self._ask("GET", f"/api/tools?{given}")

    def find(self, query: str, limit: int) -> Answer:
        """The tools that fit best."""
        return self._ask("GET", f"/api/tools/search?{urlencode({'q': query, 'limit': limit}, errors='replace')}")

    def describe(self, name: str) -> Answer:
        """One tool in full."""
        return self._ask("GET", f"/api/tools/{quote(name, safe='')}")

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        return self._ask("POST", f"/api/tools/{quote(name, safe='')}/call", {"arguments": arguments})

    def task_graph(self, path: str | None, change: str | None, form: str) -> Answer:
        """Who waits for whom."""
        query = {"path": path, "change_id": change, "format": form}
        given = urlencode({key: value for key, value in query.items() if value}, errors="replace")
        return self._ask("GET", f"/api/tasks/graph?{given}")

    def refresh(self, names: Sequence[str], done: Callable[[str], None]) -> dict[str, Answer]:
        """Have servers asked for their tools now, all at once."""

        def ask(name: str) -> tuple[str, Answer]:
            answer = self._ask("POST", f"/api/servers/{quote(name, safe='')}/refresh")
            done(name)
            return name, answer

        with ThreadPoolExecutor(max_workers=64) as pool:
            return dict(pool.map(ask, names))

    def _ask(self, method: str, path: str, body: object = None) -> Answer:
        try:
            return _exchange(self._gateway, method, path, body)
        except _UNANSWERED as exc:
            return _failure(f"the gateway at {self._gateway.url} did not answer: {exc}")


class Alone:
    """Does the work itself, on a board that lives as long as the answer takes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def servers(self) -> Answer:
        """Every server."""
        from pegboard.gateway.rest import rows

        return self._with_board(lambda board: _value({"servers": rows.server_rows(board)}))

    def tools(self, server: str | None, prefix: str | None, status: str | None) -> Answer:
        """Every tool that passes; servers never seen before are met first, however long that takes."""
        from pegboard.gateway.rest import rows
        from pegboard.listing.view import Filter

        async def work(board: Board) -> object:
            await board.discovery.discover_new(limit=90)
            tools = rows.tool_rows(board, Filter.of(server, prefix), status)
            return {"tools": tools, "total": len(tools)}

        return self._with_board(work)

    def find(self, query: str, limit: int) -> Answer:
        """The tools that fit best; servers never seen before are met first, however long that takes."""
        from pegboard.gateway.rest import rows

        async def work(board: Board) -> object:
            await board.discovery.discover_new(limit=90)
            return await rows.search_rows(board, query, limit)

        return self._with_board(work)

    def describe(self, name: str) -> Answer:
        """One tool in full."""

        async def work(board: Board) -> object:
            return board.describe(await board.find_tool(name))

        return self._with_board(work)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""

        from pegboard.calls import FailedResult
        from pegboard.gateway.rest.responses import Failed

        async def work(board: Board) -> object:
            return (await board.call(name, arguments)).unwrap()

        answer = self._with_board(work)
        result = answer.get("data")
        return Failed(result.error, result).to_dict() if isinstance(result, FailedResult) else answer

    def task_graph(self, path: str | None, change: str | None, form: str) -> Answer:
        """Who waits for whom."""
        return self._with_board(lambda board: board.task_graph(form, change, path))

    def refresh(self, names: Sequence[str], done: Callable[[str], None]) -> dict[str, Answer]:
        """Ask servers for their tools now, all at once."""

        async def work(board: Board) -> object:
            async def ask(name: str) -> tuple[str, Answer]:
                result = await board.refresh([name])
                done(name)
                return name, result.to_dict()

            return dict(await asyncio.gather(*map(ask, names)))

        answer = self._with_board(work)
        return cast("dict[str, Answer]", answer["data"]) if "data" in answer else dict.fromkeys(names, answer)

    def _with_board(self, work: Callable[[Board], Awaitable[object]]) -> Answer:
        from pegboard.board import Board
        from pegboard.result import as_result
        from pegboard.storage import StorageError

        async def run() -> Answer:
            async with Board(self._settings) as board:
                return (await as_result(on_own_storage(work(board)))).to_dict()

        try:
            return asyncio.run(run())
        except StorageError as exc:
            return _failure(str(exc), code="TOOL_EXECUTION_FAILED")


async def on_own_storage(work: Awaitable[T]) -> T:
    """Work of a command itself: that its storage cannot be used says nothing about a server, and it may say where."""
    from pegboard.result import ToolErrorCode, ToolFailure
    from pegboard.storage import StorageError

    try:
        return await work
    except StorageError as exc:
        raise ToolFailure(ToolErrorCode.EXECUTION_FAILED, str(exc), retryable=False) from None


async def _value(value: object) -> object:
    return value


def _failure(message: str, *, code: str = "TOOL_UNAVAILABLE") -> Answer:
    return {"success": False, "error": {"code": code, "message": message, "retryable": True}}


def _exchange(gateway: RunningGateway, method: str, path: str, body: object) -> Answer:
    from pegboard import exactjson

    with _connect(gateway) as connection:
        payload = None if body is None else exactjson.dump(body)
        connection.request(method, path, payload, {"content-type": "application/json"})
        return exactjson.parse_object(connection.getresponse().read())


@contextlib.contextmanager
def _connect(gateway: RunningGateway) -> Generator[http.client.HTTPConnection]:
    """A connection whose other end has proven to be that gateway; nothing else is sent before."""
    from pegboard.gateway.proof import CHALLENGE_HEADER, http_purpose, prove

    parts = urlsplit(gateway.url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    connection = http.client.HTTPConnection(host, port, timeout=_PROOF_LIMIT)
    with contextlib.closing(connection):
        connection.connect()
        # What was proven is proven of this connection: it must not be opened again unasked.
        connection.auto_open = 0
        challenge = secrets.token_hex(16)
        connection.request("GET", "/health", headers={CHALLENGE_HEADER: challenge})
        said: Any = json.loads(connection.getresponse().read(_MAX_HEALTH))
        proof = str(cast("Answer", said).get("proof")) if isinstance(said, dict) else ""
        if not hmac.compare_digest(proof.encode(), prove(gateway.token, http_purpose(port), challenge.encode())):
            raise OSError("somebody else answers there")
        connection.sock.settimeout(None)
        yield connection
