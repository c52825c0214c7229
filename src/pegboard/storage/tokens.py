"""Static tokens as they are kept: a digest, never the token."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pegboard.storage.database import Database, DatabaseConnection, Row

_TOKENS = "SELECT id, name, digest, rule, created_at, expires_at, last_used_at FROM tokens"
_LOAD = f"{_TOKENS} ORDER BY created_at, id"
_FIND = f"{_TOKENS} WHERE name = ?"
_VERSION = "SELECT version FROM tokens_version"
_ADD = """
INSERT INTO tokens (id, name, digest, rule, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO NOTHING
"""
_ROTATE = "UPDATE tokens SET digest = ?, expires_at = ? WHERE id = ?"
_CHANGE = "UPDATE tokens SET name = ?, rule = ?, expires_at = ? WHERE id = ?"
_REMOVE = "DELETE FROM tokens WHERE name = ? RETURNING id"
# Its own boards go with it: nobody will ever be who it was.
_REMOVE_BOARDS = "DELETE FROM board_tools WHERE board LIKE ?"
_TOUCH = "UPDATE tokens SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)"
# In the transaction of the change itself. Times would not do: the clocks of several machines differ.
_COUNT_CHANGE = "UPDATE tokens_version SET version = version + 1"

_TOUCH_PATIENCE = 1.0

# A token's name, its rule as JSON, and when it expires.
TokenTerms = tuple[str, str, float | None]


class TokenStore:
    """Rows of tokens, in the order they were made. What a rule says is JSON here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def version(self) -> int:
        """Another number after each change of tokens, whoever made it; that one was used is no change."""
        return await self._database.read(_read_version)

    async def load(self) -> list[Row]:
        """Every token: id, name, digest, rule, when it was made, when it expires, when it was used last."""
        return await self._database.read(lambda connection: connection.rows(_LOAD))

    async def load_with_version(self) -> tuple[int, list[Row]]:
        """Every token, and the version that this is."""
        return await self._database.read(lambda connection: (_read_version(connection), connection.rows(_LOAD)))

    async def add(
        self, token_id: str, name: str, digest: bytes, rule: str, created_at: float, expires_at: float | None
    ) -> bool:
        """Keep a new token; false if there is one of that name."""

        def write(connection: DatabaseConnection) -> bool:
            return _count(connection, connection.execute(_ADD, token_id, name, digest, rule, created_at, expires_at))

        return await self._database.write(write)

    async def rotate(self, token_id: str, digest: bytes, expires_at: float | None) -> bool:
        """Keep another digest for a token; false if there is none of that id any more."""

        def write(connection: DatabaseConnection) -> bool:
            return _count(connection, connection.execute(_ROTATE, digest, expires_at, token_id))

        return await self._database.write(write)

    async def change(self, name: str, change: Callable[[Row | None], TokenTerms]) -> bool:
        """Give a token the terms that follow from its row, which is `None` if there is none of that name; false if
        another token has the name that it is to have."""

        def write(connection: DatabaseConnection) -> bool:
            row = connection.row(_FIND, name)
            new_name, rule, expires_at = change(row)
            if row is None or (new_name != name and connection.row(_FIND, new_name) is not None):
                return False
            return _count(connection, connection.execute(_CHANGE, new_name, rule, expires_at, row[0]))

        return await self._database.write(write)

    async def remove(self, name: str) -> bool:
        """Forget a token and its boards; false if there is none of that name."""

        def write(connection: DatabaseConnection) -> bool:
            removed = connection.rows(_REMOVE, name)
            for (token_id,) in removed:
                connection.execute(_REMOVE_BOARDS, f"principal:token:{token_id}:%")
            return _count(connection, len(removed))

        return await self._database.write(write)

    async def touch(self, used: Mapping[str, float]) -> None:
        """Tokens were used, each at that time."""

        def write(connection: DatabaseConnection) -> None:
            connection.execute_many(_TOUCH, [(moment, token_id, moment) for token_id, moment in used.items()])

        # It only notes a use, and has no time to wait for others.
        await self._database.write(write, _TOUCH_PATIENCE)


def _read_version(connection: DatabaseConnection) -> int:
    ((version,),) = connection.rows(_VERSION)
    return version


def _count(connection: DatabaseConnection, changed: int) -> bool:
    if changed:
        connection.execute(_COUNT_CHANGE)
    return changed > 0
