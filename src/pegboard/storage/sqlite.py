"""Storage in one SQLite file: WAL, one writer at a time, migrated when opened."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from pegboard import exactjson
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
                " discovered_at, ttl FROM catalog ORDER BY server, discovered_at"
            )
            return [_record(row) for row in rows]

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
        )
        await self._do(lambda db: db.execute(f"INSERT OR REPLACE INTO catalog VALUES ({','.join('?' * 10)})", values))  # noqa: S608

    async def forget_catalog(self, server: str, fingerprint: str) -> None:
        """Take a server's record out."""
        where = (server, fingerprint)
        await self._do(lambda db: db.execute("DELETE FROM catalog WHERE server = ? AND fingerprint = ?", where))

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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            _migrate(db, self.path)
        except (OSError, sqlite3.Error) as exc:
            raise StorageError(f"{self.path} cannot be used as storage: {exc}") from exc
        self._connection = db

    def _close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = cast("int", db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(SQLITE):
        raise StorageError(
            f"{path} was written by a newer Pegboard (schema {version}, this one knows {len(SQLITE)}): update Pegboard"
        )
    for number in range(version, len(SQLITE)):
        # The version is read again inside the transaction: another process may be migrating the same file.
        script = f"BEGIN IMMEDIATE; {SQLITE[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        try:
            db.executescript(script)
        except sqlite3.OperationalError:
            db.rollback()
            if cast("int", db.execute("PRAGMA user_version").fetchone()[0]) <= number:
                raise


def _record(row: tuple[Any, ...]) -> CatalogRecord:
    server, fingerprint, era, version, capabilities, server_info, instructions, tools, discovered_at, ttl = row
    return CatalogRecord(
        server=server,
        fingerprint=fingerprint,
        era=era,
        version=version,
        capabilities=exactjson.parse(capabilities),
        server_info=exactjson.parse(server_info),
        instructions=instructions,
        tools=exactjson.parse(tools),
        discovered_at=discovered_at,
        ttl=ttl,
    )


def _text(value: object) -> str:
    return exactjson.dump(value).decode()
