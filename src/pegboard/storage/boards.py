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

    async def change(self, board: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Put tools on a board and take others off, all or none; those that are there already stay in their place."""
        added, removed = [(board, tool) for tool in add], [(board, tool) for tool in remove]

        def change(connection: DatabaseConnection) -> None:
            for statement, pairs in ((_ADD, added), (_REMOVE, removed)):
                if pairs:
                    connection.execute_many(statement, pairs)

        await self._database.write(change)
