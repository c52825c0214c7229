"""What is known of each server, for a restart that connects to nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson
from pegboard.log import logger
from pegboard.storage.database import Database, Row, Value

_KEY = ("server", "fingerprint")
_REST = (
    *("era", "version", "capabilities", "server_info", "instructions", "tools"),
    *("discovered_at", "ttl", "prompts", "resources", "templates"),
)
_COLUMNS = ", ".join((*_KEY, *_REST))
_LOAD = f"SELECT {_COLUMNS} FROM catalog ORDER BY server, discovered_at"  # noqa: S608
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
        rows = await self._database.read(lambda connection: connection.rows(_LOAD))
        return [record for row in rows if (record := _record(row)) is not None]

    async def save(self, record: CatalogRecord) -> None:
        """Put a server's record in place of the one before."""
        values = _values(record)
        await self._database.write(lambda connection: connection.execute(_SAVE, *values))

    async def forget(self, server: str, fingerprint: str) -> None:
        """Take a server's record out."""
        statement = "DELETE FROM catalog WHERE server = ? AND fingerprint = ?"
        await self._database.write(lambda connection: connection.execute(statement, server, fingerprint))


def _values(record: CatalogRecord) -> tuple[Value, ...]:
    return (
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


def _text(value: object) -> str:
    return exactjson.dump(value).decode()
