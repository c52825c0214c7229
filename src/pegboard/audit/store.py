"""The audit as it is kept: records with their hashes, where each chain stands, and the key of the digests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar, cast

import msgspec

from pegboard.audit.chain import ChainHead
from pegboard.audit.composer import AuditBatch
from pegboard.audit.query import AuditQuery
from pegboard.audit.record import COLUMNS, AuditRecord
from pegboard.audit.statistics import MOST_CALLS, CallRow, Statistics
from pegboard.storage.database import Database, DatabaseConnection, Row
from pegboard.storage.own_key import load_own_key
from pegboard.storage.sql import marks

T = TypeVar("T")
_NAMES = ", ".join(COLUMNS)
_ROW = f"({marks((*COLUMNS, 'hash'))})"
# Rows of one statement: far below the marks that a statement may have, and a power of two.
_BLOCK = 64
_INTEGERS = frozenset({"chain", "number", "at", "us", "args_bytes", "result_bytes"})
_TYPED = ", ".join(f"{name} {'BIGINT' if name in _INTEGERS else 'TEXT'}" for name in (*COLUMNS, "hash"))
# One value for all rows: quicker than a statement for each.
_ADD_ALL = f"""
INSERT INTO audit ({_NAMES}, hash)
SELECT {_NAMES}, hash FROM json_to_recordset(CAST(? AS JSON)) AS given({_TYPED}) ON CONFLICT (id) DO NOTHING
"""  # noqa: S608
_HEADS = "SELECT process, chain, day, previous, first_id, last_id, records, bytes, head FROM audit_chains"
_SET_HEAD = """
INSERT INTO audit_chains (process, chain, day, previous, first_id, last_id, records, bytes, head)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (process, chain) DO UPDATE
SET last_id = excluded.last_id, records = excluded.records, bytes = excluded.bytes, head = excluded.head
"""
_PAGE = f"SELECT {_NAMES}, hash FROM audit WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
_REMOVE = "DELETE FROM audit WHERE id >= ? AND id <= ? AND process = ? AND chain = ?"
_REMOVE_HEAD = "DELETE FROM audit_chains WHERE process = ? AND chain = ?"


class AuditStore:
    """Rows of the audit. They are added, and taken out as whole chains; none is ever changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_key(self) -> bytes:
        """The key of the digests."""
        return await load_own_key(self._database, "audit_keys", "digest")

    async def add(self, batch: AuditBatch, patience: float) -> None:
        """Keep a batch, all of it or nothing. One whose commit was in doubt may be given again."""

        def write(connection: DatabaseConnection) -> None:
            # The composer has looked through the values: hashes are of what is kept.
            if connection.dialect == "postgres":
                connection.execute_clean(_ADD_ALL, [_rows_json(batch)])
            else:
                for block in _blocks(batch.rows):
                    connection.execute_clean(_add(len(block)), [each for row, value in block for each in (*row, value)])
            for head in batch.heads:
                connection.execute(_SET_HEAD, *_head_row(head))

        await self._database.write(write, patience)

    async def find(self, query: AuditQuery) -> list[AuditRecord]:
        """The newest records that a query asks for, and one more if there are more."""
        where, params = query.where()
        order = f"SELECT {_NAMES} FROM audit WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608  names and marks
        rows = await self._database.read(lambda connection: connection.rows(order, *params, query.limit + 1))
        return [AuditRecord(*row) for row in rows]

    async def statistics(self, query: AuditQuery, since: float, until: float) -> Statistics:
        """The calls that a query asks for, counted; in the thread that reads them."""
        where, params = query.where()
        order = f"SELECT at, server, tool, outcome, us FROM audit WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608

        def read(connection: DatabaseConnection) -> Statistics:
            return Statistics.of(cast("list[CallRow]", connection.rows(order, *params, MOST_CALLS)), since, until)

        return await self._database.read(read)

    async def heads(self) -> list[ChainHead]:
        """Where every chain stands, the oldest first."""
        rows = await self._database.read(lambda connection: connection.rows(f"{_HEADS} ORDER BY first_id"))
        return [ChainHead(*row) for row in rows]

    async def page(self, after: str, most: int) -> list[Row]:
        """Records behind an id with their hashes, in the order of ids, as they stand there."""
        return await self._database.read(lambda connection: connection.rows(_PAGE, after, most))

    async def remove(self, head: ChainHead) -> None:
        """Take out a whole chain."""

        def write(connection: DatabaseConnection) -> None:
            connection.execute(_REMOVE, head.first_id, head.last_id, head.process, head.chain)
            connection.execute(_REMOVE_HEAD, head.process, head.chain)

        await self._database.write(write)


def _blocks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Rows in blocks whose sizes are powers of two, so that there are few different statements. Each row by itself
    would have the loop wait: Python gives the interpreter away and takes it back with every statement."""
    at, size = 0, _BLOCK
    while at < len(rows):
        while size > len(rows) - at:
            size //= 2
        yield rows[at : at + size]
        at += size


@lru_cache
def _add(count: int) -> str:
    """What adds so many rows."""
    values = ", ".join([_ROW] * count)
    return f"INSERT INTO audit ({_NAMES}, hash) VALUES {values} ON CONFLICT (id) DO NOTHING"  # noqa: S608


def _rows_json(batch: AuditBatch) -> str:
    rows = [dict(zip(COLUMNS, row, strict=True), hash=value) for row, value in batch.rows]
    return msgspec.json.encode(rows).decode()


def _head_row(head: ChainHead) -> Sequence[str | int]:
    return (
        head.process,
        head.chain,
        head.day,
        head.previous,
        head.first_id,
        head.last_id,
        head.records,
        head.bytes,
        head.head,
    )
