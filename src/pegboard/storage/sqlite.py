"""One SQLite file for any number of processes: WAL, one writer at a time, readers that never wait for it."""

from __future__ import annotations

import errno
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

from pegboard.storage import migrations
from pegboard.storage.database import PATIENCE, DatabaseConnection, Dialect, Row, StorageError, Value
from pegboard.storage.migration import Migration
from pegboard.storage.text import storable
from pegboard.storage.threads import Threads

T = TypeVar("T")
_CACHE_KIB = 8192
_READERS = 4
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process is writing for long; try again",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_READONLY: "check the rights of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "check the rights of the folder",
    sqlite3.SQLITE_PERM: "check the rights of the file and its folder",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; move it away or put a backup in its place",
    sqlite3.SQLITE_NOTADB: "the file is something else; move it away, or name another one",
    # A disk without room for the files beside the database is one as well.
    sqlite3.SQLITE_IOERR: "check the disk, and that it has room",
}
_ELSEWHERE = 'its folder cannot be made; choose another with PEGBOARD_STATE_DIR, or a file with "storage"'
_ADVICE_OF_SYSTEM = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room on the disk",
    errno.EROFS: 'name a file elsewhere with "storage"',
    errno.ENOENT: _ELSEWHERE,
    errno.ENOTDIR: _ELSEWHERE,
}


class SqliteDatabase:
    """Writes go through one connection in one thread, reads through a few of their own."""

    def __init__(self, path: Path, steps: Sequence[Migration] | None = None, *, wipes: bool = False) -> None:
        self.path = path
        # Whether what is deleted is overwritten as well.
        self._wipes = wipes
        # What leads to its schema; without any it holds what Pegboard itself keeps.
        self._steps = steps
        self._open_file: _OpenFile | None = None

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    async def open(self) -> None:
        """Open the file, make it if it is not there, and bring it to the newest schema."""
        if self._open_file is not None:
            return
        file = _OpenFile(self.path, migrations.STEPS if self._steps is None else self._steps, wipes=self._wipes)
        try:
            await file.writing.run(lambda: self._guard(file.set_up))
        except BaseException:
            await file.close()
            raise
        self._open_file = file

    async def close(self) -> None:
        """Close the file."""
        file, self._open_file = self._open_file, None
        if file is not None:
            await file.close()

    async def empty_log(self) -> None:
        """Move the log into the file; while somebody else reads there, it is left for the next time."""
        file = self._file()
        await file.writing.run(lambda: self._guard(lambda: file.writer().execute(_EMPTY_LOG).fetchall()))

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Do work that only reads; it waits for no writer."""
        file = self._file()
        return await file.reading.run(lambda: self._guard(lambda: _in_transaction(file.reader(), "BEGIN", work)))

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """Do work that may write, when all before it is done; each waits so long from when it was asked, not longer
        because others waited before it."""
        file = self._file()
        deadline = time.monotonic() + patience

        def transaction() -> T:
            db = file.writer()
            db.execute(f"PRAGMA busy_timeout = {max(int((deadline - time.monotonic()) * 1000), 1)}")
            # With the write lock from the start: what the work reads cannot be changed before it writes.
            return _in_transaction(db, "BEGIN IMMEDIATE", work)

        try:
            return await file.writing.run(lambda: self._guard(transaction), patience)
        except TimeoutError:
            busy = f"{self.path} cannot be used as storage: database is locked"
            advice = _ADVICE[sqlite3.SQLITE_BUSY]
            raise StorageError(busy, advice, reason="database is locked", is_busy=True) from None

    def _file(self) -> _OpenFile:
        if self._open_file is None:
            raise StorageError("the storage is closed")
        return self._open_file

    def _guard(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as exc:
            # The upper bits say more than the advice needs.
            code = (getattr(exc, "sqlite_errorcode", None) or 0) & 0xFF
            problem = f"{self.path} cannot be used as storage: {exc}"
            is_busy = code == sqlite3.SQLITE_BUSY
            raise StorageError(problem, _ADVICE.get(code, ""), reason=str(exc), is_busy=is_busy) from exc


class _OpenFile:
    """The threads of an open file and their connections."""

    def __init__(self, path: Path, steps: Sequence[Migration], *, wipes: bool) -> None:
        self._path = path
        self._wipes = wipes
        self._steps = steps
        self.writing = Threads("write", 1)
        self.reading = Threads("read", _READERS)
        self._writer: sqlite3.Connection | None = None
        self._of_thread = threading.local()
        self._readers: list[sqlite3.Connection] = []

    def set_up(self) -> None:
        _make(self._path)
        self._writer = _connect(self._path)
        _use_wal(self._writer)
        # Enough in WAL: what was committed survives the end of any process. Only a crash of the whole machine can take
        # the last moments, and never the file.
        self._writer.execute("PRAGMA synchronous = NORMAL")
        # Moving the log into the file waits for the disk, and pages that change often are moved once: every 16 MB.
        self._writer.execute("PRAGMA wal_autocheckpoint = 4000")
        self._writer.execute("PRAGMA foreign_keys = ON")
        if self._wipes:
            self._writer.execute("PRAGMA secure_delete = ON")
        _migrate(self._writer, str(self._path), self._steps)
        _check_writable(self._writer)

    def writer(self) -> sqlite3.Connection:
        assert self._writer is not None
        return self._writer

    def reader(self) -> sqlite3.Connection:
        """This thread's connection."""
        db: sqlite3.Connection | None = getattr(self._of_thread, "db", None)
        if db is None:
            db = _connect(self._path)
            self._readers.append(db)
            db.execute("PRAGMA query_only = ON")
            # A search goes through many pages, and the next one through most of the same.
            db.execute(f"PRAGMA cache_size = {-_CACHE_KIB}")
            self._of_thread.db = db
        return db

    async def close(self) -> None:
        await self.reading.end()
        await self.writing.end()
        # The writer goes last: it cleans up the log.
        for db in (*self._readers, self._writer):
            if db is not None:
                db.close()


class SqliteConnection:
    """A transaction on SQLite."""

    dialect: Dialect = "sqlite"

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, *params: Value) -> list[Row]:
        """Every row of a query."""
        return self._db.execute(sql, storable(params)).fetchall()

    def row(self, sql: str, *params: Value) -> Row | None:
        """The first row, if there is one."""
        rows = self.rows(sql, *params)
        return rows[0] if rows else None

    def execute(self, sql: str, *params: Value) -> int:
        """Change something; how many rows it was."""
        changed = self._db.execute(sql, storable(params)).rowcount
        if changed < 0 and sql.lstrip()[:4].upper() == "WITH":
            # Python counts only what begins with the verb.
            return cast("int", self._db.execute("SELECT changes()").fetchone()[0])
        return max(changed, 0)

    def execute_clean(self, sql: str, params: Sequence[Value]) -> None:
        """Change something with values that somebody has looked through already."""
        self._db.execute(sql, params)

    def execute_many(self, sql: str, params: Sequence[Sequence[Value]]) -> None:
        """The same statement for each of these."""
        self._db.executemany(sql, map(storable, params))


def _make(path: Path) -> None:
    try:
        # What is kept here is the user's own business.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        problem = f"{path} cannot be used as storage: {reason}"
        advice = _ADVICE_OF_SYSTEM.get(exc.errno or 0, "check the rights of its folder")
        raise StorageError(problem, advice, reason=reason) from exc


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions begin where we say so. A connection is used by one thread at a time, but closed by another.
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _in_transaction(db: sqlite3.Connection, begin: str, work: Callable[[DatabaseConnection], T]) -> T:
    db.execute(begin)
    try:
        result = work(SqliteConnection(db))
        db.execute("COMMIT")
        return result
    finally:
        # Some errors end the transaction by themselves, a disk that is full for instance.
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection) -> None:
    """Of several processes that open a new file at once, SQLite lets one switch and turns the others away unheard."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _migrate(db: sqlite3.Connection, name: str, steps: Sequence[Migration]) -> None:
    if _version(db) == len(steps):
        return

    def migrate(_: DatabaseConnection) -> None:
        # The version counts only inside the transaction: another process may be migrating the same file.
        for script in migrations.missing_steps(_version(db), name, "sqlite", steps):
            for statement in _statements(script):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(steps)}")

    _in_transaction(db, "BEGIN IMMEDIATE", migrate)


def _check_writable(db: sqlite3.Connection) -> None:
    """SQLite opens a file that may not be written, and says so with the first change."""
    db.execute("PRAGMA busy_timeout = 0")
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"PRAGMA user_version = {_version(db)}")
    except sqlite3.OperationalError as exc:
        # Whoever writes there just now can.
        if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _version(db: sqlite3.Connection) -> int:
    return cast("int", db.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """A script's statements, one by one: run as a whole, it would end the transaction that guards it."""
    statement = ""
    for piece in script.split(";")[:-1]:
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
