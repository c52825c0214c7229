"""What one client sees: its filter, and the list that the filter leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.names import fold_server_name
from pegboard.tool import RegisteredTool


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tools a client wants: of these servers, and with these beginnings. Nothing given means all."""

    servers: frozenset[str] | None = None
    # Each group comes from one place (address, request); a name must satisfy every group.
    prefixes: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, server: object = None, prefix: object = None) -> Filter:
        """A filter from texts (comma separated) or lists, as addresses and requests carry them."""
        servers, prefixes = _words(server), _words(prefix)
        return cls(
            servers=frozenset(fold_server_name(name) for name in servers) if servers else None,
            prefixes=(tuple(prefixes),) if prefixes else (),
        )

    def within(self, other: Filter) -> Filter:
        """Both filters at once."""
        if self.servers is None or other.servers is None:
            servers = self.servers if other.servers is None else other.servers
        else:
            servers = self.servers & other.servers
        return Filter(servers, (*self.prefixes, *(group for group in other.prefixes if group not in self.prefixes)))

    def admits(self, tool: RegisteredTool) -> bool:
        """Whether a tool passes."""
        if self.servers is not None and tool.server_name not in self.servers:
            return False
        return all(tool.name.startswith(group) for group in self.prefixes)


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class View:
    """A list of tools at one moment; two views with the same digest are the same list."""

    tools: tuple[RegisteredTool, ...]
    digest: int

    @classmethod
    def of(cls, tools: Iterable[RegisteredTool]) -> View:
        """The view of these tools."""
        listed = tuple(tools)
        return cls(listed, hash(tuple((tool.name, tool.digest) for tool in listed)))

    def definitions(self) -> list[Mapping[str, Any]]:
        """The tools as MCP lists them."""
        return [tool.definition for tool in self.tools]


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, (list, tuple)):
        return [word for item in cast("list[object]", value) for word in _words(item)]
    return []
