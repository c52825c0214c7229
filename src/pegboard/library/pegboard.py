"""Pegboard for Python programs: every tool in a provider's format, and calls that give results."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pegboard.board import Board
from pegboard.catalog.definitions import tool_problem
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.config import ConfigError, Settings, parse_settings
from pegboard.exactjson import as_object
from pegboard.formats import Format, ProviderFormat, RequestedCall, format_problem, make_formats
from pegboard.formats.content import TEXT_LIMIT
from pegboard.formats.found import FIND
from pegboard.library.board_tools import BoardTools
from pegboard.library.retries import with_retries
from pegboard.library.tool_decorator import ToolDecorator
from pegboard.listing.loaded import session_board_key
from pegboard.log import new_trace_id
from pegboard.log import trace_id as current_trace
from pegboard.resolver import UnknownTool
from pegboard.result import ToolError, ToolResult, as_result, invalid, unavailable
from pegboard.results.caps import USUAL_CAP
from pegboard.servers.message import Message
from pegboard.tool import Disposable, RegisteredTool, ResultTool, Tool

if TYPE_CHECKING:
    from pegboard.library.blocking import BlockingPegboard

# How long the first list waits for servers that nobody has ever seen; whoever takes longer is in a later one.
NEW_SERVER_WAIT = 10.0


class Pegboard(ToolDecorator):
    """The tools of many servers and of this program. Whatever goes wrong is in a result; nothing is raised but for
    mistakes of the program itself, and nothing is connected before it is needed."""

    def __init__(
        self,
        servers: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        settings: Mapping[str, Any] | Settings | None = None,
        workspace: str | os.PathLike[str] | None = None,
    ) -> None:
        """With servers, and settings of Pegboard's own, as a config file has them; `ConfigError` if they are wrong."""
        if not isinstance(settings, Settings):
            read = {"mcpServers": dict(servers or {}), "pegboard": dict(settings or {})}
            settings = parse_settings(json.dumps(read, default=os.fspath), Path("Pegboard"), os.environ)
            for spec in settings.servers.values():
                if spec.malformed:
                    raise ConfigError(spec.problem or "")
        elif servers is not None:
            raise TypeError("either servers or settings that have been read already, which have servers of their own")
        self._board = Board(settings, workspace=None if workspace is None else str(Path(workspace).resolve()))
        self._board_key = session_board_key(f"python-{uuid4().hex}")
        self._caller = Caller(Client(board=self._board_key))
        self._tools = BoardTools(self._board, self._board_key)
        self._formats = make_formats()
        self._was_opened = False
        # Whether the definitions that were given last were deferred: then a model searches for tools.
        self._is_deferred = False
        # Servers that were never seen, and since when somebody waits for them.
        self._awaited: dict[str, float] = {}

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str] | None = None, *, workspace: str | os.PathLike[str] | None = None
    ) -> Pegboard:
        """With the settings of a config file, found as the commands find it; `ConfigError` if it cannot be used."""
        return cls(settings=Board.settings_of(path), workspace=workspace)

    @classmethod
    def sync(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        servers: Mapping[str, Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        workspace: str | os.PathLike[str] | None = None,
    ) -> BlockingPegboard:
        """The same for programs without an event loop, and for notebooks: with a config file, or with servers."""
        from pegboard.library.blocking import BlockingPegboard

        if servers is None and settings is None:
            return BlockingPegboard(lambda: cls.from_config(path, workspace=workspace))
        if path is not None:
            raise TypeError("either a config file or servers and settings, not both")
        return BlockingPegboard(lambda: cls(servers, settings=settings, workspace=workspace))

    async def __aenter__(self) -> Pegboard:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Be ready; `StorageError` if there is nowhere to keep things."""
        await self._board.open()
        self._was_opened = True

    async def close(self) -> None:
        """Stop everything and leave nothing behind."""
        await self._board.close()

    async def get_tool_definitions(
        self, *, format: Format = "anthropic", deferred: bool = False, patience: float = NEW_SERVER_WAIT
    ) -> list[dict[str, Any]]:
        """Every tool in a provider's form, by name.

        With `deferred`, a model first sees those that find others, pinned ones, and this program's own; the rest joins
        when it is found (anthropic, openai) or loaded. Without `tool_find` nothing could be found, and nothing is
        deferred. Servers never seen before are waited for that many seconds, each of them once.
        """
        made = self._format(format)
        self._check_opened()
        self._board.discovery.refresh_stale()
        await self._board.discovery.discover_new(self._patience(patience))
        self._is_deferred = deferred and FIND in self._board.registry.static()
        return made.offer(self._tools, deferred=self._is_deferred)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        trace_id: str | None = None,
    ) -> ToolResult[Message]:
        """Call a tool by the name that it has here or at a provider; the data is its result as MCP has it.

        What failed by chance is tried again, up to three times in the time limit, if the tool says that this is safe.
        """
        return await self._call(name, arguments, timeout, trace_id)

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        trace_id: str | None = None,
        deferred: bool | None = None,
        *,
        for_model: bool = False,
    ) -> ToolResult[Message]:
        self._check_opened()
        if problem := _text_problem("the name of a tool", name) or _time_problem(timeout) or _trace_problem(trace_id):
            return _refusal(problem)
        token = current_trace.set(trace_id or current_trace.get() or new_trace_id())
        try:
            meant = self._tools.names.resolve(name)
            limit = timeout if timeout is not None else self._limit(meant)
            cap = self._cap(meant, deferred) if for_model else None
            return await with_retries(
                lambda left: self._call_once(meant, arguments, left, limit, cap),
                limit=limit,
                first_limit=timeout,
                repeatable=self._is_repeatable(meant),
                subject=meant,
            )
        finally:
            current_trace.reset(token)

    async def answer(
        self,
        reply: object,
        *,
        format: Format = "anthropic",
        deferred: bool | None = None,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        """Make every call that a model's reply asks for, all at once, and give what to append to the conversation.

        The reply is the SDK's object or plain JSON. Without calls there is nothing to append: the model is done.
        `deferred` is whether the model was offered deferred tools; unless it is said, as in the last definitions.
        """
        made = self._format(format)
        calls = made.parse_calls(reply)
        answers = await asyncio.gather(*(self._answer_call(call, timeout, deferred) for call in calls))
        return made.results(answers, self._tools, deferred=deferred) if answers else []

    async def find(self, query: str, limit: int = 10) -> ToolResult[dict[str, Any]]:
        """The tools that fit a query best, as `tool_find` gives them."""
        self._check_opened()
        return await as_result(self._find(query, limit))

    async def load(self, *names: str, format: Format = "anthropic") -> ToolResult[list[dict[str, Any]]]:
        """Have these tools shown from now on, also where others are deferred; gives their definitions. All or none."""
        self._check_opened()
        if problem := format_problem(format):
            return _refusal(problem)
        if problem := next(filter(None, (_text_problem("the name of a tool", name) for name in names)), None):
            return _refusal(problem)
        return await as_result(self._load(names, format))

    async def refresh(self, server: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask a server, or all of them, for its tools now."""
        self._check_opened()
        if server is None:
            return await self._board.refresh()
        if problem := _text_problem("the name of a server", server):
            return _refusal(problem)
        return await self._board.refresh([server]) if server in self._board.servers else _no_server(server)

    async def discover_all_tools(self, trace_id: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask every server whose tools are not fresh."""
        self._check_opened()
        return await self._board.discover_all_tools(trace_id)

    async def enable(self, server: str) -> ToolResult[None]:
        """Switch a server on, for this program; no file changes."""
        return await self._switch(server, enabled=True)

    async def disable(self, server: str) -> ToolResult[None]:
        """Switch a server off, for this program: its tools are gone at once."""
        return await self._switch(server, enabled=False)

    def register(self, tool: Tool) -> Disposable:
        """Add a tool of this program's own; `ValueError` if its name or its schema cannot be used."""
        if problem := tool_problem(tool.definition()):
            raise ValueError(f"{tool.name} cannot be registered: {problem}")
        registered = self._board.register(tool)
        self._tools.registered.add(tool.name)

        def undo() -> None:
            self._tools.registered.discard(tool.name)
            registered.dispose()

        return Disposable(undo)

    def register_static_tool(
        self, name: str, handler: Callable[[dict[str, Any]], Any], definition: Mapping[str, Any]
    ) -> ToolResult[str]:
        """Add a function that takes the arguments as one object, with its definition in MCP's or Anthropic's words."""
        result = self._board.registry.register_static_tool(name, handler, definition)
        if result.success:
            self._tools.registered.add(name)
        return result

    def get_mcp_tool(self, name: str) -> RegisteredTool | None:
        """The server's tool of that name."""
        return self._board.registry.get_mcp_tool(name)

    def is_discovery_stale(self, server: str) -> bool:
        """Whether a server was never asked for its tools, or longer ago than they hold."""
        return self._board.registry.is_discovery_stale(server)

    def _format(self, form: Format) -> ProviderFormat:
        if problem := format_problem(form):
            raise ValueError(problem)
        return self._formats[form]

    def _check_opened(self) -> None:
        if not self._was_opened:
            raise RuntimeError("the board is not open: use it inside of `async with`, or after `await board.open()`")

    def _patience(self, limit: float) -> float:
        """How long a list still waits: a server that never answers costs a conversation one wait, not one a turn."""
        now = time.monotonic()
        unseen = [name for name, server in self._board.servers.items() if server.spec.enabled]
        unseen = [name for name in unseen if self._board.registry.server(name) is None]
        return max([0.0, *(limit - now + self._awaited.setdefault(name, now) for name in unseen)])

    def _limit(self, name: str) -> float:
        tool = self._board.registry.get(name)
        server = self._board.servers.get(tool.server_name or "") if tool is not None else None
        return server.spec.timeout if server is not None else NEW_SERVER_WAIT

    def _is_repeatable(self, name: str) -> bool:
        tool = self._board.registry.get(name)
        said = as_object(tool.definition.get("annotations")) if tool is not None else None
        return said is not None and (said.get("readOnlyHint") is True or said.get("idempotentHint") is True)

    async def _call_once(
        self, name: str, arguments: Mapping[str, Any] | None, left: float | None, limit: float, cap: int | None
    ) -> ToolResult[Message]:
        caller = self._caller if cap is None else replace(self._caller, cap=cap)
        try:
            async with asyncio.timeout(left):
                return self._with_own_failure(name, await self._board.call(name, arguments, caller))
        except TimeoutError:
            return ToolResult[Message].failed(unavailable(f"{name} did not answer within {limit:g} s").error)

    def _with_own_failure(self, name: str, result: ToolResult[Message]) -> ToolResult[Message]:
        """The error of a static tool as the result's own: what a server's tool reports is data, and means anything."""
        message = result.data
        tool = self._board.registry.get(name)
        if message is None or message.get("isError") is not True or tool is None:
            return result
        if not isinstance(tool.tool, ResultTool):
            return result
        error = ToolError.read((as_object(message.get("structuredContent")) or {}).get("error"))
        return result if error is None else ToolResult[Message].failed(error)

    async def _answer_call(
        self, call: RequestedCall, timeout: float | None, deferred: bool | None
    ) -> tuple[RequestedCall, ToolResult[Message]]:
        meant = self._tools.names.resolve(call.name, call.namespace)
        if call.refusal is not None:
            return call, call.refusal
        return call, await self._call(meant, call.arguments, timeout, deferred=deferred, for_model=True)

    def _cap(self, name: str, deferred: bool | None) -> int | None:
        """How many characters of a result a model is given; `None` where it could not read the rest of one."""
        tool = self._board.registry.get(name)
        if tool is None or not self._board.gate.has_reader(self._caller.client.filter):
            return None
        is_searching = self._is_deferred if deferred is None else deferred
        cap = self._board.results.caps.find_for_program(tool, USUAL_CAP if is_searching else TEXT_LIMIT)
        # What is longer than this would be cut for every provider, and be lost.
        return min(cap or TEXT_LIMIT, TEXT_LIMIT)

    async def _find(self, query: str, limit: int) -> dict[str, Any]:
        return await self._board.search(query, limit, self._caller)

    async def _load(self, names: Iterable[str], format: Format) -> list[dict[str, Any]]:
        tools = [await self._board.find_tool(self._tools.names.resolve(name)) for name in names]
        await self._board.loaded.add(self._board_key, [tool.name for tool in tools])
        return self._format(format).definitions(tools, self._tools.names, self._tools.conversions)

    async def _switch(self, server: str, *, enabled: bool) -> ToolResult[None]:
        self._check_opened()
        if problem := _text_problem("the name of a server", server):
            return _refusal(problem)
        settings = self._board.settings
        spec = settings.servers.get(server)
        if spec is None:
            return _no_server(server)
        servers = {**settings.servers, server: replace(spec, enabled=enabled)}
        self._awaited.pop(server, None)
        return await as_result(self._board.apply(replace(settings, servers=servers)))


def _refusal(problem: str) -> ToolResult[Any]:
    return ToolResult[Any].failed(invalid(problem).error)


def _text_problem(what: str, value: object) -> str | None:
    return None if isinstance(value, str) else f"{what} must be a text, found {type(value).__name__}"


def _trace_problem(trace_id: object) -> str | None:
    return None if trace_id is None else _text_problem("trace_id", trace_id)


def _time_problem(timeout: object) -> str | None:
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout == timeout  # noqa: PLR0124  NaN
    return None if timeout is None or is_number else "timeout must be a number of seconds"


def _no_server(name: str) -> ToolResult[Any]:
    return ToolResult[Any].failed(UnknownTool(f"there is no server {name!r}").error)
