"""Storage on PostgreSQL, shared by any number of Pegboards. Imported only where it is used: the driver is an extra."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeAlias, TypeVar, cast

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from pegboard.storage import migrations
from pegboard.storage.address import PostgresAddress, unreadable, without_place
from pegboard.storage.database import PATIENCE, DatabaseConnection, Dialect, Row, StorageError, Value
from pegboard.storage.placeholders import with_percents
from pegboard.storage.text import storable
from pegboard.storage.threads import Threads
from pegboard.storage.watchdog import Watchdog

T = TypeVar("T")
Driver: TypeAlias = psycopg.Connection[Row]
_CONNECTIONS = 8
_CONNECT_SECONDS = 5
# Seconds for a statement: the server ends it, and where that hangs, we do.
_STATEMENT_SECONDS = 30
_HUNG_SECONDS = _STATEMENT_SECONDS + 5
# Seconds for what is under way when the storage is closed.
_GRACE = 3.0
# A transaction whose connection was lost is done again so often.
_LOSSES = 3
_MIGRATING = 0x7065_6762_6F61_7264
_SESSION = (
    f"SET statement_timeout = '{_STATEMENT_SECONDS}s'; SET lock_timeout = '10s';"
    " SET idle_in_transaction_session_timeout = '60s'"
).encode()
_ADVICE: dict[type[psycopg.Error], str] = {
    errors.InsufficientPrivilege: "let its user make and change tables there, or make it the database's owner",
    errors.DuplicateTable: "give Pegboard a database of its own",
    errors.DiskFull: "make room on the server's disk",
    errors.QueryCanceled: "it took too long; try again, and look what else the server does",
    errors.LockNotAvailable: "somebody else is writing for long; try again",
    errors.SerializationFailure: "too many others are writing; try again",
    errors.DeadlockDetected: "too many others are writing; try again",
    errors.ReadOnlySqlTransaction: "name the server that takes writes, not its standby",
}
_BUSY = (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected)
_UNREACHED = "check that PostgreSQL runs there, that the database exists, and that user and password are right"


class PostgresDatabase:
    """A pool of connections, each used by one thread at a time. It outlives restarts of the server."""

    def __init__(self, url: str) -> None:
        self._address = PostgresAddress.parse(url)
        self._conninfo = _conninfo(self._address)
        self._threads: Threads | None = None
        self._pool: ConnectionPool[Driver] | None = None
        self._watchdog = Watchdog()

    @property
    def name(self) -> str:
        """The address without password and options."""
        return self._address.shown

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.name!r})"

    async def open(self) -> None:
        """Reach the server and bring the database to the newest schema."""
        if self._pool is not None:
            return
        await asyncio.to_thread(self._set_up)
        self._threads = Threads("postgres", _CONNECTIONS)
        self._pool = ConnectionPool[Driver](
            self._conninfo,
            connection_class=Driver,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_CONNECT_SECONDS,
            reconnect_timeout=_CONNECT_SECONDS,
            configure=self._configure,
            # After a restart of the server every connection is a dead one, which nobody notices before it is used.
            check=self._check,
            open=True,
        )

    async def close(self) -> None:
        """Close every connection."""
        threads, self._threads = self._threads, None
        pool, self._pool = self._pool, None
        if threads is not None and pool is not None:
            if not await threads.end(_GRACE):
                # A server that hangs must not keep us from ending.
                self._watchdog.end()
                await threads.end(_GRACE)
            await asyncio.to_thread(pool.close, _GRACE)

    async def empty_log(self) -> None:
        """Nothing: its log is the server's."""

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Do work that only reads."""
        return await self._run(work, PATIENCE, read_only=True)

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """Do work that may write; again from the start, when others came first."""
        return await self._run(work, patience, read_only=False)

    async def _run(self, work: Callable[[DatabaseConnection], T], patience: float, *, read_only: bool) -> T:
        threads, pool = self._threads, self._pool
        if threads is None or pool is None:
            raise StorageError("the storage is closed")
        deadline = time.monotonic() + patience
        try:
            return await threads.run(lambda: self._patiently(pool, work, deadline, read_only=read_only), patience)
        except TimeoutError:
            raise self._busy() from None

    def _patiently(
        self, pool: ConnectionPool[Driver], work: Callable[[DatabaseConnection], T], deadline: float, *, read_only: bool
    ) -> T:
        conflicts = losses = 0
        while True:
            try:
                # Whoever lost twice queues up with the others who did, instead of losing against them again.
                return self._transaction(pool, work, read_only=read_only, queue=conflicts > 1)
            except (errors.SerializationFailure, errors.DeadlockDetected) as exc:
                conflicts += 1
                if time.monotonic() > deadline:
                    raise self._explain(exc) from exc
                time.sleep(random.uniform(0, min(0.002 * 2**conflicts, 0.1)))  # noqa: S311
            except _Lost as exc:
                losses += 1
                if losses == _LOSSES or (exc.committing and not read_only) or time.monotonic() > deadline:
                    raise self._explain_lost(exc) from exc
            except psycopg.Error as exc:
                raise self._explain(exc) from exc

    def _transaction(
        self, pool: ConnectionPool[Driver], work: Callable[[DatabaseConnection], T], *, read_only: bool, queue: bool
    ) -> T:
        driver = pool.getconn()
        committing = False
        try:
            # Serializable, so that what is read stays true until the end, as under SQLite's write lock.
            driver.isolation_level = IsolationLevel.REPEATABLE_READ if read_only else IsolationLevel.SERIALIZABLE
            driver.read_only = read_only
            connection = PostgresConnection(driver, self._watchdog)
            if queue:
                # The only kind of lock that can be waited for before the transaction has chosen the moment it sees.
                connection.execute("LOCK TABLE pegboard_schema IN SHARE ROW EXCLUSIVE MODE")
            result = work(connection)
            committing = True
            with self._watchdog.watch(driver.fileno(), _HUNG_SECONDS):
                driver.commit()
            return result
        except BaseException as exc:
            if isinstance(exc, psycopg.Error) and driver.closed:
                raise _Lost(committing=committing) from exc
            with suppress(psycopg.Error), self._watchdog.watch(driver.fileno(), _CONNECT_SECONDS):
                driver.rollback()
            raise
        finally:
            pool.putconn(driver)

    def _configure(self, driver: Driver) -> None:
        with self._watchdog.watch(driver.fileno(), _CONNECT_SECONDS):
            _configure(driver)

    def _check(self, driver: Driver) -> None:
        with self._watchdog.watch(driver.fileno(), _CONNECT_SECONDS):
            ConnectionPool[Driver].check_connection(driver)

    def _set_up(self) -> None:
        try:
            with psycopg.connect(self._conninfo) as driver:
                _configure(driver)
                driver.isolation_level = IsolationLevel.READ_COMMITTED
                self._check_encoding(driver)
                _migrate(driver, self.name)
        except psycopg.Error as exc:
            raise self._explain(exc) from exc

    def _check_encoding(self, driver: Driver) -> None:
        (encoding,) = cast("Row", driver.execute("SHOW server_encoding").fetchone())
        if encoding != "UTF8":
            reason = f"cannot keep every text: its encoding is {encoding}"
            raise StorageError(f"{self.name} {reason}", "create it with ENCODING 'UTF8'", reason=f"it {reason}")

    def _explain(self, exc: psycopg.Error) -> StorageError:
        if isinstance(exc, PoolTimeout):
            return self._explain_unreached()
        reason = self._address.clean(exc.diag.message_primary or str(exc))
        advice = _ADVICE.get(type(exc), _UNREACHED if type(exc) is psycopg.OperationalError else "")
        is_busy = isinstance(exc, _BUSY)
        problem = f"{self.name} cannot be used as storage: {reason}"
        return StorageError(problem, advice, reason=without_place(reason), is_busy=is_busy)

    def _explain_unreached(self) -> StorageError:
        """The pool knows that it has no connection, but not why."""
        try:
            psycopg.connect(self._conninfo).close()
        except psycopg.Error as exc:
            return self._explain(exc)
        return self._busy()

    def _busy(self) -> StorageError:
        reason = "all connections are in use"
        return StorageError(f"{self.name} had {reason}", "try again", reason=reason, is_busy=True)

    def _explain_lost(self, lost: _Lost) -> StorageError:
        reason = self._address.clean(str(lost.__cause__))
        advice = "see whether the change was kept before it is made again" if lost.committing else "try again"
        problem = f"the connection to {self.name} was lost: {reason}"
        return StorageError(problem, advice, reason=f"the connection was lost: {without_place(reason)}")


class PostgresConnection:
    """A transaction on PostgreSQL."""

    dialect: Dialect = "postgres"

    def __init__(self, driver: Driver, watchdog: Watchdog) -> None:
        self._driver = driver
        self._watchdog = watchdog

    def rows(self, sql: str, *params: Value) -> list[Row]:
        """Every row of a query."""
        with self._in_time():
            return self._driver.execute(with_percents(sql), storable(params)).fetchall()

    def row(self, sql: str, *params: Value) -> Row | None:
        """The first row, if there is one."""
        with self._in_time():
            return self._driver.execute(with_percents(sql), storable(params)).fetchone()

    def execute(self, sql: str, *params: Value) -> int:
        """Change something; how many rows it was."""
        with self._in_time():
            return max(self._driver.execute(with_percents(sql), storable(params)).rowcount, 0)

    def execute_clean(self, sql: str, params: Sequence[Value]) -> None:
        """Change something with values that somebody has looked through already."""
        with self._in_time():
            self._driver.execute(with_percents(sql), params)

    def execute_many(self, sql: str, params: Sequence[Sequence[Value]]) -> None:
        """The same statement for each of these."""
        with self._in_time(), self._driver.cursor() as cursor:
            cursor.executemany(with_percents(sql), list(map(storable, params)))

    def _in_time(self) -> AbstractContextManager[None]:
        return self._watchdog.watch(self._driver.fileno(), _HUNG_SECONDS)


class _Lost(Exception):  # noqa: N818  it says what happened to the connection
    """The connection ended in the middle of a transaction."""

    def __init__(self, *, committing: bool) -> None:
        super().__init__()
        self.committing = committing


class _Number(Loader):
    """What PostgreSQL calls numeric, a sum of integers for instance, as SQLite gives it."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def _conninfo(address: PostgresAddress) -> str:
    try:
        given = conninfo_to_dict(address.url)
    except psycopg.Error:
        # The driver's own reason quotes the address.
        raise unreadable() from None
    usual: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "fallback_application_name": "pegboard",
        # A server that vanished without a word is noticed within half a minute.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    return make_conninfo("", **{**usual, **given, "client_encoding": "utf8"})


def _configure(driver: Driver) -> None:
    # Prepared statements do not survive the poolers that teams put before PostgreSQL.
    driver.prepare_threshold = None
    driver.adapters.register_loader("numeric", _Number)
    driver.execute(_SESSION)
    driver.commit()


def _migrate(driver: Driver, name: str) -> None:
    version = _version(driver)
    if version is not None and not migrations.missing_steps(version, name, "postgres", migrations.STEPS):
        return
    driver.rollback()
    driver.execute("SET LOCAL statement_timeout = 0")
    driver.execute("SET LOCAL lock_timeout = '60s'")
    driver.execute(b"SELECT pg_advisory_xact_lock(%d)" % _MIGRATING)
    if version is None:
        # Another process may have made it meanwhile; asked whether it is there, the server could answer from before.
        driver.execute("CREATE TABLE IF NOT EXISTS pegboard_schema (version INTEGER NOT NULL)")
    # The version counts only with the lock.
    for script in migrations.missing_steps(_read_version(driver) or 0, name, "postgres", migrations.STEPS):
        driver.execute(script.encode())
    driver.execute("DELETE FROM pegboard_schema")
    driver.execute(b"INSERT INTO pegboard_schema VALUES (%d)" % len(migrations.STEPS))
    driver.commit()


def _version(driver: Driver) -> int | None:
    (table,) = cast("Row", driver.execute("SELECT to_regclass('pegboard_schema')").fetchone())
    return None if table is None else _read_version(driver)


def _read_version(driver: Driver) -> int | None:
    (version,) = cast("Row", driver.execute("SELECT max(version) FROM pegboard_schema").fetchone())
    return cast("int | None", version)
