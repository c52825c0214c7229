"""A key of the installation's own: one for all gateways on a storage, made by whoever needs it first."""

from __future__ import annotations

import secrets

from pegboard.storage.database import Database, DatabaseConnection

_BYTES = 32


async def load_own_key(database: Database, table: str, name: str) -> bytes:
    """The key of this name. The table has two columns, `name` and `key`."""

    def work(connection: DatabaseConnection) -> bytes:
        read = f"SELECT key FROM {table} WHERE name = ?"  # noqa: S608  a name of ours
        row = connection.row(read, name)
        if row is None:
            add = f"INSERT INTO {table} (name, key) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"  # noqa: S608
            connection.execute(add, name, secrets.token_bytes(_BYTES))
            row = connection.row(read, name)
        assert row is not None
        return bytes(row[0])

    return await database.write(work)
