"""What every storage does, whichever database it stands on."""

import asyncio
import json
import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pegboard.storage import CatalogRecord, DatabaseConnection, Storage, StorageError, migrations, open_storage
from pegboard.storage.migration import Migration
from pegboard.storage.migrations import STEPS
from storage.samples import RECORD, at_once, kept

pytestmark = pytest.mark.anyio


async def schema_version(storage: Storage) -> int:
    """What the database itself says."""

    def ask(connection: DatabaseConnection) -> int:
        pragma, table = "PRAGMA user_version", "SELECT version FROM pegboard_schema"
        row = connection.row(pragma if connection.dialect == "sqlite" else table)
        assert row is not None
        return row[0]

    return await storage.database.read(ask)


async def set_version(storage: Storage, version: int) -> None:
    """As if another Pegboard had written it."""

    def change(connection: DatabaseConnection) -> None:
        pragma, table = f"PRAGMA user_version = {version}", f"UPDATE pegboard_schema SET version = {version}"
        connection.execute(pragma if connection.dialect == "sqlite" else table)

    await storage.database.write(change)


async def tables(storage: Storage) -> set[str]:
    """Every table there is."""

    def ask(connection: DatabaseConnection) -> set[str]:
        master = "SELECT name FROM sqlite_master WHERE type = 'table'"
        catalog = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        return {name for (name,) in connection.rows(master if connection.dialect == "sqlite" else catalog)}

    return await storage.database.read(ask)


# Opening


async def test_an_empty_place_becomes_the_newest_schema(storage: Storage) -> None:
    """Opening applies every migration."""
    assert await storage.catalog.load() == []
    assert await storage.boards.load() == {}
    assert await schema_version(storage) == len(STEPS)
    assert {"catalog", "board_tools"} <= await tables(storage)


async def test_reopening_changes_nothing(place: str) -> None:
    """Opened again and again, also twice at a time, a storage keeps its schema and what is in it."""
    storage = open_storage(place)
    for _ in range(3):
        await storage.open()
        await storage.open()
        await storage.catalog.save(RECORD)
        await storage.close()
    assert await kept(place) == [RECORD]


async def test_an_older_schema_gets_only_the_missing_steps(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place of an older Pegboard keeps its data, and each new step is applied once, in each database's words."""
    storage = open_storage(place)
    await storage.open()
    await storage.catalog.save(RECORD)
    await storage.close()
    step = Migration(
        both="CREATE TABLE later (number {serial}, name {text}, loads {integer} DEFAULT 0){strict};",
        sqlite="INSERT INTO later (name) VALUES ('sqlite; 100 % ?');",
        postgres="INSERT INTO later (name) VALUES ('postgres; 100 % ?');",
    )
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, step))
    for _ in range(2):
        assert await kept(place) == [RECORD]
    await storage.open()
    assert await schema_version(storage) == len(STEPS) + 1
    dialect, *found = await storage.database.read(lambda db: (db.dialect, *db.rows("SELECT name, loads FROM later")))
    assert found == [(f"{dialect}; 100 % ?", 0)]
    await storage.close()


async def test_a_catalog_that_knew_only_tools_has_no_word_of_prompts(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nobody ever asked is not the same as that there are none; once asked, an empty list is one."""
    monkeypatch.setattr(migrations, "STEPS", STEPS[:1])
    storage = open_storage(place)
    await storage.open()
    old = ("git", "f1", "modern", "2026-07-28", "{}", "{}", None, "[]", 1.0, None)
    statement = f"INSERT INTO catalog VALUES ({','.join('?' * len(old))})"
    await storage.database.write(lambda db: db.execute(statement, *old))
    await storage.close()
    monkeypatch.undo()
    (record,) = await kept(place)
    assert (record.prompts, record.resources, record.templates) == (None, [], [])
    await storage.open()
    await storage.catalog.save(replace(record, prompts=[]))
    await storage.close()
    (record,) = await kept(place)
    assert record.prompts == []


async def test_a_step_that_fails_leaves_everything_as_it_was(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a migration that breaks half-way nothing stays, and the message names the place."""
    storage = open_storage(place)
    await storage.open()
    await storage.close()
    broken = Migration("CREATE TABLE half (a TEXT); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, broken))
    with pytest.raises(StorageError, match="nowhere") as raised:
        await storage.open()
    assert storage.database.name in str(raised.value)
    monkeypatch.undo()
    await storage.open()
    assert "half" not in await tables(storage)
    assert await schema_version(storage) == len(STEPS)
    await storage.close()


async def test_a_newer_schema_is_refused(place: str) -> None:
    """What a newer Pegboard wrote is not touched, and the message says which, why and what to do."""
    storage = open_storage(place)
    await storage.open()
    await set_version(storage, len(STEPS) + 7)
    await storage.close()
    with pytest.raises(StorageError, match="newer Pegboard") as raised:
        await storage.open()
    assert storage.database.name in raised.value.problem
    assert storage.database.name not in raised.value.error.message
    assert f"schema {len(STEPS) + 7}" in raised.value.problem
    assert raised.value.advice == "update Pegboard"
    with pytest.raises(StorageError, match="closed"):
        await storage.catalog.load()


@pytest.mark.parametrize("closed", [True, False])
async def test_a_closed_storage_says_so(place: str, closed: bool) -> None:
    """Before opening and after closing every call is a `StorageError`; closing twice is harmless."""
    storage = open_storage(place)
    if closed:
        await storage.open()
        await storage.close()
        await storage.close()
    for call in (storage.catalog.load(), storage.catalog.save(RECORD), storage.boards.change("red", add=["a"])):
        with pytest.raises(StorageError, match="closed"):
            await call


MEET = """
import asyncio, sys
from pegboard.storage import CatalogRecord, open_storage

async def main(place, name):
    storage = open_storage(place)
    print("ready", flush=True)
    sys.stdin.readline()
    await storage.open()
    await storage.catalog.save(CatalogRecord(
        server=name, fingerprint="f", era="modern", version="1", capabilities={}, server_info={},
        instructions=None, tools=[], discovered_at=1.0, ttl=None,
    ))
    print(len(await storage.catalog.load()), flush=True)
    await storage.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_meet_an_empty_place_at_once(place: str) -> None:
    """Processes that all migrate the same empty place at one moment all get it, and nothing is lost."""
    names = [f"s{number}" for number in range(8)]
    seen = [json.loads(said) for said in await asyncio.to_thread(at_once, MEET, place, names)]
    assert max(seen) == 8
    assert [record.server for record in await kept(place)] == names


# The catalog


async def test_a_record_comes_back_as_it_was(place: str, storage: Storage) -> None:
    """Everything of a record is there for another process, exactly."""
    rich = replace(
        RECORD,
        instructions="\u2028 😀 日本語 'quoted' \"; DROP TABLE catalog; -- 100 % %s ? $1 \\",
        tools=[
            {"name": "größe", "inputSchema": {"type": "object", "maximum": 2**70, "x": None}, "z": 1, "a": [1.0, -0.0]},
            {"name": "bad \x00 \uffff"},
        ],
        server_info={"n": -(10**40), "title": "日本語"},
    )
    bare = replace(
        RECORD, server="docs", instructions=None, ttl=None, tools=[], capabilities={}, server_info={}, prompts=None
    )
    await storage.catalog.save(rich)
    await storage.catalog.save(bare)
    found = await kept(place)
    assert found == [bare, rich]
    assert [repr(record) for record in found] == [repr(bare), repr(rich)]


text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tools=st.lists(st.dictionaries(text, json_values, max_size=4), max_size=4),
    info=st.dictionaries(text, json_values, max_size=3),
    words=st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    moment=st.floats(0, 1e11),
)
def test_any_record_survives(
    place: str, tools: list[dict[str, Any]], info: dict[str, Any], words: str | None, moment: float
) -> None:
    """Whatever JSON a server can send is the same after a restart."""
    record = replace(RECORD, tools=tools, server_info=info, instructions=words, discovered_at=moment)

    async def keep() -> list[CatalogRecord]:
        storage = open_storage(place)
        await storage.open()
        await storage.catalog.save(record)
        await storage.close()
        return await kept(place)

    (found,) = asyncio.run(keep())
    assert repr(found) == repr(record)


async def test_saving_again_replaces(storage: Storage) -> None:
    """A server has one record for each address; the newer takes the place of the older."""
    newer = replace(RECORD, tools=[], discovered_at=RECORD.discovered_at + 1)
    elsewhere = replace(RECORD, fingerprint="f2", discovered_at=RECORD.discovered_at + 2)
    for record in (RECORD, newer, elsewhere):
        await storage.catalog.save(record)
    assert await storage.catalog.load() == [newer, elsewhere]
    await storage.catalog.forget("git", "f1")
    await storage.catalog.forget("git", "never there")
    assert await storage.catalog.load() == [elsewhere]


async def test_the_order_of_texts_is_that_of_their_bytes(storage: Storage) -> None:
    """Both databases sort alike, whatever language the server was set up for."""
    names = ["B", "_", "a", "b", "ä", "日", "😀"]
    for name in reversed(names):
        await storage.catalog.save(replace(RECORD, server=name))
    assert [record.server for record in await storage.catalog.load()] == names


@pytest.mark.parametrize("column", ["tools", "capabilities", "server_info", "prompts", "resources", "templates"])
async def test_a_record_that_cannot_be_read_is_as_good_as_none(storage: Storage, column: str) -> None:
    """One bad record is logged and passed over; the others are there."""
    for garbage in ("{", "5", "null", '"text"'):
        await storage.catalog.save(RECORD)
        await storage.catalog.save(replace(RECORD, server="docs"))
        spoil = f"UPDATE catalog SET {column} = ? WHERE server = 'git'"
        assert await storage.database.write(lambda db, sql=spoil, garbage=garbage: db.execute(sql, garbage)) == 1
        with capture_logs() as logs:
            assert [record.server for record in await storage.catalog.load()] == ["docs"]
        assert [(entry["event"], entry["serverName"]) for entry in logs] == [("catalog.record.unreadable", "git")]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("half \ud83d an emoji \udc00", "half \ufffd an emoji \ufffd"),
        ("a\0b", "a\ufffdb"),
        ("ä\0ö", "ä\ufffdö"),
        ("👩‍👩‍👧 日本語 العربية \u202e \ufeff", "👩‍👩‍👧 日本語 العربية \u202e \ufeff"),
        ("", ""),
        ("ü" * 1_000_000, "ü" * 1_000_000),
    ],
    ids=["surrogates", "nul", "nul among others", "scripts", "empty", "long"],
)
async def test_odd_texts(storage: Storage, given: str, found: str) -> None:
    """Every text can be kept; what no database has a place for is U+FFFD on both, and is found by what it was."""
    await storage.catalog.save(replace(RECORD, instructions=given))
    (record,) = await storage.catalog.load()
    assert record.instructions == found
    if len(given) < 1000:
        await storage.boards.change("red", add=[given])
        assert await storage.boards.load() == {"red": [found]}
        await storage.boards.change("red", remove=[given])
        assert await storage.boards.load() == {}


# Boards


async def test_a_board_keeps_its_tools_in_order(place: str, storage: Storage) -> None:
    """Tools stand in the order they were added; one that is there already keeps its place."""
    await storage.boards.change("red", add=["c", "a"])
    await storage.boards.change("blue", add=["a"])
    await storage.boards.change("red", add=["a", "b", "c", "b"])
    assert await storage.boards.load() == {"red": ["c", "a", "b"], "blue": ["a"]}
    await storage.boards.change("red", remove=["c", "never there"])
    await storage.boards.change("red", add=["c"])
    await storage.boards.change("red", add=[])
    other = open_storage(place)
    await other.open()
    assert await other.boards.load() == {"red": ["a", "b", "c"], "blue": ["a"]}
    await other.boards.change("blue", remove=["a"])
    assert "blue" not in await storage.boards.load()
    await other.close()


async def test_two_who_change_a_board_at_once_lose_nothing(place: str, storage: Storage) -> None:
    """Overlapping changes of two processes and of many calls all take effect."""
    other = open_storage(place)
    await other.open()
    await storage.boards.change("red", add=[f"old_{number}" for number in range(20)])
    await asyncio.gather(
        *(storage.boards.change("red", add=[f"one_{number}", "both"]) for number in range(20)),
        *(other.boards.change("red", add=[f"two_{number}", "both"]) for number in range(20)),
        *(other.boards.change("red", remove=[f"old_{number}"]) for number in range(20)),
    )
    expected = {"both", *(f"{who}_{number}" for who in ("one", "two") for number in range(20))}
    assert set((await storage.boards.load())["red"]) == expected
    await other.close()


# Work


def count(connection: DatabaseConnection) -> float:
    """A number that is read, and then written one higher."""
    row = connection.row("SELECT ttl FROM catalog WHERE server = ?", "git")
    assert row is not None
    connection.execute("UPDATE catalog SET ttl = ? WHERE server = ?", row[0] + 1, "git")
    return row[0]


async def test_what_work_reads_stays_true_until_it_writes(place: str, storage: Storage) -> None:
    """Many that read a number and write the next one, in two processes' worth of connections, never write it twice."""
    await storage.catalog.save(replace(RECORD, ttl=0.0))
    other = open_storage(place)
    await other.open()
    seen = await asyncio.gather(*(each.database.write(count) for each in (storage, other) for _ in range(25)))
    assert sorted(seen) == list(range(50))
    assert (await other.catalog.load())[0].ttl == 50
    await other.close()


COUNT = """
import asyncio, sys
from pegboard.storage import open_storage

def count(connection):
    (number,) = connection.row("SELECT ttl FROM catalog WHERE server = 'git'")
    connection.execute("UPDATE catalog SET ttl = ? WHERE server = 'git'", number + 1)

async def main(place, name):
    storage = open_storage(place)
    await storage.open()
    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(*(storage.database.write(count) for _ in range(25)))
    await storage.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_count_without_losing_one(place: str, storage: Storage) -> None:
    """The same from processes of their own."""
    await storage.catalog.save(replace(RECORD, ttl=0.0))
    await asyncio.to_thread(at_once, COUNT, place, ["a", "b", "c", "d"])
    assert (await storage.catalog.load())[0].ttl == 100


class RefusalError(Exception):
    """What the work itself has to say."""


async def test_work_that_raises_changes_nothing(storage: Storage) -> None:
    """Its exception comes out as it is, all it did is undone, and the next one works."""
    refusal = RefusalError("no")

    def refuse(connection: DatabaseConnection) -> None:
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", "a")
        assert connection.row("SELECT count(*) FROM board_tools") == (1,)
        raise refusal

    with pytest.raises(RefusalError) as raised:
        await storage.database.write(refuse)
    assert raised.value is refusal
    assert await storage.boards.load() == {}
    await storage.boards.change("red", add=["b"])
    assert await storage.boards.load() == {"red": ["b"]}


async def test_a_statement_that_fails_is_a_storage_error_and_changes_nothing(storage: Storage) -> None:
    """The message names the place and the reason, and what the work did before is undone."""

    def fail(connection: DatabaseConnection) -> None:
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", "a")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(StorageError, match="nowhere") as raised:
        await storage.database.write(fail)
    assert storage.database.name in str(raised.value)
    assert await storage.boards.load() == {}


async def test_reading_cannot_change_anything(storage: Storage) -> None:
    """Work that was given to `read` and writes is refused."""
    with pytest.raises(StorageError, match=r"read-?only"):
        await storage.database.read(lambda db: db.execute("DELETE FROM catalog"))


async def test_readers_do_not_wait_for_a_long_write(storage: Storage) -> None:
    """While one writes, others read what was there before, as many as come; then what it wrote."""
    await storage.boards.change("red", add=["a"])
    wrote, go_on = threading.Event(), threading.Event()

    def long(connection: DatabaseConnection) -> None:
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", "b")
        wrote.set()
        assert go_on.wait(20)

    with anyio.fail_after(20):
        writing = asyncio.create_task(storage.database.write(long))
        await asyncio.to_thread(wrote.wait)
        assert await asyncio.gather(*(storage.boards.load() for _ in range(30))) == [{"red": ["a"]}] * 30
        go_on.set()
        await writing
    assert await storage.boards.load() == {"red": ["a", "b"]}


async def test_a_reader_sees_one_moment(storage: Storage) -> None:
    """What is written while it reads is not there for it, from its first query to its last."""
    await storage.boards.change("red", add=["a"])
    looked, go_on = threading.Event(), threading.Event()

    def twice(connection: DatabaseConnection) -> list[list[Any]]:
        query = "SELECT tool FROM board_tools"
        before = connection.rows(query)
        looked.set()
        assert go_on.wait(20)
        return [before, connection.rows(query)]

    with anyio.fail_after(20):
        reading = asyncio.create_task(storage.database.read(twice))
        await asyncio.to_thread(looked.wait)
        await storage.boards.change("red", add=["b"])
        go_on.set()
        assert await reading == [[("a",)], [("a",)]]


async def test_closing_waits_for_what_is_under_way(place: str, storage: Storage) -> None:
    """A change that was asked for before closing is kept."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: DatabaseConnection) -> None:
        begun.set()
        assert go_on.wait(20)
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", "a")

    with anyio.fail_after(20):
        writing = asyncio.create_task(storage.database.write(slow))
        await asyncio.to_thread(begun.wait)
        closing = asyncio.create_task(storage.close())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(writing, closing)
    await storage.open()
    assert await storage.boards.load() == {"red": ["a"]}


async def test_statements_tell_what_they_did(storage: Storage) -> None:
    """Counts, rows and first rows are the same on both databases, and so are the types of numbers."""

    def work(connection: DatabaseConnection) -> None:
        insert = "INSERT INTO board_tools (board, tool) VALUES (?, ?)"
        connection.execute_many(insert, [("red", f"{number} % ? '") for number in range(3)])
        assert connection.execute(insert + " ON CONFLICT DO NOTHING", "red", "0 % ? '") == 0
        assert connection.execute("UPDATE board_tools SET board = ? WHERE tool <> ?", "blue", "0 % ? '") == 2
        chosen = "WITH chosen AS (SELECT tool FROM board_tools WHERE board = ?)"
        delete = f"{chosen} DELETE FROM board_tools WHERE tool IN (SELECT tool FROM chosen)"
        assert connection.execute(delete, "red") == 1
        assert connection.rows(insert + " RETURNING board, tool", "a", "b") == [("a", "b")]
        assert connection.row("SELECT tool FROM board_tools WHERE tool LIKE '%?%' AND tool = ?", "1 % ? '") == (
            "1 % ? '",
        )
        assert connection.row("SELECT 1 FROM board_tools WHERE board = ?", "red") is None
        row = connection.row("SELECT CAST(NULL AS INTEGER), avg(1.5), 3000000000 + 1")
        assert row == (None, 1.5, 3000000001)
        ((total,),) = connection.rows("SELECT sum(position * 0 + 2) FROM board_tools")
        assert (total, type(total)) == (6, int)

    await storage.database.write(work)


# Settings


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("redis", 'storage "redis" is not known'),
        ("mysql://ada:tulip-42@host/db", 'storage "mysql://…" is not known'),
        ("postgresq://ada:tulip-42@host/db", "not known"),
        ("ada:tulip-42@host/db", 'storage "…" is not known'),
        ("ada:tulip-42@host://db", 'storage "…" is not known'),
        ("postgresql:ada:tulip-42@host\n/db", "not known"),
        ("", 'storage "" is not known'),
    ],
)
def test_an_unknown_setting_is_refused_without_its_secrets(setting: str, shown: str) -> None:
    """The message says what can be used instead."""
    with pytest.raises(StorageError, match=r'use "sqlite", "sqlite:PATH" or "postgresql://…"') as raised:
        open_storage(setting)
    assert shown in str(raised.value)
    assert "tulip" not in str(raised.value)
