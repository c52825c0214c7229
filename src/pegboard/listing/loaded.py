"""Which tools are loaded, and by whom: a session's are gone with it, those of named boards and of principals are
kept."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from pegboard.log import logger
from pegboard.result import invalid, unavailable
from pegboard.storage import BoardStore, StorageError

# Named boards with at least one tool, and likewise boards of principals.
MOST_BOARDS = 1_000
# Boards of one principal.
MOST_OF_PRINCIPAL = 100
_NAMED = "board:"
_SESSION = "session:"
_PRINCIPAL = "principal:"
_GUEST = "guest:"
_KEPT = (_NAMED, _PRINCIPAL)


def board_key(name: str) -> str:
    """The key of a named board."""
    return f"{_NAMED}{name}"


def is_shared(board: str | None) -> bool:
    """Whether a board may be several principals'."""
    return board is not None and board.startswith(_NAMED)


def session_board_key(session: str) -> str:
    """The key of a session's own board."""
    return f"{_SESSION}{session}"


def principal_board_key(principal: str, name: str) -> str:
    """The key of the board of a client of this name and principal."""
    return f"{_PRINCIPAL}{principal}:{name}"


def guest_board_key(network: str, name: str) -> str:
    """The key of the board of a client of this name about which nothing else is known. It lasts as long as the gateway
    runs: anybody may say any name."""
    return f"{_GUEST}{network}:{name}"


class LoadedTools:
    """Names of loaded tools by board, in the order they were loaded. A full board unloads the least recently used, and
    where there are too many boards, the least recently used is forgotten.

    A board that is kept changes once its storage has taken the change, and not at all where it refused.
    """

    def __init__(self, store: BoardStore, on_change: Callable[[], None], size: Callable[[], int]) -> None:
        self._store = store
        # Changes of boards that are kept are made one after the other.
        self._keeping = asyncio.Lock()
        self._on_change = on_change
        self._size = size
        # By board: each tool, and when it was used last, in uses of any tool.
        self.boards: dict[str, dict[str, int]] = {}
        self._uses = itertools.count()

    async def open(self) -> None:
        """Take over the boards of earlier runs."""
        for name, tools in (await self._store.load()).items():
            self.boards[_key_of(name)] = {tool: next(self._uses) for tool in tools}

    def on(self, board: str | None) -> tuple[str, ...]:
        """What is loaded on a board; where there is no board, nothing can be."""
        return tuple(self.boards.get(board, ())) if board is not None else ()

    def use(self, board: str | None, name: str) -> None:
        """A client calls a tool: if it has loaded it, it is the last to be unloaded."""
        if board is None or name not in (loaded := self.boards.get(board, {})):
            return
        loaded[name] = next(self._uses)
        self._move_to_end(board)

    async def add(self, board: str, names: Iterable[str]) -> list[str]:
        """Load tools; those that are loaded already stay. What had to be unloaded to make room is given back."""
        wanted = list(dict.fromkeys(names))
        async with self._turn(board):
            loaded = self.boards.get(board, {})
            added = [name for name in wanted if name not in loaded]
            removed = self._find_least_used(loaded, wanted, len(added))
            if added:
                await self._make_room(board)
                await self._keep(board, added, removed)
                # Storage may have waited: the board of then is the board of now, since changes are made in turns.
                loaded = self.boards.setdefault(board, {})
                for name in removed:
                    loaded.pop(name, None)
            for name in wanted:
                loaded[name] = next(self._uses)
            if wanted:
                self._move_to_end(board)
            if added:
                self._on_change()
        return removed

    async def remove(self, board: str, names: Iterable[str]) -> list[str]:
        """Unload tools; those that were loaded are given back."""
        async with self._turn(board):
            loaded = self.boards.get(board, {})
            removed = [name for name in dict.fromkeys(names) if name in loaded]
            if removed:
                await self._keep(board, [], removed)
                for name in removed:
                    del loaded[name]
                if not loaded:
                    self.boards.pop(board, None)
                self._on_change()
        return removed

    def leave(self, session: str) -> None:
        """A session is over."""
        self.boards.pop(session_board_key(session), None)

    def forget_principal(self, principal: str) -> None:
        """A principal is gone, and in storage its boards are."""
        own = principal_board_key(principal, "")
        for board in [board for board in self.boards if board.startswith(own)]:
            del self.boards[board]

    def _turn(self, board: str) -> AbstractAsyncContextManager[None]:
        return self._keeping if board.startswith(_KEPT) else nullcontext()

    def _find_least_used(self, loaded: dict[str, int], wanted: Sequence[str], added: int) -> list[str]:
        """What a board unloads to have room for more."""
        size = self._size()
        if len(wanted) > size:
            raise invalid(f"a board holds {size} tools: name no more than {size} at once")
        others = sorted((used, name) for name, used in loaded.items() if name not in wanted)
        return [name for _, name in others[: max(len(loaded) + added - size, 0)]]

    def _move_to_end(self, board: str) -> None:
        """It is the last of the boards to be forgotten."""
        self.boards[board] = self.boards.pop(board)

    async def _make_room(self, board: str) -> None:
        """Forget the board that was used least recently, if there are as many as can be. A board stays until then, or
        until its last tool is unloaded, so a client that has a new name each time would fill the disk."""
        if board in self.boards or board.startswith(_SESSION):
            return
        oldest = self._find_oldest(board.partition(":")[0] + ":", MOST_BOARDS)
        if board.startswith(_PRINCIPAL):
            # Nobody's boards make room for those of somebody who has many.
            oldest = self._find_oldest(board.rpartition(":")[0] + ":", MOST_OF_PRINCIPAL) or oldest
        if oldest is None:
            return
        await self._keep(oldest, [], list(self.boards[oldest]))
        del self.boards[oldest]
        logger().info("board.forgotten", board=oldest)

    def _find_oldest(self, beginning: str, most: int) -> str | None:
        """Of the boards that begin so, the least recently used, if there are as many as can be."""
        found = [board for board in self.boards if board.startswith(beginning)]
        return found[0] if len(found) >= most else None

    async def _keep(self, board: str, added: Sequence[str], removed: Sequence[str]) -> None:
        if not board.startswith(_KEPT):
            return
        try:
            await self._store.change(board.removeprefix(_NAMED), add=added, remove=removed)
        except StorageError as exc:
            logger().warning("board.save.failed", board=board, reason=str(exc))
            name = board.rpartition(":")[2]
            raise unavailable(f"nothing was changed on board {name}: {exc.error.message}") from exc


def _key_of(stored: str) -> str:
    """The key of a board in storage. Named boards stand there by their names, which have no colon."""
    return stored if stored.startswith(_PRINCIPAL) else board_key(stored)
