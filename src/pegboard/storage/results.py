"""Kept results: texts that were too long for whoever called, in compressed pieces. Each belongs to one principal, and
in the handshake era to one session; to anybody else there is no such result.

A text is written piece by piece, each a transaction of its own, so that nobody waits long for the writer. It is there
once its last piece is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pegboard.storage.database import Database, DatabaseConnection
from pegboard.storage.sql import marks, parts

# What a row takes beside its pieces and facts: a result of one character is not for nothing.
ROW_BYTES = 1000
_BEGIN = """
INSERT INTO kept_results (id, principal, session, facts, characters, bytes, is_whole, created_at, read_at)
VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)
"""
_ADD = "INSERT INTO kept_result_pieces (result, number, data) VALUES (?, ?, ?)"
_GROW = "UPDATE kept_results SET bytes = bytes + ? WHERE id = ?"
_FINISH = "UPDATE kept_results SET is_whole = 1 WHERE id = ? AND is_whole = 0 RETURNING bytes"
_FIND = """
UPDATE kept_results SET read_at = ? WHERE id = ? AND principal = ? AND session = ? AND is_whole = 1 AND read_at > ?
RETURNING facts, characters
"""
_PIECES = "SELECT data FROM kept_result_pieces WHERE result = ? AND number >= ? AND number < ? ORDER BY number"
_OLD = "SELECT id FROM kept_results WHERE read_at <= ? LIMIT ?"
# How many results each principal has, and how many bytes they are: nobody counts all rows for each that comes.
_COUNT_IN = """
INSERT INTO kept_result_totals (principal, results, bytes) VALUES (?, 1, ?)
ON CONFLICT (principal) DO UPDATE SET
    results = kept_result_totals.results + 1, bytes = kept_result_totals.bytes + excluded.bytes
"""
_COUNT_OUT = "UPDATE kept_result_totals SET results = results - ?, bytes = bytes - ? WHERE principal = ?"
_FORGET_NONE = "DELETE FROM kept_result_totals WHERE principal = ? AND results <= 0"
_TOTAL_OF_ONE = "SELECT results, bytes FROM kept_result_totals WHERE principal = ?"
_TOTAL_OF_ALL = "SELECT 0, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM kept_result_totals"
_OLDEST = "SELECT id, bytes FROM kept_results WHERE {whose} AND is_whole = 1 ORDER BY created_at, id LIMIT ?"
_OLDEST_OF_ONE = _OLDEST.replace("{whose}", "principal = ?")
_OLDEST_OF_ALL = _OLDEST.replace("{whose}", "1 = 1")
# So many rows are removed at once.
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class ResultOwner:
    """Whose result it is: the principal, and the session in the handshake era."""

    principal: str
    session: str = ""


class ResultStore:
    """Rows of kept results, and their pieces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, result_id: str, owner: ResultOwner, facts: str, characters: int, now: float) -> None:
        """Make room for a result of so many characters; `facts` are JSON."""
        row = (result_id, owner.principal, owner.session, facts, characters, size_of_row(facts), now, now)

        def write(connection: DatabaseConnection) -> None:
            connection.execute(_BEGIN, *row)

        await self._database.write(write)

    async def add(self, result_id: str, number: int, piece: bytes) -> None:
        """Keep the next piece."""

        def write(connection: DatabaseConnection) -> None:
            # Whoever makes room may have taken it away meanwhile.
            if connection.execute(_GROW, len(piece), result_id):
                connection.execute(_ADD, result_id, number, piece)

        await self._database.write(write)

    async def finish(
        self, result_id: str, owner: ResultOwner, *, expired: float, count: int, share: int, most: int
    ) -> bool:
        """It is whole; false if it is not there any more. What was last read before `expired` goes, and the oldest of
        what is more than its principal may have (so many results, so many bytes), or than all."""

        def write(connection: DatabaseConnection) -> bool:
            row = connection.row(_FINISH, result_id)
            if row is None:
                return False
            connection.execute(_COUNT_IN, owner.principal, row[0])
            _remove(connection, [row[0] for row in connection.rows(_OLD, expired, _AT_ONCE)])
            _make_room(connection, _TOTAL_OF_ONE, _OLDEST_OF_ONE, (owner.principal,), (count, share))
            _make_room(connection, _TOTAL_OF_ALL, _OLDEST_OF_ALL, (), (0, most))
            return True

        return await self._database.write(write)

    async def remove(self, result_id: str) -> None:
        """Forget one."""
        await self._database.write(lambda connection: _remove(connection, [result_id]))

    async def remove_expired(self, expired: float) -> None:
        """Forget what was last read before this, not too many in one transaction."""

        def write(connection: DatabaseConnection) -> int:
            ids = [row[0] for row in connection.rows(_OLD, expired, _AT_ONCE)]
            _remove(connection, ids)
            return len(ids)

        while await self._database.write(write) == _AT_ONCE:
            pass

    async def find(self, result_id: str, owner: ResultOwner, now: float, expired: float) -> tuple[str, int] | None:
        """The facts of a result and its characters; it is read now. `None` if this owner has no such result."""

        def write(connection: DatabaseConnection) -> tuple[str, int] | None:
            row = connection.row(_FIND, now, result_id, owner.principal, owner.session, expired)
            return None if row is None else (row[0], row[1])

        return await self._database.write(write)

    async def pieces(self, result_id: str, first: int, end: int) -> list[bytes]:
        """The pieces from the first to the one before the end."""
        found = await self._database.read(lambda connection: connection.rows(_PIECES, result_id, first, end))
        return [row[0] for row in found]


def size_of_row(facts: str) -> int:
    """Bytes that a result takes beside its pieces; `facts` are ASCII."""
    return ROW_BYTES + len(facts)


def _make_room(
    connection: DatabaseConnection, total: str, oldest: str, whose: tuple[str, ...], limits: tuple[int, int]
) -> None:
    """Remove the oldest until there are no more results, and no more bytes of them, than these."""
    while (row := connection.row(total, *whose)) is not None:
        count, size = row[0] - limits[0], row[1] - limits[1]
        gone: list[str] = []
        for result_id, bytes_ in connection.rows(oldest, *whose, _AT_ONCE):
            if count <= 0 and size <= 0:
                break
            gone.append(result_id)
            count, size = count - 1, size - bytes_
        if not gone:
            return
        _remove(connection, gone)


def _remove(connection: DatabaseConnection, ids: list[str]) -> None:
    for some in parts(ids):
        removal = f"DELETE FROM kept_results WHERE id IN ({marks(some)}) RETURNING principal, bytes, is_whole"  # noqa: S608
        counts, sizes = Counter[str](), Counter[str]()
        for principal, size, is_whole in connection.rows(removal, *some):
            counts[principal] += is_whole
            sizes[principal] += size * is_whole
        # In one order, so that two who do this do not wait for each other.
        for principal in sorted(counts):
            connection.execute(_COUNT_OUT, counts[principal], sizes[principal], principal)
            connection.execute(_FORGET_NONE, principal)
        connection.execute(f"DELETE FROM kept_result_pieces WHERE result IN ({marks(some)})", *some)  # noqa: S608
