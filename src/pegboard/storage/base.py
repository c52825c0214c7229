"""The one interface to everything that Pegboard keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


class StorageError(Exception):
    """The storage cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRecord:
    """What is known of one server, for a restart that connects to nothing."""

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


class Storage(Protocol):
    """Keeps the catalog and the boards. Each call is safe from several processes at once."""

    async def open(self) -> None:
        """Be ready, with every migration applied; `StorageError` if that cannot be."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...

    async def load_catalog(self) -> list[CatalogRecord]:
        """Every record there is."""
        ...

    async def save_catalog(self, record: CatalogRecord) -> None:
        """Put a server's record in place of the one before."""
        ...

    async def load_boards(self) -> dict[str, list[str]]:
        """The tools that are loaded on each named board, in the order they were."""
        ...

    async def save_board(self, name: str, tools: list[str]) -> None:
        """Put a board's tools in place of those before; none at all forgets the board."""
        ...

    async def forget_catalog(self, server: str, fingerprint: str) -> None:
        """Take a server's record out."""
        ...
