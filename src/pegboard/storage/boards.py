"""Which tools are loaded on each named board."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.storage.database import Database, DatabaseConnection

_ADD = "INSERT INTO board_tools (board, tool) VALUES (?, ?) ON CONFLICT (board, tool) DO NOTHING"
_REMOVE = "DELETE FROM board_tools WHERE board = ? AND tool = ?"


class BoardStore:
    """Keeps sets of tools. Changes are of single tools, so that two who change a board at once lose nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> dict[str, list[str]]:
        """The tools of each board, in the order they were added."""
        query = "SELECT board, tool FROM board_tools ORDER BY position"
        boards: dict[str, list[str]] = {}
        for board, tool in await self._database.read(lambda connection: connection.rows(query)):
            boards.setdefault(board, []).append(tool)
        return boards

    async def add(self, board: str, tools: Iterable[str]) -> None:
        """Put tools on a board; those that are there already stay in their place."""
        await self._change(_ADD, board, tools)

    async def remove(self, board: str, tools: Iterable[str]) -> None:
        """Take tools off a board; a board without tools is none."""
        await self._change(_REMOVE, board, tools)

    async def _change(self, statement: str, board: str, tools: Iterable[str]) -> None:
        pairs = [(board, tool) for tool in tools]

        def change(connection: DatabaseConnection) -> None:
            connection.execute_many(statement, pairs)

        await self._database.write(change)
