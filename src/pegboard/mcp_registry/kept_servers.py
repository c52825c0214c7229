"""The servers of a registry that are kept on disk: a file of one line for each, below a line about all of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_object
from pegboard.mcp_registry.server_json import RegistryServer, UnreadableServer, read_server

_FORMAT = 1
_FRESH = timedelta(days=1)
_MAX_RECORD = 64 * 1024
_MAX_SERVERS = 50_000


@dataclass(slots=True)
class KeptServers:
    """What is known of a registry, and how far its list was read."""

    # By name: the record as it is written, and the server that it describes.
    lines: dict[str, bytes] = field(default_factory=dict[str, bytes])
    servers: dict[str, RegistryServer] = field(default_factory=dict[str, RegistryServer])
    # When the reading of the list began that is under way, and where it goes on.
    begun: datetime | None = None
    cursor: str | None = None
    # When the last reading began that came to the list's end, and when it came there.
    covered: datetime | None = None
    checked: datetime | None = None
    # How many records could not be read in this process.
    unreadable: int = 0

    @property
    def is_full(self) -> bool:
        """Whether no more servers are taken."""
        return len(self.servers) >= _MAX_SERVERS

    def is_fresh(self, now: datetime) -> bool:
        """Whether nothing has to be asked."""
        # One from the future was written under a wrong clock.
        return self.checked is not None and timedelta() <= now - self.checked < _FRESH

    def take(self, record: object) -> bool:
        """Keep a record; whether it says something new."""
        try:
            server = read_server(record)
            line = record_line(record)
        except (UnreadableServer, ValueError):
            self.unreadable += 1
            return False
        if server.status == "deleted":
            self.servers.pop(server.name, None)
            return self.lines.pop(server.name, None) is not None
        if self.lines.get(server.name) == line or (self.is_full and server.name not in self.lines):
            return False
        self.lines[server.name], self.servers[server.name] = line, server
        return True

    def record(self, name: str) -> dict[str, Any]:
        """The record of a server that is kept."""
        return exactjson.parse_object(self.lines[name])


def record_line(record: object) -> bytes:
    """A record as it is kept; raises `UnreadableServer` if it is too large for a server."""
    line = exactjson.dump(record)
    if len(line) > _MAX_RECORD:
        raise UnreadableServer(f"it has more than {_MAX_RECORD:,} bytes")
    return line


def file_of(folder: Path, address: str) -> Path:
    """Where the servers of the registry at this address are kept."""
    return folder / "registry" / f"{hashlib.sha256(address.encode('utf-8', 'replace')).hexdigest()[:16]}.jsonl"


def load_servers(file: Path) -> KeptServers:
    """What is kept; nothing where there is no file, or none that can be read."""
    kept = KeptServers()
    try:
        with file.open("rb") as lines:
            head = _object(next(lines, b""))
            if head.get("format") != _FORMAT:
                return kept
            for line in lines:
                kept.take(_object(line))
    except OSError:
        return KeptServers()
    kept.begun, kept.covered, kept.checked = (_moment(head.get(key)) for key in ("begun", "covered", "checked"))
    kept.cursor = cursor if isinstance(cursor := head.get("cursor"), str) else None
    kept.unreadable = 0
    return kept


def save_servers(file: Path, kept: KeptServers) -> None:
    """Write all of it in one step; raises `OSError`."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(_file_lines(kept))
        Path(draft).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink(missing_ok=True)
        raise


def _file_lines(kept: KeptServers) -> Iterator[bytes]:
    head = {
        "format": _FORMAT,
        "begun": _text(kept.begun),
        "covered": _text(kept.covered),
        "checked": _text(kept.checked),
        "cursor": kept.cursor,
    }
    yield exactjson.dump(head) + b"\n"
    for line in kept.lines.values():
        yield line + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        return as_object(exactjson.parse(line)) or {}
    except exactjson.NotJson:
        return {}


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)
