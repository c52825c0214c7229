"""`McpRegistry`: search the MCP registry, and one server of it. Without a network it answers from what is kept."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pegboard.config import Settings, state_folder
from pegboard.config.address import url_problem
from pegboard.mcp_registry.client import RegistryClient, RegistryLimits
from pegboard.mcp_registry.kept_servers import KeptServers, file_of, load_servers, record_line, save_servers
from pegboard.mcp_registry.ranking import rank
from pegboard.mcp_registry.server_json import RegistryServer, UnreadableServer, read_server
from pegboard.mcp_registry.walk import BUDGET, RegistryWalk
from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.servers.errors import unusable_answer

LATEST = "latest"
_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, how much is known, and what there is to say about that."""

    servers: list[RegistryServer]
    known: int
    is_complete: bool
    checked: datetime | None
    notes: list[str]


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server with its record, and what there is to say about it."""

    server: RegistryServer
    record: dict[str, Any]
    notes: list[str]


def registry_address(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The address of the registry: the environment's, else the config's."""
    chosen = environment.get("PEGBOARD_REGISTRY")
    if chosen and (problem := url_problem(chosen)):
        raise invalid(f"PEGBOARD_REGISTRY {problem}")
    return (chosen or settings.registry).rstrip("/")


class McpRegistry:
    """The registry of a gateway. One search at a time reads on in the list."""

    def __init__(
        self, address: Callable[[], str], folder: Path | None = None, limits: RegistryLimits | None = None
    ) -> None:
        self._address = address
        self._folder = folder
        self._limits = limits
        self._turn = asyncio.Lock()

    async def search(self, query: str, budget: float = BUDGET) -> Found:
        """The servers that fit a query; raises `ToolFailure` if there is nothing to answer from."""
        async with self._turn:
            kept, notes = await self._read_on(query, budget)
            servers = await asyncio.to_thread(rank, kept.servers, query)
        return Found(servers, len(kept.servers), kept.covered is not None, kept.checked, notes)

    async def server(self, name: str, version: str = LATEST) -> FoundServer:
        """One server by its whole name; without a network, as it is kept."""
        async with self._client() as client:
            try:
                record = await client.server(name, version)
            except ToolFailure as exc:
                return await asyncio.to_thread(self._answer_offline, name, version, exc)
            return FoundServer(await asyncio.to_thread(_read, record, name, client.label), record, [])

    def _answer_offline(self, name: str, version: str, failure: ToolFailure) -> FoundServer:
        """The server as it is kept, if that is what was asked for; else what failed."""
        kept = load_servers(self._file())
        if failure.error.code is ToolErrorCode.NOT_FOUND:
            raise _unknown(name, version, kept) from None
        if (found := kept.servers.get(name)) is None or version not in {LATEST, found.version}:
            raise failure
        return FoundServer(found, kept.record(name), [f"{failure.error.message}. This is as it was {_age(kept)}."])

    async def _read_on(self, query: str, budget: float) -> tuple[KeptServers, list[str]]:
        file = self._file()
        kept = await asyncio.to_thread(load_servers, file)
        if kept.is_fresh(datetime.now(UTC)):
            return kept, []
        notes: list[str] = []
        async with self._client() as client:
            walk = RegistryWalk(client, kept, budget)
            try:
                await walk.run(max(_WORD.findall(query), key=len, default=""))
            except ToolFailure as exc:
                if not kept.servers:
                    raise
                notes.append(f"{exc.error.message}. What was read before that is used{_read_when(kept)}.")
        if walk.has_changed:
            notes += await asyncio.to_thread(_save, file, kept)
        return kept, [*notes, *_remarks(kept)]

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[RegistryClient]:
        client = RegistryClient(self._address(), self._limits)
        try:
            yield client
        finally:
            await client.close()

    def _file(self) -> Path:
        return file_of(self._folder or state_folder(), self._address())


def _read(record: dict[str, Any], name: str, label: str) -> RegistryServer:
    try:
        record_line(record)
        server = read_server(record)
    except UnreadableServer as exc:
        raise unusable_answer(label, str(exc)) from None
    if server.name != name:
        raise unusable_answer(label, "it is another server than the one that was asked for")
    if server.status == "deleted":
        said = f": {server.status_message}" if server.status_message else ""
        raise ToolFailure(ToolErrorCode.NOT_FOUND, f"{name} was deleted from the registry{said}", retryable=False)
    return server


def _unknown(name: str, version: str, kept: KeptServers) -> ToolFailure:
    if version != LATEST and name in kept.servers:
        message = f"there is no version {version[:80]!r} of {name}; the latest is {kept.servers[name].version}"
        return ToolFailure(ToolErrorCode.NOT_FOUND, message, retryable=False)
    own = [full for full in kept.servers if full.rpartition("/")[2] == name.rpartition("/")[2]]
    close = sorted(own)[:3] or nearest(name[:200], kept.servers, limit=3)
    hint = f": did you mean {' or '.join(close)}?" if close else ". Find its name with: pegboard search WORDS"
    return ToolFailure(ToolErrorCode.NOT_FOUND, f"the registry has no server {name[:200]!r}{hint}", retryable=False)


def _save(file: Path, kept: KeptServers) -> list[str]:
    try:
        save_servers(file, kept)
    except OSError as exc:
        return [f"what was read cannot be kept: {file}: {exc.strerror or exc}"]
    return []


def _remarks(kept: KeptServers) -> list[str]:
    remarks: list[str] = []
    if kept.covered is None:
        remarks.append(f"The list was read as far as {len(kept.servers):,} servers. Search again to read on.")
    if kept.unreadable:
        remarks.append(f"{kept.unreadable:,} entries of the registry cannot be read, and are left out.")
    return remarks


def _read_when(kept: KeptServers) -> str:
    return f" ({_age(kept)})" if kept.checked is not None else ""


def _age(kept: KeptServers) -> str:
    if kept.checked is None:
        return "when the list was read"
    hours = max(0, int((datetime.now(UTC) - kept.checked).total_seconds() // 3600))
    return f"{hours // 24} days ago" if hours >= 48 else f"{hours} hours ago" if hours > 1 else "an hour ago or less"
