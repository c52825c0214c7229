"""What is PostgreSQL's own: a server that can be away, come back, refuse, or be somebody else's too."""

import asyncio
import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator

import anyio
import psycopg
import pytest

from pegboard.config import Settings
from pegboard.log import configure
from pegboard.storage import DatabaseConnection, Storage, StorageError, open_storage
from pegboard.storage import postgres as module
from postgres import PASSWORD, QUOTED, PostgresServer
from storage.samples import RECORD, kept

pytestmark = pytest.mark.anyio


@pytest.fixture
async def storage(postgres_url: str) -> AsyncGenerator[Storage]:
    """An open storage on a database of its own."""
    storage = open_storage(postgres_url)
    await storage.open()
    yield storage
    await storage.close()


def without_secrets(text: str) -> str:
    """The text, after a look at it."""
    assert PASSWORD not in text
    assert QUOTED not in text
    return text


async def test_a_restart_of_the_server_heals_by_itself(postgres: PostgresServer, storage: Storage) -> None:
    """Reads and writes after it work at once, though every connection of the pool is a dead one."""
    await storage.catalog.save(RECORD)
    await asyncio.gather(*(storage.catalog.load() for _ in range(20)))
    async with postgres.away():
        pass
    found = await asyncio.gather(*(storage.catalog.load() for _ in range(20)))
    assert found == [[RECORD]] * 20
    async with postgres.away():
        pass
    await asyncio.gather(*(storage.boards.change("red", add=[str(number)]) for number in range(20)))
    assert len((await storage.boards.load())["red"]) == 20


async def test_a_server_that_comes_back_within_seconds_is_waited_for(
    postgres: PostgresServer, storage: Storage
) -> None:
    """What is asked for while it is away is answered when it is back."""
    await storage.catalog.save(RECORD)
    async with postgres.away():
        asked = asyncio.create_task(storage.catalog.load())
        await asyncio.sleep(0.1)
        assert not asked.done()
    with anyio.fail_after(20):
        assert await asked == [RECORD]


def database_of(storage: Storage) -> module.PostgresDatabase:
    """The database that is watched."""
    database = storage.database._database
    assert isinstance(database, module.PostgresDatabase)
    return database


async def test_a_server_that_stays_away_is_an_error_that_says_so(
    postgres: PostgresServer, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while the call fails with the reason; when the server is back, the next one works."""
    async with postgres.away():
        pool = database_of(storage)._pool
        assert pool is not None
        monkeypatch.setattr(pool, "timeout", 0.3)
        with pytest.raises(StorageError, match=r"refused.*check that PostgreSQL runs there") as raised:
            await storage.catalog.load()
        without_secrets(str(raised.value))
    monkeypatch.undo()
    assert await storage.catalog.load() == []


async def ended_by_the_server(storage: Storage, when: str) -> list[int]:
    """Work whose connection the server ends in its first try; which tries there were."""
    tries: list[int] = []

    def work(connection: DatabaseConnection) -> None:
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", str(len(tries)))
        ((pid,),) = connection.rows("SELECT pg_backend_pid()")
        tries.append(pid)
        if len(tries) == 1:
            with psycopg.connect(database_of(storage)._conninfo, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            if when == "before":
                connection.row("SELECT 1")

    await storage.database.write(work)
    return tries


async def test_a_connection_that_the_server_ends_is_replaced(storage: Storage) -> None:
    """Before anything was committed the whole work is done again, once, on another connection."""
    tries = await ended_by_the_server(storage, "before")
    assert len(set(tries)) == 2
    assert await storage.boards.load() == {"red": ["1"]}


async def test_a_connection_that_ends_while_committing_is_not_guessed_about(storage: Storage) -> None:
    """Whether the change was kept cannot be known, so it is not made twice; the message says what to do."""
    with pytest.raises(StorageError, match="see whether the change was kept"):
        await ended_by_the_server(storage, "committing")
    assert await storage.boards.load() == {}


async def test_work_that_others_overtake_is_done_again(storage: Storage) -> None:
    """A conflict is no error: the work sees what the other wrote and comes to another result."""
    tries: list[int] = []

    def copy(connection: DatabaseConnection) -> None:
        ((before,),) = connection.rows("SELECT count(*) FROM board_tools")
        tries.append(before)
        if len(tries) == 1:
            with psycopg.connect(database_of(storage)._conninfo) as other:
                other.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                other.execute("SELECT count(*) FROM board_tools")
                other.execute("INSERT INTO board_tools (board, tool) VALUES ('red', 'theirs')")
        connection.execute("INSERT INTO board_tools (board, tool) VALUES (?, ?)", "red", f"after {before}")

    await storage.database.write(copy)
    assert tries == [0, 1]
    assert await storage.boards.load() == {"red": ["theirs", "after 1"]}


async def test_conflicts_without_end_are_an_error(storage: Storage) -> None:
    """Work that is overtaken again and again is given up after a while, and can be tried again."""

    def overtaken(_: DatabaseConnection) -> None:
        raise psycopg.errors.SerializationFailure("could not serialize")

    with pytest.raises(StorageError, match="too many others are writing; try again"):
        await storage.database.write(overtaken, 0.1)
    assert await storage.boards.load() == {}


class Pausing:
    """Work that has begun, and goes on when the server hangs."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, connection: DatabaseConnection) -> None:
        connection.rows("SELECT 1")
        self.begun.set()
        self.go_on.wait(60)
        connection.rows("SELECT 1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="stops the server's processes")
async def test_a_server_that_hangs_is_given_up(
    postgres: PostgresServer, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is under way, and more than there are connections for, fail; afterwards all is as before."""
    monkeypatch.setattr(module, "_HUNG_SECONDS", 0.5)
    monkeypatch.setattr(module, "_CONNECT_SECONDS", 2)
    work = Pausing()
    under_way = asyncio.create_task(storage.database.read(work))
    assert await asyncio.to_thread(work.begun.wait, 60)
    with anyio.fail_after(120):
        with postgres.hung():
            work.go_on.set()
            calls = [storage.boards.load() for _ in range(16)]
            found = await asyncio.gather(under_way, *calls, return_exceptions=True)
        assert {type(each) for each in found} == {StorageError}
        assert await storage.boards.load() == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="stops the server's processes")
async def test_a_server_that_hangs_keeps_nobody_from_ending(postgres: PostgresServer, postgres_url: str) -> None:
    """The storage closes though a statement is under way that nobody answers."""
    storage = open_storage(postgres_url)
    await storage.open()
    work = Pausing()
    under_way = asyncio.create_task(storage.database.read(work))
    assert await asyncio.to_thread(work.begun.wait, 60)
    with postgres.hung(), anyio.fail_after(30):
        work.go_on.set()
        await storage.close()
        with pytest.raises(StorageError):
            await under_way


async def test_a_server_that_is_not_there_is_told_within_seconds() -> None:
    """Nobody listens: the message says where and why, and what to look at; the password is not in it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    storage = open_storage(f"postgresql://ada:{QUOTED}@127.0.0.1:{port}/db")
    with anyio.fail_after(30), pytest.raises(StorageError, match="refused") as raised:
        await storage.open()
    assert f"postgresql://ada@127.0.0.1:{port}/db" in raised.value.problem
    assert "check that PostgreSQL runs there" in raised.value.advice
    without_secrets(f"{raised.value} {raised.value.__cause__}")


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody listens and says nothing: the address's own `connect_timeout` counts."""
    monkeypatch.setattr(module, "_CONNECT_SECONDS", 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        storage = open_storage(f"postgresql://ada:{QUOTED}@127.0.0.1:{port}/db?connect_timeout=2")
        with anyio.fail_after(60), pytest.raises(StorageError, match="timeout expired"):
            await storage.open()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((QUOTED, "wrong-password"), "password authentication failed"),
        (("/test_", "/nothing_"), "does not exist"),
    ],
)
async def test_a_server_that_lets_nobody_in_says_why(postgres_url: str, change: tuple[str, str], reason: str) -> None:
    """A wrong password or a database that is not there: the server's own reason, and no password."""
    with pytest.raises(StorageError, match=reason) as raised:
        await open_storage(postgres_url.replace(*change)).open()
    assert "wrong-password" not in f"{raised.value} {raised.value.__cause__}"
    without_secrets(f"{raised.value} {raised.value.__cause__}")


async def test_a_database_of_somebody_else_is_left_alone(postgres: PostgresServer, postgres_url: str) -> None:
    """Where a table of ours already means something else, nothing is made, and the message says what to do."""
    name = postgres_url.rpartition("/")[2]
    postgres.run("CREATE TABLE catalog (articles TEXT)", database=name)
    with pytest.raises(StorageError, match="give Pegboard a database of its own"):
        await open_storage(postgres_url).open()
    postgres.run("DROP TABLE catalog", database=name)
    assert await kept(postgres_url) == []


async def test_a_user_without_rights_is_told(postgres: PostgresServer, postgres_url: str) -> None:
    """Who may not make tables there hears which right is missing; once they are made, none is needed."""
    name = postgres_url.rpartition("/")[2]
    postgres.run("REVOKE CREATE ON SCHEMA public FROM pg_database_owner", database=name)
    with pytest.raises(StorageError, match="let its user make and change tables"):
        await open_storage(postgres_url).open()
    postgres.run("GRANT CREATE ON SCHEMA public TO pg_database_owner", database=name)
    assert await kept(postgres_url) == []
    postgres.run("REVOKE CREATE ON SCHEMA public FROM pg_database_owner", database=name)
    assert await kept(postgres_url) == []


async def test_a_database_that_cannot_keep_every_text_is_refused(postgres: PostgresServer) -> None:
    """One that is not in UTF-8 would lose texts without a word."""
    options = "TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
    with postgres.database(options) as url, pytest.raises(StorageError, match=r"LATIN1.*ENCODING 'UTF8'"):
        await open_storage(url).open()


async def test_options_of_the_address_are_heeded(postgres: PostgresServer, postgres_url: str) -> None:
    """A schema of its own inside a shared database, for instance."""
    postgres.run("CREATE SCHEMA tools AUTHORIZATION pegboard", database=postgres_url.rpartition("/")[2])
    storage = open_storage(f"{postgres_url}?options=-csearch_path%3Dtools")
    await storage.open()
    query = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
    names = {name for (name,) in await storage.database.read(lambda db: db.rows(query, "tools"))}
    assert {"catalog", "pegboard_schema"} <= names
    assert await storage.database.read(lambda db: db.rows(query, "public")) == []
    await storage.close()


@pytest.mark.usefixtures("own_logging")
async def test_the_password_stands_in_no_log_and_no_repr(postgres: PostgresServer, postgres_url: str) -> None:
    """Not when a server goes away under a pool that logs about it, nor in what a debugger shows."""
    said = io.StringIO()
    configure("debug", said)
    storage = open_storage(postgres_url)
    await storage.open()
    async with postgres.away():
        asked = asyncio.create_task(storage.catalog.load())
        async with asyncio.timeout(20):
            while "psycopg.pool" not in said.getvalue():
                await asyncio.sleep(0.05)
    await asked
    await storage.close()
    without_secrets(said.getvalue())
    without_secrets(repr(storage.database))
    without_secrets(repr(Settings(storage=postgres_url)))


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_pool"])
def test_a_missing_driver_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """The base install has no driver; the message is the command that brings it."""
    monkeypatch.delitem(sys.modules, "pegboard.storage.postgres")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StorageError) as raised:
        open_storage("postgresql://ada:tulip-42@host/db")
    assert raised.value.advice == "pip install 'pegboard[postgres]'"
    assert "tulip" not in str(raised.value)


def test_the_driver_is_loaded_only_where_it_is_used() -> None:
    """Most run on SQLite and shall not wait for it."""
    script = "import json, sys, pegboard.board; print(json.dumps([name for name in sys.modules if 'psycopg' in name]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
