"""What is known of each server, for a restart that connects to nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson
from pegboard.log import logger
from pegboard.storage.database import Database, DatabaseConnection, Row, Value

_KEY = ("server", "fingerprint")
_REST = (
    *("era", "version", "capabilities", "server_info", "instructions", "tools"),
    *("discovered_at", "ttl", "prompts", "resources", "templates"),
)
_COLUMNS = ", ".join((*_KEY, *_REST))
_LOAD = f"SELECT {_COLUMNS} FROM catalog ORDER BY server, discovered_at"  # noqa: S608
_LOAD_ONE = f"SELECT {_COLUMNS} FROM catalog WHERE server = ? AND fingerprint = ?"  # noqa: S608
_SAVE_ERROR = (
    "INSERT INTO server_errors (server, fingerprint, message, failed_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (server, fingerprint) DO UPDATE SET message = excluded.message, failed_at = excluded.failed_at"
)
_FORGET_ERROR = "DELETE FROM server_errors WHERE server = ? AND fingerprint = ?"
_SAVE = (
    f"INSERT INTO catalog ({_COLUMNS}) VALUES ({', '.join('?' * len(_KEY + _REST))})"  # noqa: S608
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in _REST)}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRecord:
    """What is known of one server at one address."""

    server: str
    fingerprint: str
    era: str
    version: str
    capabilities: dict[str, Any]
    server_info: dict[str, Any]
    instructions: str | None
    tools: list[dict[str, Any]]
    discovered_at: float
    ttl: float | None
    # `None`: nobody ever asked.
    prompts: list[Any] | None = field(default_factory=list[Any])
    resources: list[Any] = field(default_factory=list[Any])
    templates: list[Any] = field(default_factory=list[Any])


class CatalogStore:
    """Keeps one record for each server and address."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> list[CatalogRecord]:
        """Every record that can be read; one that cannot is as good as none."""
        return await self._database.read(lambda connection: _records(connection.rows(_LOAD)))

    async def load_one(self, server: str, fingerprint: str) -> CatalogRecord | None:
        """The record of one server at one address, if there is one that can be read."""
        key = server, fingerprint
        records = await self._database.read(lambda connection: _records(connection.rows(_LOAD_ONE, *key)))
        return next(iter(records), None)

    async def save(self, record: CatalogRecord) -> None:
        """Put a server's record in place of the one before; what went wrong until now is over."""

        def write(connection: DatabaseConnection) -> None:
            # Written as JSON here, in the database's thread: a list may be long.
            connection.execute(_SAVE, *_values(record))
            connection.execute(_FORGET_ERROR, record.server, record.fingerprint)

        await self._database.write(write)

    async def forget(self, server: str, fingerprint: str) -> None:
        """Take a server's record out."""
        statement = "DELETE FROM catalog WHERE server = ? AND fingerprint = ?"

        def write(connection: DatabaseConnection) -> None:
            connection.execute(statement, server, fingerprint)
            connection.execute(_FORGET_ERROR, server, fingerprint)

        await self._database.write(write)

    async def errors(self) -> dict[tuple[str, str], str]:
        """Why each server, by name and fingerprint, could not be asked when that was last tried."""
        query = "SELECT server, fingerprint, message FROM server_errors"
        rows = await self._database.read(lambda connection: connection.rows(query))
        return {(server, fingerprint): message for server, fingerprint, message in rows}

    async def save_error(self, server: str, fingerprint: str, message: str) -> None:
        """Note why a server could not be asked."""
        values = server, fingerprint, message, time.time()
        await self._database.write(lambda connection: connection.execute(_SAVE_ERROR, *values))


def _records(rows: Iterable[Row]) -> list[CatalogRecord]:
    return [record for row in rows if (record := _record(row)) is not None]


def _values(record: CatalogRecord) -> tuple[Value, ...]:
    return (
        record.server,
        record.fingerprint,
        record.era,
        record.version,
        _text(record.capabilities),
        _text(record.server_info),
        record.instructions,
        _list_text(record.tools),
        record.discovered_at,
        record.ttl,
        None if record.prompts is None else _list_text(record.prompts),
        _list_text(record.resources),
        _list_text(record.templates),
    )


def _record(row: Row) -> CatalogRecord | None:
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


def _text(value: dict[str, Any]) -> str:
    return exactjson.dump(value).decode()


def _list_text(items: Iterable[Any]) -> str:
    """A list as JSON, item by item: one call for a long list would keep the event loop from running meanwhile."""
    return f"[{','.join(exactjson.dump(item).decode() for item in items)}]"
