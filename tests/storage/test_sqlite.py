"""One SQLite file for any number of Pegboards: made, migrated, shared, and refused when it is not ours."""

import asyncio
import json
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pegboard.storage import CatalogRecord, SqliteStorage, StorageError
from pegboard.storage import sqlite as module
from pegboard.storage.migrations import SQLITE

pytestmark = pytest.mark.anyio

RECORD = CatalogRecord(
    server="git",
    fingerprint="f1",
    era="modern",
    version="2026-07-28",
    capabilities={"tools": {"listChanged": True}},
    server_info={"name": "git", "version": "1"},
    instructions="Be gentle.",
    tools=[{"name": "log", "inputSchema": {"type": "object"}}],
    discovered_at=1_700_000_000.125,
    ttl=900.0,
)


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


async def kept(path: Path) -> list[CatalogRecord]:
    """What a new process finds in the file."""
    storage = SqliteStorage(path)
    await storage.open()
    try:
        return await storage.load_catalog()
    finally:
        await storage.close()


# Opening


async def test_an_empty_place_becomes_the_newest_schema(path: Path) -> None:
    """Opening makes the folder and the file and applies every migration."""
    assert await kept(path) == []
    assert schema_version(path) == len(SQLITE)
    assert "catalog" in tables(path)


async def test_an_empty_file_is_migrated_too(path: Path) -> None:
    """A file of no bytes, as a crash between making and migrating leaves it, is as good as none."""
    path.parent.mkdir()
    path.touch()
    assert await kept(path) == []
    assert schema_version(path) == len(SQLITE)


async def test_reopening_changes_nothing(path: Path) -> None:
    """Opened again and again, the file keeps its schema and what is in it."""
    storage = SqliteStorage(path)
    for _ in range(3):
        await storage.open()
        await storage.save_catalog(RECORD)
        await storage.close()
    assert await kept(path) == [RECORD]
    assert schema_version(path) == len(SQLITE)


async def test_an_older_file_gets_only_the_missing_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file from an older Pegboard keeps its data, and each new step is applied once, triggers included."""
    storage = SqliteStorage(path)
    await storage.open()
    await storage.save_catalog(RECORD)
    await storage.close()
    step = """
        CREATE TABLE later (name TEXT, loads INTEGER DEFAULT 0) STRICT;
        CREATE TRIGGER counted AFTER INSERT ON later BEGIN
            UPDATE later SET loads = loads + 1; UPDATE later SET loads = loads + 1;
        END;
        INSERT INTO later (name) VALUES ('a;b');
    """
    monkeypatch.setattr(module, "SQLITE", (*SQLITE, step))
    for _ in range(2):
        assert await kept(path) == [RECORD]
    assert schema_version(path) == len(SQLITE) + 1
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name, loads FROM later").fetchall() == [("a;b", 2)]
    db.close()


async def test_a_file_that_knew_only_tools_has_no_word_of_prompts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That nobody ever asked is not the same as that there are none; once asked, an empty list is one."""
    monkeypatch.setattr(module, "SQLITE", SQLITE[:1])
    storage = SqliteStorage(path)
    await storage.open()
    await storage.close()
    with sqlite3.connect(path) as db:
        old = ("git", "f1", "modern", "2026-07-28", "{}", "{}", None, "[]", 1.0, None)
        db.execute(f"INSERT INTO catalog VALUES ({','.join('?' * len(old))})", old)
    db.close()
    monkeypatch.undo()
    (record,) = await kept(path)
    assert (record.prompts, record.resources, record.templates) == (None, [], [])
    await storage.open()
    await storage.save_catalog(replace(record, prompts=[]))
    await storage.close()
    (record,) = await kept(path)
    assert record.prompts == []


async def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a migration that breaks half-way nothing stays, and the message names the file."""
    await kept(path)
    monkeypatch.setattr(module, "SQLITE", (*SQLITE, "CREATE TABLE half (a TEXT); INSERT INTO nowhere VALUES (1);"))
    with pytest.raises(StorageError, match="nowhere") as raised:
        await SqliteStorage(path).open()
    assert str(path) in str(raised.value)
    assert "half" not in tables(path)
    assert schema_version(path) == len(SQLITE)
    monkeypatch.undo()
    assert await kept(path) == []


async def test_a_newer_schema_is_refused(path: Path) -> None:
    """A file of a newer Pegboard is not touched, and the message says which, why and what to do."""
    await kept(path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(SQLITE) + 7}")
    db.close()
    with pytest.raises(StorageError, match="newer Pegboard") as raised:
        await SqliteStorage(path).open()
    assert str(path) in str(raised.value)
    assert f"schema {len(SQLITE) + 7}" in str(raised.value)
    assert "update Pegboard" in str(raised.value)
    assert schema_version(path) == len(SQLITE) + 7


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
        await SqliteStorage(path).open()
    assert str(path) in str(raised.value)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Where a file stands in the way of the folder, the message names the path."""
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StorageError, match=r"state.*pegboard\.db"):
        await SqliteStorage(tmp_path / "state" / "pegboard.db").open()


async def test_a_file_that_goes_bad_while_in_use_is_told(path: Path) -> None:
    """Damage in the middle of a file is a `StorageError` with its path, not a crash."""
    storage = SqliteStorage(path)
    await storage.open()
    await storage.save_catalog(RECORD)
    await storage.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    await storage.open()
    with pytest.raises(StorageError) as raised:
        await storage.load_catalog()
    assert str(path) in str(raised.value)
    await storage.close()


@pytest.mark.parametrize("closed", [True, False])
async def test_a_closed_storage_says_so(path: Path, closed: bool) -> None:
    """Before opening and after closing every call is a `StorageError`; closing twice is harmless."""
    storage = SqliteStorage(path)
    if closed:
        await storage.open()
        await storage.close()
        await storage.close()
    for call in (storage.load_catalog(), storage.save_catalog(RECORD), storage.forget_catalog("git", "f1")):
        with pytest.raises(StorageError, match="closed"):
            await call


# Keeping


async def test_a_record_comes_back_as_it_was(path: Path) -> None:
    """Everything of a record is there for another process, exactly."""
    rich = replace(
        RECORD,
        instructions="\u2028 😀 \x00 'quoted' \"; DROP TABLE catalog; --",
        tools=[
            {"name": "größe", "inputSchema": {"type": "object", "maximum": 2**70, "x": None}, "z": 1, "a": [1.0, -0.0]},
            {"name": "bad"},
        ],
        server_info={"n": -(10**40), "title": "日本語"},
    )
    bare = replace(
        RECORD, server="docs", instructions=None, ttl=None, tools=[], capabilities={}, server_info={}, prompts=None
    )
    storage = SqliteStorage(path)
    await storage.open()
    await storage.save_catalog(rich)
    await storage.save_catalog(bare)
    await storage.close()
    found = await kept(path)
    assert found == [bare, rich]
    assert [repr(record) for record in found] == [repr(bare), repr(rich)]


text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(
    tools=st.lists(st.dictionaries(text, json_values, max_size=4), max_size=4),
    info=st.dictionaries(text, json_values, max_size=3),
    words=st.none() | text,
    moment=st.floats(0, 1e11),
)
def test_any_record_survives(
    tmp_path_factory: pytest.TempPathFactory,
    tools: list[dict[str, Any]],
    info: dict[str, Any],
    words: str | None,
    moment: float,
) -> None:
    """Whatever JSON a server can send is the same after a restart."""
    record = replace(RECORD, tools=tools, server_info=info, instructions=words, discovered_at=moment)
    path = tmp_path_factory.mktemp("any") / "pegboard.db"

    async def keep() -> list[CatalogRecord]:
        storage = SqliteStorage(path)
        await storage.open()
        await storage.save_catalog(record)
        await storage.close()
        return await kept(path)

    (found,) = asyncio.run(keep())
    assert repr(found) == repr(record)


async def test_saving_again_replaces(path: Path) -> None:
    """A server has one record for each address; the newer takes the place of the older."""
    storage = SqliteStorage(path)
    await storage.open()
    newer = replace(RECORD, tools=[], discovered_at=RECORD.discovered_at + 1)
    elsewhere = replace(RECORD, fingerprint="f2", discovered_at=RECORD.discovered_at + 2)
    for record in (RECORD, newer, elsewhere):
        await storage.save_catalog(record)
    assert await storage.load_catalog() == [newer, elsewhere]
    await storage.forget_catalog("git", "f1")
    await storage.forget_catalog("git", "never there")
    assert await storage.load_catalog() == [elsewhere]
    await storage.close()


@pytest.mark.parametrize("column", ["tools", "capabilities", "server_info", "prompts", "resources", "templates"])
@pytest.mark.parametrize("garbage", ["{", "5", "null", '"text"'])
async def test_a_record_that_cannot_be_read_is_as_good_as_none(path: Path, column: str, garbage: str) -> None:
    """One bad record is logged and passed over; the others are there."""
    storage = SqliteStorage(path)
    await storage.open()
    await storage.save_catalog(RECORD)
    await storage.save_catalog(replace(RECORD, server="docs"))
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE catalog SET {column} = ? WHERE server = 'git'", (garbage,))
    db.close()
    with capture_logs() as logs:
        assert [record.server for record in await storage.load_catalog()] == ["docs"]
    assert [(entry["event"], entry["serverName"]) for entry in logs] == [("catalog.record.unreadable", "git")]
    await storage.close()


# Sharing


async def test_two_storages_share_one_file(path: Path) -> None:
    """What one process keeps the other sees at once, and they write by turns without losing anything."""
    one, two = SqliteStorage(path), SqliteStorage(path)
    await one.open()
    await two.open()
    await asyncio.gather(
        *(
            storage.save_catalog(replace(RECORD, server=f"{label}_{number}"))
            for number in range(20)
            for label, storage in (("one", one), ("two", two))
        )
    )
    assert len(await one.load_catalog()) == 40
    assert await one.load_catalog() == await two.load_catalog()
    await one.forget_catalog("two_3", "f1")
    assert len(await two.load_catalog()) == 39
    await one.close()
    await two.save_catalog(RECORD)
    await two.close()


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
    storage = SqliteStorage(path)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(storage.open)
            await anyio.to_thread.run_sync(watched.locking.acquire)
            maker.execute("COMMIT")
            maker.close()
    assert await storage.load_catalog() == []
    await storage.close()


async def test_a_step_is_applied_once_by_two_at_once(
    path: Path, watched: type[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that find the same old file apply a step once, even one that would work twice."""
    await kept(path)
    step = "CREATE TABLE IF NOT EXISTS counted (n INTEGER); INSERT INTO counted VALUES (1);"
    monkeypatch.setattr(module, "SQLITE", (*SQLITE, step))
    holder = sqlite3.Connection(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    watched.locking = threading.Semaphore(0)
    storages = [SqliteStorage(path), SqliteStorage(path)]
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


OPEN_AND_SAVE = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from pegboard.storage import CatalogRecord, SqliteStorage

async def main(path, name):
    storage = SqliteStorage(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()
    await storage.open()
    await storage.save_catalog(CatalogRecord(
        server=name, fingerprint="f", era="modern", version="1", capabilities={}, server_info={},
        instructions=None, tools=[], discovered_at=1.0, ttl=None,
    ))
    print(len(await storage.load_catalog()), flush=True)
    await storage.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_open_a_new_file_at_once(path: Path) -> None:
    """Processes that all meet the file for the first time at one moment all get it, and nothing is lost."""
    command = [sys.executable, "-c", OPEN_AND_SAVE, str(path)]
    processes = [
        subprocess.Popen([*command, f"s{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    seen = [json.loads(process.communicate(timeout=30)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert max(seen) == 4
    assert [record.server for record in await kept(path)] == ["s0", "s1", "s2", "s3"]


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
async def test_what_is_kept_is_the_users_own(tmp_path: Path) -> None:
    """Nobody else may read the file or its folder."""
    storage = SqliteStorage(tmp_path / "state" / "pegboard.db")
    await storage.open()
    await storage.close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "pegboard.db").stat().st_mode) == 0o600
