"""What is SQLite's own: a file that is made, shared, and refused when it is not ours."""

import asyncio
import contextlib
import os
import sqlite3
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pegboard.storage import DatabaseConnection, SqliteDatabase, Storage, StorageError, migrations
from pegboard.storage import sqlite as module
from pegboard.storage.migration import Migration
from pegboard.storage.migrations import STEPS
from storage.samples import RECORD, kept

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file will be; the folder is not there yet."""
    return tmp_path / "state" / "pegboard.db"


def schema_version(path: Path) -> int:
    with sqlite3.connect(path) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return version


def tables(path: Path) -> set[str]:
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    db.close()
    return {name for (name,) in rows}


# Opening


async def test_an_empty_file_is_migrated_too(path: Path) -> None:
    """A file of no bytes, as a crash between making and migrating leaves it, is as good as none."""
    path.parent.mkdir()
    path.touch()
    assert await kept(f"sqlite:{path}") == []
    assert schema_version(path) == len(STEPS)


async def test_an_older_file_gets_only_the_missing_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file from an older Pegboard keeps its data, and each new step is applied once, triggers included."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()
    await storage.catalog.save(RECORD)
    await storage.close()
    step = """
        CREATE TABLE later (name TEXT, loads INTEGER DEFAULT 0) STRICT;
        CREATE TRIGGER counted AFTER INSERT ON later BEGIN
            UPDATE later SET loads = loads + 1; UPDATE later SET loads = loads + 1;
        END;
        INSERT INTO later (name) VALUES ('a;b');
    """
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, Migration(sqlite=step)))
    for _ in range(2):
        assert await kept(f"sqlite:{path}") == [RECORD]
    assert schema_version(path) == len(STEPS) + 1
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name, loads FROM later").fetchall() == [("a;b", 2)]
    db.close()


def not_a_database(path: Path) -> None:
    path.write_bytes(b"this is no database, but long enough to be looked at " * 40)


def a_folder(path: Path) -> None:
    path.mkdir()


def cut_short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 200)


@pytest.mark.parametrize("spoil", [not_a_database, a_folder, cut_short])
async def test_a_file_that_is_no_storage_is_refused(path: Path, spoil: Callable[[Path], None]) -> None:
    """What is not a database is a `StorageError` with its path, and is left as it is."""
    path.parent.mkdir()
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StorageError) as raised:
        await SqliteDatabase(path).open()
    assert str(path) in str(raised.value)
    assert str(path) not in raised.value.error.message
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Where a file stands in the way of the folder, the message names the path."""
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StorageError, match=r"state.*pegboard\.db") as raised:
        await SqliteDatabase(tmp_path / "state" / "pegboard.db").open()
    assert str(tmp_path) not in raised.value.error.message


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
async def test_a_file_that_cannot_be_written_is_refused() -> None:
    """SQLite opens a write-protected file for reading; at the start that is an error, not with the first change."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pegboard.db"
        assert await kept(f"sqlite:{file}") == []
        file.chmod(0o444)
        me = os.geteuid()
        if me == 0:
            # Root may write everything; nobody may not, not even its own file.
            os.chown(folder, 65534, 65534)
            os.chown(file, 65534, 65534)
            os.seteuid(65534)
        try:
            with pytest.raises(StorageError, match=r"pegboard\.db.*readonly.*check the rights") as raised:
                await SqliteDatabase(file).open()
        finally:
            os.seteuid(me)
        assert raised.value.reason == "attempt to write a readonly database"


async def test_a_file_is_opened_while_somebody_else_writes(path: Path) -> None:
    """Whether it can be written is found without waiting for a turn."""
    assert await kept(f"sqlite:{path}") == []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert await kept(f"sqlite:{path}") == []


async def test_a_file_that_goes_bad_while_in_use_is_told(path: Path) -> None:
    """Damage in the middle of a file is a `StorageError` with its path, not a crash."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()
    await storage.catalog.save(RECORD)
    await storage.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    async def use() -> None:
        await storage.open()
        await storage.catalog.load()

    with pytest.raises(StorageError) as raised:
        await use()
    assert str(path) in str(raised.value)
    assert str(path) not in raised.value.error.message
    await storage.close()


class Watched(sqlite3.Connection):
    """A connection that counts how often it is about to lock the file."""

    locking = threading.Semaphore(0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.set_trace_callback(self.look)

    def look(self, statement: str) -> None:
        if statement.lstrip().startswith(("BEGIN IMMEDIATE", "PRAGMA journal_mode")):
            Watched.locking.release()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    """Storages use connections that can be watched."""
    connect = sqlite3.connect
    Watched.locking = threading.Semaphore(0)
    monkeypatch.setattr(module.sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=Watched, **kwargs))
    return Watched


async def test_a_new_file_that_another_is_just_making_is_waited_for(path: Path, watched: type[Watched]) -> None:
    """While one process makes the first tables of a new file, another that opens it waits its turn."""
    path.parent.mkdir()
    maker = sqlite3.Connection(path, isolation_level=None)
    maker.execute("BEGIN IMMEDIATE")
    storage = Storage(SqliteDatabase(path))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(storage.open)
            await anyio.to_thread.run_sync(watched.locking.acquire)
            maker.execute("COMMIT")
            maker.close()
    assert await storage.catalog.load() == []
    await storage.close()


async def test_a_step_is_applied_once_by_two_at_once(
    path: Path, watched: type[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that find the same old file apply a step once, even one that would work twice."""
    await kept(f"sqlite:{path}")
    step = "CREATE TABLE IF NOT EXISTS counted (n INTEGER); INSERT INTO counted VALUES (1);"
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, Migration(sqlite=step)))
    holder = sqlite3.Connection(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    watched.locking = threading.Semaphore(0)
    storages = [SqliteDatabase(path), SqliteDatabase(path)]
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for storage in storages:
                group.start_soon(storage.open)
            # Each is seen twice: when it sets the journal mode, and when it wants to begin.
            for _ in range(4):
                await anyio.to_thread.run_sync(watched.locking.acquire)
            holder.execute("COMMIT")
    assert holder.execute("SELECT count(*) FROM counted").fetchone() == (1,)
    holder.close()
    for storage in storages:
        await storage.close()


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
async def test_what_is_kept_is_the_users_own(tmp_path: Path) -> None:
    """Nobody else may read the file or its folder."""
    storage = SqliteDatabase(tmp_path / "state" / "pegboard.db")
    await storage.open()
    await storage.close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "pegboard.db").stat().st_mode) == 0o600


async def test_the_file_is_set_up_for_many_processes(path: Path) -> None:
    """Readers and a writer at the same time, references that hold, and a log that is cleaned up at the end."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()

    def look(connection: DatabaseConnection) -> list[Any]:
        return [connection.row(f"PRAGMA {name}") for name in ("journal_mode", "foreign_keys", "synchronous")]

    assert await storage.database.write(look) == [("wal",), (1,), (1,)]
    await storage.catalog.save(RECORD)
    await storage.catalog.load()
    assert path.with_name("pegboard.db-wal").exists()
    await storage.close()
    assert not path.with_name("pegboard.db-wal").exists()


async def test_a_writer_that_waits_too_long_is_told_why(path: Path) -> None:
    """Another process that never lets go of the file is named as the reason; afterwards all is well."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()
    holder = sqlite3.Connection(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"locked.*another process is writing") as raised:
        await storage.database.write(lambda db: db.rows("SELECT 1"), 0.05)
    assert str(path) in raised.value.problem
    holder.execute("ROLLBACK")
    holder.close()
    await storage.catalog.save(RECORD)
    await storage.close()


async def test_every_writer_waits_from_when_it_asked(path: Path) -> None:
    """One that has waited as long as it may is told so while those before it still wait; reads wait for none."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()
    holder = sqlite3.Connection(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    patient = asyncio.create_task(storage.boards.change("red", add=["a"]))
    await asyncio.sleep(0)
    done: list[int] = []
    for number in range(3):
        with pytest.raises(StorageError, match=r"locked.*another process is writing"):
            await storage.database.write(lambda _, number=number: done.append(number), 0.05)
    assert await storage.boards.load() == {}
    assert not patient.done()
    holder.execute("ROLLBACK")
    holder.close()
    await patient
    assert (await storage.boards.load(), done) == ({"red": ["a"]}, [])
    await storage.close()


async def test_a_full_disk_is_told_and_leaves_the_file_usable(path: Path) -> None:
    """The change is undone, the message says what to do, and what is there can be read and added to."""
    storage = Storage(SqliteDatabase(path))
    await storage.open()
    await storage.catalog.save(RECORD)
    ((pages,),) = await storage.database.write(lambda db: db.rows("PRAGMA page_count"))
    await storage.database.write(lambda db: db.row(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StorageError, match="make room on the disk"):
        await storage.boards.change("red", add=["x" * 100_000])
    assert await storage.boards.load() == {}
    await storage.boards.change("red", add=["a"])
    assert await storage.boards.load() == {"red": ["a"]}
    await storage.close()
