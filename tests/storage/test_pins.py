"""Pins in both databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import pytest

from pegboard.config import ServerSpec
from pegboard.pins.pins import Pins
from pegboard.storage import Storage, open_storage
from pegboard.storage.database import Database, DatabaseConnection, Value
from pegboard.storage.pins import PinStore
from pins.shifting import tool

pytestmark = pytest.mark.anyio

T = TypeVar("T")
SPEC = ServerSpec(name="shop", given_name="shop", command="shop")
MANY = 200


class CountedConnection:
    """A transaction that counts what is asked of the database."""

    def __init__(self, connection: DatabaseConnection, counted: list[str]) -> None:
        self._connection, self._counted = connection, counted
        self.rows, self.row = self._count(connection.rows), self._count(connection.row)
        self.execute = self._count(connection.execute)

    def execute_many(self, sql: str, params: Sequence[Sequence[Value]]) -> None:
        self._counted.append(sql)
        self._connection.execute_many(sql, params)

    def _count(self, ask: Callable[..., T]) -> Callable[..., T]:
        def asking(sql: str, *params: Value) -> T:
            self._counted.append(sql)
            return ask(sql, *params)

        return asking


class CountedDatabase:
    """A database that counts what is asked of it by whoever changes something."""

    def __init__(self, database: Database) -> None:
        self._database, self.read = database, database.read
        self.counted: list[str] = []

    async def write(self, work: Callable[[DatabaseConnection], T]) -> T:
        return await self._database.write(
            lambda connection: work(cast("DatabaseConnection", CountedConnection(connection, self.counted)))
        )


async def list_definitions(storage: Storage) -> int:
    """How many there are."""
    rows = await storage.database.read(lambda connection: connection.rows("SELECT count(*) FROM pin_definitions"))
    return rows[0][0]


async def test_many_changes_are_accepted_by_a_few_statements(place: str) -> None:
    """Others wait for that; and what another document names is kept."""
    storage = open_storage(place)
    await storage.open()
    try:
        database = CountedDatabase(storage.database)
        pins = Pins(PinStore(cast("Database", database)), lambda _: "hold")
        await pins.open()
        old, new = ([tool(f"t{number}", words) for number in range(MANY)] for words in ("Old.", "New."))
        await pins.review(SPEC, "tool", old)
        await pins.review(SPEC, "tool", old[:50], holder="ada")
        await pins.review(SPEC, "tool", new)
        database.counted.clear()
        await pins.decide(SPEC, pins.state(SPEC).list_changes(), accept=True)
        assert len(database.counted) < 10
        assert await list_definitions(storage) == MANY + 50
        assert (await pins.review(SPEC, "tool", new[:50], holder="ada")).served == old[:50]
    finally:
        await storage.close()
