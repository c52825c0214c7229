"""A toolset: tools of Pegboard's own that belong together. Its other parts are told in `installed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from pegboard.catalog.finder import ToolHit
from pegboard.clients.client import Client
from pegboard.config import Settings
from pegboard.gate import Gate
from pegboard.listing.lists import Lists
from pegboard.listing.loaded import LoadedTools
from pegboard.listing.view import Filter
from pegboard.results.results import Results
from pegboard.storage import Storage
from pegboard.tool import RegisteredTool, Tool
from pegboard.toolsets.workspace import Workspace


class ToolAvailability(Protocol):
    """Whether a tool can be used now, and if not, why."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


class BoardApi(Protocol):
    """The board, as far as toolsets are concerned."""

    settings: Settings
    storage: Storage
    workspace: Workspace
    gate: Gate
    lists: Lists
    loaded: LoadedTools
    results: Results

    async def find(self, query: str, limit: int, wanted: Filter) -> tuple[list[ToolHit], int]:
        """The best of the tools that pass the filter, and how many fit at all."""
        ...

    def list_starting(self, wanted: Filter) -> list[str]:
        """Servers whose tools are not known yet, because they are asked for the first time."""
        ...

    def lookup_tool(self, name: str, wanted: Filter) -> RegisteredTool | None:
        """The tool of this name as far as it is known here; nobody is asked."""
        ...

    async def find_tool(self, name: str, wanted: Filter) -> RegisteredTool:
        """The tool of this name; raises `ToolFailure` with the nearest names where there is none."""
        ...

    def availability(self, tool: RegisteredTool, client: Client | None = None) -> ToolAvailability:
        """Whether a tool can be used now, in words for this client."""
        ...

    def describe(self, tool: RegisteredTool, client: Client | None = None) -> Mapping[str, Any]:
        """Everything there is to say of a tool to this client."""
        ...


class Toolset(Protocol):
    """Makes tools on one board, and keeps what they work with. Made with the board alone."""

    name: ClassVar[str]

    def tools(self) -> Sequence[Tool]:
        """All of its tools, the same each time for the same settings; which of them are registered those say."""
        ...

    def is_wanted(self, settings: Settings) -> bool:
        """Whether the settings want it."""
        return self.name in settings.toolsets

    def apply(self, settings: Settings) -> None:
        """Take over settings: first when the board is made, then whenever the config changes."""

    def last_changes(self) -> Mapping[str, int] | None:
        """By namespace, a number that is another after each change there; `None` where everything is for everybody who
        has one of its tools."""
        return None

    async def open(self) -> None:
        """Begin: the storage is open."""

    async def close(self) -> None:
        """Finish what is under way; the storage is still open."""
