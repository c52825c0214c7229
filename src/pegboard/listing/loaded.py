"""Which tools are loaded, and by whom: a session's are gone with it, a named board's are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from pegboard.log import logger
from pegboard.result import invalid, unavailable
from pegboard.storage import BoardStore, StorageError

# Named boards with at least one tool.
MOST_BOARDS = 1_000
_NAMED = "board:"
_SESSION = "session:"


def board_key(name: str) -> str:
    """The key of a named board."""
    return f"{_NAMED}{name}"


def session_board_key(session: str) -> str:
    """The key of a session's own board."""
    return f"{_SESSION}{session}"


class LoadedTools:
    """Names of loaded tools by board, in the order they were loaded.

    A named board changes once its storage has taken the change, and not at all where it refused.
    """

    def __init__(self, store: BoardStore, on_change: Callable[[], None] = lambda: None) -> None:
        self._store = store
        # Changes of named boards are made one after the other.
        self._keeping = asyncio.Lock()
        self._on_change = on_change
        self._boards: dict[str, dict[str, None]] = {}

    async def open(self) -> None:
        """Take over the named boards of earlier runs."""
        for name, tools in (await self._store.load()).items():
            self._boards[board_key(name)] = dict.fromkeys(tools)

    def on(self, board: str | None) -> tuple[str, ...]:
        """What is loaded on a board; where there is no board, nothing can be."""
        return tuple(self._boards.get(board, ())) if board is not None else ()

    async def add(self, board: str, names: Iterable[str]) -> None:
        """Load tools; those that are loaded already stay."""
        async with self._turn(board):
            added = [name for name in dict.fromkeys(names) if name not in self._boards.get(board, {})]
            if added:
                self._check_room(board)
                await self._keep(self._store.add, board, added)
                self._boards.setdefault(board, {}).update(dict.fromkeys(added))
                self._on_change()

    async def remove(self, board: str, names: Iterable[str]) -> list[str]:
        """Unload tools; those that were loaded are given back."""
        async with self._turn(board):
            loaded = self._boards.get(board, {})
            removed = [name for name in dict.fromkeys(names) if name in loaded]
            if removed:
                await self._keep(self._store.remove, board, removed)
                for name in removed:
                    del loaded[name]
                if not loaded:
                    self._boards.pop(board, None)
                self._on_change()
        return removed

    def leave(self, session: str) -> None:
        """A session is over."""
        self._boards.pop(session_board_key(session), None)

    def _turn(self, board: str) -> AbstractAsyncContextManager[None]:
        return self._keeping if board.startswith(_NAMED) else nullcontext()

    def _check_room(self, board: str) -> None:
        """A named board stays until its last tool is unloaded: whoever names one after the other fills the disk."""
        if not board.startswith(_NAMED) or board in self._boards:
            return
        if sum(name.startswith(_NAMED) for name in self._boards) >= MOST_BOARDS:
            raise invalid(
                f"there are {MOST_BOARDS:,} named boards already: unload every tool of one that is not needed"
            )

    async def _keep(
        self, change: Callable[[str, list[str]], Coroutine[Any, Any, None]], board: str, names: list[str]
    ) -> None:
        if not board.startswith(_NAMED):
            return
        try:
            await change(board.removeprefix(_NAMED), names)
        except StorageError as exc:
            logger().warning("board.save.failed", board=board, reason=str(exc))
            raise unavailable(
                f"nothing was changed on board {board.removeprefix(_NAMED)}: {exc.error.message}"
            ) from exc
