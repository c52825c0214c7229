"""Pegboard for scripts and notebooks: the same, without an event loop of one's own."""

from __future__ import annotations

import atexit

# Imported first: what is registered later to be done before threads end is done earlier, and closing needs executors.
import concurrent.futures.thread  # pyright: ignore[reportUnusedImport]
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from pegboard.formats import Format
from pegboard.library.loop_thread import LoopThread
from pegboard.library.pegboard import NEW_SERVER_WAIT, Pegboard
from pegboard.library.tool_decorator import ToolDecorator
from pegboard.result import ToolResult, unavailable
from pegboard.servers.message import Message
from pegboard.tool import Disposable, RegisteredTool, Tool

T = TypeVar("T")


class _ClosedError(RuntimeError):
    """The board has ended."""

    def __init__(self) -> None:
        super().__init__("the board is closed")


class BlockingPegboard(ToolDecorator):
    """A Pegboard in a thread of its own, whose answers are waited for; from several threads at once, too.

    It begins with the first call or with `with`, and ends with the block, with `close()`, or with the program. What is
    waited for when it ends has failed; a call after that has, too, and does not begin it again.
    """

    def __init__(self, make: Callable[[], Pegboard]) -> None:
        # Made here: what is wrong with a config is the program's mistake, and is raised where that stands.
        self._board = make()
        self._loop: LoopThread | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> BlockingPegboard:
        with self._lock:
            self._is_closed = False
            self._open_loop()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and leave nothing behind; a second time does nothing."""
        self._refuse_own_thread()
        with self._lock:
            loop, self._loop = self._loop, None
            self._is_closed = True
            _OPEN.discard(self)
            if loop is None:
                return
            try:
                loop.start(self._board.close()).result()
            finally:
                loop.close()

    def get_tool_definitions(
        self, *, format: Format = "anthropic", deferred: bool = False, patience: float = NEW_SERVER_WAIT
    ) -> list[dict[str, Any]]:
        """Every tool in a provider's form, by name."""
        return self._run(lambda board: board.get_tool_definitions(format=format, deferred=deferred, patience=patience))

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        trace_id: str | None = None,
    ) -> ToolResult[Message]:
        """Call a tool."""
        return self._outcome(lambda board: board.call(name, arguments, timeout=timeout, trace_id=trace_id))

    def answer(
        self,
        reply: object,
        *,
        format: Format = "anthropic",
        deferred: bool | None = None,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        """Make every call that a model's reply asks for, and give what to append to the conversation."""
        return self._run(lambda board: board.answer(reply, format=format, deferred=deferred, timeout=timeout))

    def find(self, query: str, limit: int = 10) -> ToolResult[dict[str, Any]]:
        """The tools that fit a query best."""
        return self._outcome(lambda board: board.find(query, limit))

    def load(self, *names: str, format: Format = "anthropic") -> ToolResult[list[dict[str, Any]]]:
        """Have these tools shown from now on."""
        return self._outcome(lambda board: board.load(*names, format=format))

    def refresh(self, server: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask a server, or all of them, for its tools now."""
        return self._outcome(lambda board: board.refresh(server))

    def discover_all_tools(self, trace_id: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask every server whose tools are not fresh."""
        return self._outcome(lambda board: board.discover_all_tools(trace_id))

    def enable(self, server: str) -> ToolResult[None]:
        """Switch a server on, for this program."""
        return self._outcome(lambda board: board.enable(server))

    def disable(self, server: str) -> ToolResult[None]:
        """Switch a server off, for this program."""
        return self._outcome(lambda board: board.disable(server))

    def register(self, tool: Tool) -> Disposable:
        """Add a tool of this program's own."""
        registered = self._run(lambda board: _soon(lambda: board.register(tool)))
        return Disposable(lambda: self._run(lambda _: _soon(registered.dispose)))

    def register_static_tool(
        self, name: str, handler: Callable[[dict[str, Any]], Any], definition: Mapping[str, Any]
    ) -> ToolResult[str]:
        """Add a function that takes the arguments as one object."""
        return self._outcome(lambda board: _soon(lambda: board.register_static_tool(name, handler, definition)))

    def get_mcp_tool(self, name: str) -> RegisteredTool | None:
        """The server's tool of that name."""
        return self._run(lambda board: _soon(lambda: board.get_mcp_tool(name)))

    def is_discovery_stale(self, server: str) -> bool:
        """Whether a server was never asked for its tools, or longer ago than they hold."""
        return self._run(lambda board: _soon(lambda: board.is_discovery_stale(server)))

    def _outcome(self, work: Callable[[Pegboard], Coroutine[Any, Any, ToolResult[T]]]) -> ToolResult[T]:
        try:
            return self._run(work)
        except _ClosedError as exc:
            return ToolResult[T].failed(unavailable(str(exc), retryable=False).error)

    def _run(self, work: Callable[[Pegboard], Coroutine[Any, Any, T]]) -> T:
        self._refuse_own_thread()
        # Handed over before anybody else can close the board: a loop that has stopped never answers.
        with self._lock:
            waited_for = self._open_loop().start(work(self._board))
        try:
            return waited_for.result()
        except concurrent.futures.CancelledError:
            raise _ClosedError from None
        finally:
            # Nobody waits any more, after Ctrl-C for instance: then nobody should work, either.
            waited_for.cancel()

    def _open_loop(self) -> LoopThread:
        """The board's loop, started if need be; the lock is held."""
        if self._is_closed:
            raise _ClosedError
        if self._loop is None:
            loop = LoopThread("pegboard")
            try:
                loop.start(self._board.open()).result()
            except BaseException:
                loop.close()
                raise
            self._loop = loop
            _OPEN.add(self)
        return self._loop

    def _refuse_own_thread(self) -> None:
        if (loop := self._loop) is not None and loop.is_current():
            raise RuntimeError(
                "an async tool cannot wait for the board that runs it: make it a plain function, or use Pegboard"
            )


async def _soon(work: Callable[[], T]) -> T:
    """In the board's own thread: nothing of it is meant for two at once."""
    return work()


# Boards that end with the program, unless they ended before.
_OPEN: set[BlockingPegboard] = set()


def _end_with_the_program() -> None:
    for board in list(_OPEN):
        board.close()


# `atexit` is too late, since by then no executor takes any work; this is how executors themselves are told in time.
_register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
_register(_end_with_the_program)
