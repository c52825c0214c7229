"""Which tools are loaded, and by whom: a session's are gone with it, a named board's are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pegboard.log import logger
from pegboard.storage import Storage, StorageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_NAMED = "board:"
_SESSION = "session:"


def is_board_name(name: str) -> bool:
    """Whether a board may be called this: it stands in addresses."""
    return _NAME.fullmatch(name) is not None


def named_board(name: str) -> str:
    """The key of a named board."""
    return f"{_NAMED}{name}"


def session_board(session: str) -> str:
    """The key of a session's own board."""
    return f"{_SESSION}{session}"


class LoadedTools:
    """Names of loaded tools by board, in the order they were loaded."""

    def __init__(self, storage: Storage, on_change: Callable[[], None] = lambda: None) -> None:
        self._storage = storage
        self._on_change = on_change
        self._boards: dict[str, dict[str, None]] = {}

    async def open(self) -> None:
        """Take over the named boards of earlier runs."""
        for name, tools in (await self._storage.load_boards()).items():
            self._boards[named_board(name)] = dict.fromkeys(tools)

    def on(self, board: str | None) -> tuple[str, ...]:
        """What is loaded on a board; where there is no board, nothing can be."""
        return tuple(self._boards.get(board, ())) if board is not None else ()

    async def add(self, board: str, names: Iterable[str]) -> None:
        """Load tools; those that are loaded already stay."""
        loaded = self._boards.setdefault(board, {})
        before = len(loaded)
        loaded.update(dict.fromkeys(names))
        if len(loaded) != before:
            await self._changed(board)

    async def remove(self, board: str, names: Iterable[str]) -> list[str]:
        """Unload tools; those that were loaded are given back."""
        loaded = self._boards.get(board, {})
        removed = [name for name in dict.fromkeys(names) if loaded.pop(name, name) is None]
        if removed:
            await self._changed(board)
        if not loaded:
            self._boards.pop(board, None)
        return removed

    def leave(self, session: str) -> None:
        """A session is over."""
        self._boards.pop(session_board(session), None)

    async def _changed(self, board: str) -> None:
        self._on_change()
        if board.startswith(_NAMED):
            try:
                await self._storage.save_board(board.removeprefix(_NAMED), list(self._boards.get(board, ())))
            except StorageError as exc:
                # The tools are loaded all the same; only a restart will not know of them.
                logger().warning("board.save.failed", board=board, reason=str(exc))
