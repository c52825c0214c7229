"""The key of the page's cookies: one for all gateways on a storage, made by whoever needs it first."""

from __future__ import annotations

import secrets

from pegboard.storage.database import Database, DatabaseConnection

_NAME, _BYTES = "cookie", 32
_ADD = "INSERT INTO page_keys (name, key) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
_READ = "SELECT key FROM page_keys WHERE name = ?"


class PageKeyStore:
    """The row of the key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> bytes:
        """The key."""

        def work(connection: DatabaseConnection) -> bytes:
            row = connection.row(_READ, _NAME)
            if row is None:
                connection.execute(_ADD, _NAME, secrets.token_bytes(_BYTES))
                row = connection.row(_READ, _NAME)
            assert row is not None
            return bytes(row[0])

        return await self._database.write(work)
