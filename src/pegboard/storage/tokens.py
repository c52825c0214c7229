"""Static tokens as they are kept: a digest, never the token."""

from __future__ import annotations

from pegboard.storage.database import Database, DatabaseConnection, Row

_LOAD = "SELECT id, name, digest, rule, created_at, expires_at, last_used_at FROM tokens ORDER BY created_at, id"
_ADD = """
INSERT INTO tokens (id, name, digest, rule, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO NOTHING
"""
_REMOVE = "DELETE FROM tokens WHERE name = ?"


class TokenStore:
    """Rows of tokens, in the order they were made. What a rule says is JSON here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> list[Row]:
        """Every token: id, name, digest, rule, when it was made, when it expires, when it was used last."""
        return await self._database.read(lambda connection: connection.rows(_LOAD))

    async def add(
        self, token_id: str, name: str, digest: bytes, rule: str, created_at: float, expires_at: float | None
    ) -> bool:
        """Keep a new token; false if there is one of that name."""

        def write(connection: DatabaseConnection) -> bool:
            return connection.execute(_ADD, token_id, name, digest, rule, created_at, expires_at) == 1

        return await self._database.write(write)

    async def remove(self, name: str) -> bool:
        """Forget a token; false if there is none of that name."""
        return await self._database.write(lambda connection: connection.execute(_REMOVE, name) == 1)
