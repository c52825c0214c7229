"""Pegboard for scripts and notebooks: the same, without an event loop of one's own."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar

from pegboard.formats import Format
from pegboard.function_tool import FunctionTool
from pegboard.pegboard import Pegboard
from pegboard.result import ToolResult
from pegboard.servers.link import Message
from pegboard.tool import Disposable, Tool

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class BlockingPegboard:
    """A Pegboard in a thread of its own, whose answers are waited for; from several threads at once, too.

    It begins with the first call or with `with`, and ends with the block, with `close()`, or with the program.
    """

    def __init__(self, make: Callable[[], Pegboard]) -> None:
        # Made here: what is wrong with a config is the program's mistake, and is raised where that stands.
        self._board = make()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def __enter__(self) -> BlockingPegboard:
        self._running()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and leave nothing behind; a second time does nothing."""
        with self._starting:
            loop, self._loop = self._loop, None
            if loop is None:
                return
            atexit.unregister(self.close)
            asyncio.run_coroutine_threadsafe(self._board.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()

    def get_tool_definitions(self, *, format: Format = "anthropic", deferred: bool = False) -> list[dict[str, Any]]:
        """Every tool in a provider's form, by name."""
        return self._done(lambda board: board.get_tool_definitions(format=format, deferred=deferred))

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> ToolResult[Message]:
        """Call a tool."""
        return self._done(lambda board: board.call(name, arguments, timeout=timeout))

    def answer(
        self, reply: object, *, format: Format = "anthropic", timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """Make every call that a model's reply asks for, and give what to append to the conversation."""
        return self._done(lambda board: board.answer(reply, format=format, timeout=timeout))

    def find(self, query: str, limit: int = 10) -> ToolResult[dict[str, Any]]:
        """The tools that fit a query best."""
        return self._done(lambda board: board.find(query, limit))

    def load(self, *names: str, format: Format = "anthropic") -> ToolResult[list[dict[str, Any]]]:
        """Have these tools shown from now on."""
        return self._done(lambda board: board.load(*names, format=format))

    def refresh(self, server: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask a server, or all of them, for its tools now."""
        return self._done(lambda board: board.refresh(server))

    def enable(self, server: str) -> ToolResult[None]:
        """Switch a server on, for this program."""
        return self._done(lambda board: board.enable(server))

    def disable(self, server: str) -> ToolResult[None]:
        """Switch a server off, for this program."""
        return self._done(lambda board: board.disable(server))

    def register(self, tool: Tool) -> Disposable:
        """Add a tool of this program's own."""
        registered = self._done(lambda board: _soon(lambda: board.register(tool)))
        return Disposable(lambda: self._done(lambda _: _soon(registered.dispose)))

    def tool(self, function: Callable[P, R]) -> FunctionTool[P, R]:
        """Make a tool of a typed function, and add it; a decorator."""
        return self._done(lambda board: _soon(lambda: board.tool(function)))

    def _done(self, work: Callable[[Pegboard], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(work(self._board), self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=loop.run_forever, name="pegboard", daemon=True)
                self._thread.start()
                try:
                    asyncio.run_coroutine_threadsafe(self._board.open(), loop).result()
                except BaseException:
                    loop.call_soon_threadsafe(loop.stop)
                    raise
                self._loop = loop
                atexit.register(self.close)
            return self._loop


async def _soon(work: Callable[[], T]) -> T:
    """In the board's own thread: nothing of it is meant for two at once."""
    return work()
