"""Storage in one SQLite file: WAL, one writer at a time, migrated when opened."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from pegboard import exactjson
from pegboard.log import logger
from pegboard.storage.base import CatalogRecord, StorageError
from pegboard.storage.migrations import SQLITE

T = TypeVar("T")
_BUSY_SECONDS = 10.0


class SqliteStorage:
    """One file, used by any number of Pegboard processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        # SQLite's own lock guards the file; this one guards our connection from our own threads.
        self._lock = threading.Lock()

    async def open(self) -> None:
        """Open the file, make it if it is not there, and bring it to the newest schema."""
        await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._close)

    async def load_catalog(self) -> list[CatalogRecord]:
        """Every record that can be read; one that cannot is as good as none."""

        def load(db: sqlite3.Connection) -> list[CatalogRecord]:
            rows = db.execute(
                "SELECT server, fingerprint, era, version, capabilities, server_info, instructions, tools,"
                " discovered_at, ttl, prompts, resources, templates FROM catalog ORDER BY server, discovered_at"
            )
            return [record for row in rows if (record := _record(row)) is not None]

        return await self._do(load)

    async def save_catalog(self, record: CatalogRecord) -> None:
        """Put a server's record in place of the one before."""
        values = (
            record.server,
            record.fingerprint,
            record.era,
            record.version,
            _text(record.capabilities),
            _text(record.server_info),
            record.instructions,
            _text(record.tools),
            record.discovered_at,
            record.ttl,
            None if record.prompts is None else _text(record.prompts),
            _text(record.resources),
            _text(record.templates),
        )
        statement = f"INSERT OR REPLACE INTO catalog VALUES ({','.join('?' * len(values))})"  # noqa: S608
        await self._do(lambda db: db.execute(statement, values))

    async def forget_catalog(self, server: str, fingerprint: str) -> None:
        """Take a server's record out."""
        where = (server, fingerprint)
        await self._do(lambda db: db.execute("DELETE FROM catalog WHERE server = ? AND fingerprint = ?", where))

    async def load_boards(self) -> dict[str, list[str]]:
        """The tools that are loaded on each named board; one that cannot be read is as good as none."""

        def load(db: sqlite3.Connection) -> dict[str, list[str]]:
            boards: dict[str, list[str]] = {}
            for name, tools in db.execute("SELECT name, tools FROM boards"):
                try:
                    boards[name] = [tool for tool in _list(tools) if isinstance(tool, str)]
                except exactjson.NotJson as exc:
                    logger().warning("board.unreadable", board=name, reason=str(exc))
            return boards

        return await self._do(load)

    async def save_board(self, name: str, tools: list[str]) -> None:
        """Put a board's tools in place of those before."""

        def save(db: sqlite3.Connection) -> None:
            if tools:
                db.execute("INSERT OR REPLACE INTO boards VALUES (?, ?)", (name, _text(tools)))
            else:
                db.execute("DELETE FROM boards WHERE name = ?", (name,))

        await self._do(save)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._locked, work)

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            if self._connection is None:
                raise StorageError("the storage is closed")
            try:
                with self._connection:
                    return work(self._connection)
            except sqlite3.Error as exc:
                raise StorageError(f"{self.path}: {exc}") from exc

    def _open(self) -> None:
        try:
            # What is kept here is the user's own business.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, check_same_thread=False)
            try:
                _set_up(db, self.path)
            except BaseException:
                db.close()
                raise
        except (OSError, sqlite3.Error) as exc:
            raise StorageError(f"{self.path} cannot be used as storage: {exc}") from exc
        self._connection = db

    def _close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _set_up(db: sqlite3.Connection, path: Path) -> None:
    _use_wal(db)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")
    if _version(db) == len(SQLITE):
        return
    # The version counts only inside the transaction: another process may be migrating the same file.
    db.execute("BEGIN IMMEDIATE")
    with db:
        _migrate(db, path)


def _use_wal(db: sqlite3.Connection) -> None:
    """Of several processes that open a new file at once, SQLite lets one switch and turns the others away unheard."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _version(db: sqlite3.Connection) -> int:
    return cast("int", db.execute("PRAGMA user_version").fetchone()[0])


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = _version(db)
    if version > len(SQLITE):
        raise StorageError(
            f"{path} was written by a newer Pegboard (schema {version}, this one knows {len(SQLITE)}): update Pegboard"
        )
    for step in SQLITE[version:]:
        for statement in _statements(step):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(SQLITE)}")


def _statements(script: str) -> Iterator[str]:
    """A script's statements, one by one: run as a whole, it would end the transaction that guards it."""
    statement = ""
    for piece in script.split(";")[:-1]:
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _record(row: tuple[Any, ...]) -> CatalogRecord | None:
    server, fingerprint, era, version, capabilities, server_info, instructions, tools, discovered_at, ttl, *more = row
    prompts, resources, templates = more
    try:
        return CatalogRecord(
            server=server,
            fingerprint=fingerprint,
            era=era,
            version=version,
            capabilities=exactjson.parse_object(capabilities),
            server_info=exactjson.parse_object(server_info),
            instructions=instructions,
            tools=_list(tools),
            discovered_at=discovered_at,
            ttl=ttl,
            prompts=None if prompts is None else _list(prompts),
            resources=_list(resources),
            templates=_list(templates),
        )
    except exactjson.NotJson as exc:
        logger().warning("catalog.record.unreadable", serverName=server, reason=str(exc))
        return None


def _list(text: str) -> list[Any]:
    value = exactjson.as_list(exactjson.parse(text))
    if value is None:
        raise exactjson.NotJson("expected a JSON list")
    return value


def _text(value: object) -> str:
    return exactjson.dump(value).decode()
