"""Which tools are loaded, and by whom: a session's are gone with it, a named board's are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from pegboard.log import logger
from pegboard.storage import BoardStore, StorageError

_NAMED = "board:"
_SESSION = "session:"


def named_board(name: str) -> str:
    """The key of a named board."""
    return f"{_NAMED}{name}"


def session_board(session: str) -> str:
    """The key of a session's own board."""
    return f"{_SESSION}{session}"


class LoadedTools:
    """Names of loaded tools by board, in the order they were loaded."""

    def __init__(self, store: BoardStore, on_change: Callable[[], None] = lambda: None) -> None:
        self._store = store
        # Changes are kept in the order they were made.
        self._keeping = asyncio.Lock()
        self._on_change = on_change
        self._boards: dict[str, dict[str, None]] = {}

    async def open(self) -> None:
        """Take over the named boards of earlier runs."""
        for name, tools in (await self._store.load()).items():
            self._boards[named_board(name)] = dict.fromkeys(tools)

    def on(self, board: str | None) -> tuple[str, ...]:
        """What is loaded on a board; where there is no board, nothing can be."""
        return tuple(self._boards.get(board, ())) if board is not None else ()

    async def add(self, board: str, names: Iterable[str]) -> None:
        """Load tools; those that are loaded already stay."""
        loaded = self._boards.setdefault(board, {})
        added = [name for name in dict.fromkeys(names) if name not in loaded]
        loaded.update(dict.fromkeys(added))
        if added:
            self._on_change()
            await self._keep(self._store.add, board, added)

    async def remove(self, board: str, names: Iterable[str]) -> list[str]:
        """Unload tools; those that were loaded are given back."""
        loaded = self._boards.get(board, {})
        removed = [name for name in dict.fromkeys(names) if loaded.pop(name, name) is None]
        if removed:
            self._on_change()
            if not loaded:
                self._boards.pop(board, None)
            await self._keep(self._store.remove, board, removed)
        return removed

    def leave(self, session: str) -> None:
        """A session is over."""
        self._boards.pop(session_board(session), None)

    async def _keep(
        self, change: Callable[[str, list[str]], Coroutine[Any, Any, None]], board: str, names: list[str]
    ) -> None:
        if not board.startswith(_NAMED):
            return
        try:
            async with self._keeping:
                await change(board.removeprefix(_NAMED), names)
        except StorageError as exc:
            # The board is as it was asked to be; only a restart will not know of it.
            logger().warning("board.save.failed", board=board, reason=str(exc))
