"""Whether the storage works is known from its last work, and found again by trying."""

import contextlib
import sqlite3
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from harness import LIMIT, eventually, open_gateway
from pegboard.storage import Storage, StorageError, health, open_storage
from postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def probe_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the storage is broken it is tried all the time."""
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.02)


async def limit_pages(storage: Storage, pages: int) -> None:
    """Let the file grow to so many pages; with less than it has, to none more."""
    await storage.database.write(lambda db: db.row(f"PRAGMA max_page_count = {pages}"))


async def fill_disk(storage: Storage) -> None:
    """Keep something for which there is no room."""
    await limit_pages(storage, 1)
    with pytest.raises(StorageError):
        await storage.boards.change("red", add=["x" * 100_000])


async def test_a_full_disk_is_a_problem_until_there_is_room(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes on and proves nothing; once something can be written again, the problem is gone, without a trace."""
    assert sqlite_storage.problem is None
    monkeypatch.setattr(health, "PROBE_SECONDS", 3600.0)
    await fill_disk(sqlite_storage)
    assert await sqlite_storage.boards.load() == {}
    assert sqlite_storage.problem == "database or disk is full"
    await sqlite_storage.boards.change("red", add=["a"])
    assert sqlite_storage.problem is None


async def test_a_storage_that_nobody_uses_is_tried_until_it_works(sqlite_storage: Storage) -> None:
    """The probe fails as long as there is no room, and leaves nothing behind when there is."""
    await fill_disk(sqlite_storage)
    probing = sqlite_storage.database._probing
    assert probing is not None
    for _ in range(3):
        with pytest.raises(StorageError, match="full"):
            await sqlite_storage.database.write(health._fill)
    assert not probing.done()
    assert sqlite_storage.problem == "database or disk is full"
    await sqlite_storage.database.write(lambda db: db.row("PRAGMA max_page_count = 100000"))
    await sqlite_storage.boards.change("blue", add=["a"])
    await eventually(probing.done)
    assert sqlite_storage.problem is None
    assert (
        await sqlite_storage.database.read(lambda db: db.rows("SELECT 1 FROM sqlite_master WHERE name LIKE '%probe'"))
        == []
    )


async def test_who_cannot_wait_for_a_lock_does_not_call_the_storage_broken(
    sqlite_storage: Storage, tmp_path: Path
) -> None:
    """Another process writes for a moment: that is busy, not broken."""
    with contextlib.closing(sqlite3.connect(tmp_path / "pegboard.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            await sqlite_storage.database.write(lambda _: None, 0.05)
    assert sqlite_storage.problem is None


async def test_postgresql_that_was_away_is_found_again(postgres: PostgresServer, postgres_url: str) -> None:
    """The reason holds neither address nor password, and the problem ends with nobody asking."""
    storage = open_storage(f"{postgres_url}?connect_timeout=2")
    await storage.open()
    try:
        async with postgres.away():
            with pytest.raises(StorageError):
                await storage.boards.load()
            assert storage.problem is not None
            assert "refused" in storage.problem
            assert not any(part in storage.problem for part in ("postgresql://", "127.0.0.1", "port", "localhost"))
        await eventually(lambda: storage.problem is None)
    finally:
        await storage.close()


async def test_an_answer_does_not_say_where_the_storage_is_and_the_log_does(tmp_path: Path) -> None:
    """A client may be on another machine: it hears why and what to do. The log has the place, once."""
    async with (
        open_gateway(tmp_path, {}, toolsets=["memory"]) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        await limit_pages(gateway.board.storage, 1)
        memory = {"key": "k", "summary": "s", "text": "x" * 100_000}
        with capture_logs() as logs:
            answer = await http.post("/api/memories", json=memory)
            again = await http.post("/api/tools/memory_add/call", json={"arguments": memory})
        assert (answer.status_code, again.status_code) == (503, 503)
        assert answer.json()["error"] == {
            "code": "TOOL_UNAVAILABLE",
            "message": "the storage cannot be used: database or disk is full: make room on the disk",
            "retryable": True,
        }
        assert str(tmp_path) not in answer.text + again.text
        (told,) = [entry for entry in logs if entry["event"] == "storage.failed"]
        assert str(tmp_path) in told["reason"]


async def test_health_says_that_storage_is_broken_and_stays_reachable(tmp_path: Path) -> None:
    """`degraded` with the reason, and nothing of where the file is; `ok` once it works."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
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
