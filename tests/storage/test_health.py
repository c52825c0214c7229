"""Whether the storage works is known from its last work, and found again by trying."""

import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from harness import eventually, open_gateway
from pegboard.storage import SqliteDatabase, Storage, StorageError, health, open_storage
from postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def probe_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the storage is broken it is tried all the time."""
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.02)


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncGenerator[Storage]:
    """Storage on SQLite."""
    storage = Storage(SqliteDatabase(tmp_path / "pegboard.db"))
    await storage.open()
    yield storage
    await storage.close()


async def limit_pages(storage: Storage, pages: int) -> None:
    """Let the file grow to so many pages; with less than it has, to none more."""
    await storage.database.write(lambda db: db.row(f"PRAGMA max_page_count = {pages}"))


async def fill_disk(storage: Storage) -> None:
    """Keep something for which there is no room."""
    await limit_pages(storage, 1)
    with pytest.raises(StorageError):
        await storage.boards.add("red", ["x" * 100_000])


async def test_a_full_disk_is_a_problem_until_there_is_room(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading goes on and proves nothing; once something can be written again, the problem is gone, without a trace."""
    assert storage.problem is None
    monkeypatch.setattr(health, "PROBE_SECONDS", 3600.0)
    await fill_disk(storage)
    assert await storage.boards.load() == {}
    assert storage.problem == "database or disk is full"
    await storage.boards.add("red", ["a"])
    assert storage.problem is None


async def test_a_storage_that_nobody_uses_is_tried_until_it_works(storage: Storage) -> None:
    """The probe fails as long as there is no room, and leaves nothing behind when there is."""
    await fill_disk(storage)
    probing = storage.database._probing
    assert probing is not None
    for _ in range(3):
        with pytest.raises(StorageError, match="full"):
            await storage.database.write(health._fill)
    assert not probing.done()
    assert storage.problem == "database or disk is full"
    await storage.database.write(lambda db: db.row("PRAGMA max_page_count = 100000"))
    await storage.boards.add("blue", ["a"])
    await eventually(probing.done)
    assert storage.problem is None
    assert await storage.database.read(lambda db: db.rows("SELECT 1 FROM sqlite_master WHERE name LIKE '%probe'")) == []


async def test_who_cannot_wait_for_a_lock_does_not_call_the_storage_broken(storage: Storage, tmp_path: Path) -> None:
    """Another process writes for a moment: that is busy, not broken."""
    with contextlib.closing(sqlite3.connect(tmp_path / "pegboard.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            await storage.database.write(lambda _: None, 0.05)
    assert storage.problem is None


async def test_postgresql_that_was_away_is_found_again(postgres: PostgresServer, postgres_url: str) -> None:
    """The reason holds neither address nor password, and the problem ends with nobody asking."""
    storage = open_storage(f"{postgres_url}?connect_timeout=2")
    await storage.open()
    try:
        async with postgres.away():
            with pytest.raises(StorageError):
                await storage.boards.load()
            assert storage.problem is not None
            assert "postgresql://" not in storage.problem
        await eventually(lambda: storage.problem is None)
    finally:
        await storage.close()


async def test_health_says_that_storage_is_broken_and_stays_reachable(tmp_path: Path) -> None:
    """`degraded` with the reason, and nothing of where the file is; `ok` once it works."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url) as http:
        storage = gateway.board.storage
        assert (await http.get("/health")).json()["status"] == "ok"
        await fill_disk(storage)
        broken = await http.get("/health")
        assert broken.status_code == 200
        assert broken.json()["status"] == "degraded"
        assert broken.json()["storage"] == "database or disk is full"
        assert str(tmp_path) not in broken.text
        await storage.database._database.write(lambda db: db.row("PRAGMA max_page_count = 100000"))
        await eventually(lambda: storage.problem is None)
        assert "storage" not in (await http.get("/health")).json()
