"""What the discovery tools need from the board."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pegboard.listing.view import Filter, ListKey
from pegboard.tool import RegisteredTool


class Available(Protocol):
    """Whether a tool can be used now."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


class Found(Protocol):
    """A tool and how well it fits."""

    @property
    def tool(self) -> RegisteredTool: ...
    @property
    def score(self) -> float: ...


class House(Protocol):
    """The board, as far as discovery is concerned."""

    async def find(self, query: str, limit: int, wanted: Filter) -> tuple[Sequence[Found], int]:
        """The best of the tools that pass the filter, and how many fit at all."""
        ...

    def lookup_tool(self, name: str, wanted: Filter) -> RegisteredTool | None:
        """The tool of this name as far as it is known here; nobody is asked."""
        ...

    async def find_tool(self, name: str, wanted: Filter) -> RegisteredTool:
        """The tool of this name; raises `ToolFailure` with the nearest names where there is none."""
        ...

    def is_listed(self, name: str, sight: ListKey) -> bool:
        """Whether a client has this tool in its list."""
        ...

    def loaded_on(self, board: str | None) -> tuple[str, ...]:
        """The names of the tools that are loaded on a board."""
        ...

    def load_on(self, board: str, names: Iterable[str]) -> Awaitable[None]: ...

    def unload_from(self, board: str, names: Iterable[str]) -> Awaitable[list[str]]: ...

    def availability(self, tool: RegisteredTool) -> Available: ...

    def describe(self, tool: RegisteredTool) -> Mapping[str, Any]:
        """Everything there is to say of a tool."""
        ...
