"""Sign-ins of browsers at the page, as they are kept: that there is one, and until when."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.storage.database import Database, DatabaseConnection
from pegboard.storage.sql import marks, parts

_FORGET_OLD = "DELETE FROM page_sessions WHERE expires_at <= ?"
_FORGET_OTHERS = """
DELETE FROM page_sessions WHERE principal = ? AND id NOT IN (
    SELECT id FROM page_sessions WHERE principal = ? ORDER BY expires_at DESC, id LIMIT ?
)
"""
_ADD = "INSERT INTO page_sessions (id, principal, expires_at) VALUES (?, ?, ?)"
_FIND = "SELECT 1 FROM page_sessions WHERE id = ? AND expires_at > ?"
_END = "DELETE FROM page_sessions WHERE id = ?"
# Of one principal, so that what is kept stays small.
MOST_OF_PRINCIPAL = 100


class PageSessionStore:
    """Rows of sign-ins. What a cookie has beside its id is kept nowhere."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session_id: str, principal: str, now: float, expires_at: float) -> None:
        """Keep a new one, and forget those that are over or too many."""

        def write(connection: DatabaseConnection) -> None:
            connection.execute(_FORGET_OLD, now)
            connection.execute(_FORGET_OTHERS, principal, principal, MOST_OF_PRINCIPAL - 1)
            connection.execute(_ADD, session_id, principal, expires_at)

        await self._database.write(write)

    async def has(self, session_id: str, now: float) -> bool:
        """Whether it goes on."""
        return await self._database.read(lambda connection: connection.row(_FIND, session_id, now) is not None)

    async def list_over(self, session_ids: Sequence[str], now: float) -> list[str]:
        """Those of these that go on no more."""

        def read(connection: DatabaseConnection) -> list[str]:
            going: set[object] = set()
            for part in parts(session_ids):
                found = f"SELECT id FROM page_sessions WHERE expires_at > ? AND id IN ({marks(part)})"  # noqa: S608
                going.update(row[0] for row in connection.rows(found, now, *part))
            return [each for each in session_ids if each not in going]

        return await self._database.read(read)

    async def end(self, session_id: str) -> None:
        """Forget it."""

        def write(connection: DatabaseConnection) -> None:
            connection.execute(_END, session_id)

        await self._database.write(write)
