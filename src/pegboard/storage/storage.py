"""Everything that Pegboard keeps: one database and its stores."""

from __future__ import annotations

import re
from pathlib import Path

from pegboard.config import state_folder
from pegboard.storage.boards import BoardStore
from pegboard.storage.catalog import CatalogStore
from pegboard.storage.database import Database, StorageError
from pegboard.storage.health import MonitoredDatabase
from pegboard.storage.oauth import OAuthStore
from pegboard.storage.page_sessions import PageSessionStore
from pegboard.storage.pins import PinStore
from pegboard.storage.results import ResultStore
from pegboard.storage.sqlite import SqliteDatabase
from pegboard.storage.tokens import TokenStore


class Storage:
    """Each call of a store is safe from several processes at once."""

    def __init__(self, database: Database) -> None:
        self.database = MonitoredDatabase(database)
        self.catalog = CatalogStore(self.database)
        self.boards = BoardStore(self.database)
        self.tokens = TokenStore(self.database)
        self.oauth = OAuthStore(self.database)
        self.page_sessions = PageSessionStore(self.database)
        self.pins = PinStore(self.database)
        self.results = ResultStore(self.database)

    @property
    def problem(self) -> str | None:
        """Why nothing can be kept at the moment, in one short line; None while all is well."""
        return self.database.problem

    async def open(self) -> None:
        """Be ready, with every migration applied; `StorageError` if that cannot be."""
        await self.database.open()

    async def close(self) -> None:
        """Let go of it."""
        await self.database.close()


def open_storage(setting: str) -> Storage:
    """The storage that a config's `storage` names; it is ready after `open()`."""
    if setting == "sqlite":
        return Storage(SqliteDatabase(state_folder() / "pegboard.db"))
    if setting.startswith("sqlite:"):
        return Storage(SqliteDatabase(Path(setting.removeprefix("sqlite:").removeprefix("//")).expanduser()))
    if re.match("postgres(ql)?://", setting):
        return Storage(_postgres(setting))
    raise StorageError(f'storage "{_redact(setting)}" is not known', 'use "sqlite", "sqlite:PATH" or "postgresql://…"')


def _redact(setting: str) -> str:
    """A misspelt address may still hold a password."""
    kind, is_address, _ = setting.partition("://")
    if "@" in kind:
        return "…"
    return f"{kind}://…" if is_address else kind


def _postgres(url: str) -> Database:
    try:
        # Not at the top: most run without it, and it takes a tenth of a second.
        from pegboard.storage.postgres import PostgresDatabase
    except ImportError as exc:
        reason = f"storage on PostgreSQL needs a driver that is not installed ({exc})"
        raise StorageError(reason, "pip install 'pegboard[postgres]'") from None
    return PostgresDatabase(url)
