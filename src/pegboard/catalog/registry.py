"""The registry: every tool there is, static ones and servers', by the name that clients use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson
from pegboard.catalog.schema import tool_problem
from pegboard.log import logger
from pegboard.names import compose, expose, is_snake_case
from pegboard.result import ToolError, ToolErrorCode, ToolResult
from pegboard.tool import Disposable, RegisteredTool, ResultTool, Tool

DEFAULT_TTL = 300.0


@dataclass(frozen=True, slots=True)
class Exposure:
    """How one server's tools are shown."""

    prefix: bool = True
    permits: Callable[[str], bool] = lambda _: True


@dataclass(slots=True)
class ServerTools:
    """What is known of one server's tools."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict[str, RegisteredTool])
    # The tools as the server sent them, bad ones included: for the catalog on disk, and to tell a change.
    raw: list[Any] = field(default_factory=list[Any])
    discovered_at: float = 0.0
    ttl: float = DEFAULT_TTL
    # Tools left out because a static tool has their name, or because something is wrong with them.
    conflicts: tuple[str, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    exposure: Exposure = field(default_factory=Exposure)


class ToolRegistry:
    """Static tools and servers' tools under one roof. Nothing here raises; nothing here connects."""

    def __init__(
        self,
        *,
        max_name_length: int = 48,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.max_name_length = max_name_length
        self._on_change = on_change
        self._clock = clock
        self._static: dict[str, RegisteredTool] = {}
        self._servers: dict[str, ServerTools] = {}
        self._names: dict[str, RegisteredTool] = {}
        self._sorted: tuple[RegisteredTool, ...] | None = None
        # How many of the tools are servers'.
        self.server_tools = 0
        # Counts every change, so that whoever keeps something made from the registry knows when it is old.
        self.generation = 0

    def register_tool(self, name: str, tool: Tool) -> Disposable:
        """Add a static tool; disposing of what comes back takes it out again."""
        if not is_snake_case(name) or "__" in name:
            raise ValueError(f"a static tool's name must be snake_case without '__': {name!r}")
        if not name.startswith(tool.name_prefix):
            raise ValueError(f"the name of this tool must begin with {tool.name_prefix!r}: {name!r}")
        if name in self._static:
            raise ValueError(f"there is a tool {name!r} already")
        definition = {**tool.definition(), "name": name}
        self._static = {**self._static, name: _registered(name, None, name, definition, tool)}
        self._fill_again(name)
        self._changed()
        logger().info(f"MCP tool registered: {name}")
        return Disposable(lambda: self._unregister(name))

    def register_static_tool(self, name: str, handler: Any, definition: Mapping[str, Any]) -> ToolResult[str]:
        """Add a static tool from a plain function and its definition."""
        named = {**definition, "name": name} if isinstance(definition, Mapping) else definition  # pyright: ignore[reportUnnecessaryIsInstance]
        if problem := tool_problem(named):
            return _refused(f"tool {name!r} cannot be registered: {problem}")
        try:
            self.register_tool(name, _FunctionTool(handler, named))
        except ValueError as exc:
            return _refused(str(exc))
        return ToolResult[str].ok(name)

    def register_mcp_tools(
        self,
        server: str,
        tools: Iterable[Any],
        *,
        exposure: Exposure | None = None,
        ttl: float | None = None,
        discovered_at: float | None = None,
    ) -> ToolResult[int]:
        """Replace a server's whole set of tools; what is wrong with one never touches the others."""
        if not is_snake_case(server):
            return _refused(f"server name {server!r} is not snake_case")
        if not isinstance(tools, Iterable) or isinstance(tools, (str, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            return _refused(f"what server {server!r} offers is no list of tools")
        known = ServerTools(
            raw=list(tools),
            discovered_at=self._clock() if discovered_at is None else discovered_at,
            ttl=ttl or DEFAULT_TTL,
            exposure=exposure or Exposure(),
        )
        self._fill(known, server)
        self._servers[server] = known
        self._changed()
        return ToolResult[int].ok(len(known.tools))

    def remove_server_tools(self, server: str) -> ToolResult[int]:
        """Forget a server's tools and when they were discovered."""
        known = self._servers.pop(server, None)
        removed = len(known.tools) if known else 0
        if known is not None:
            self._changed()
            logger().info("tools.registry.server.removed", serverName=server, removedCount=removed)
        return ToolResult[int].ok(removed)

    def get_mcp_tool(self, name: str) -> RegisteredTool | None:
        """The server's tool of that name."""
        found = self._names.get(name)
        return found if found is not None and found.server_name is not None else None

    def get(self, name: str) -> RegisteredTool | None:
        """The tool of that name, static or a server's."""
        return self._names.get(name)

    def get_tools_for_claude(self) -> list[dict[str, Any]]:
        """Every tool in the provider's form, sorted by name."""
        return [tool.claude_tool for tool in self.all()]

    def is_discovery_stale(self, server: str) -> bool:
        """Whether a server was never discovered, or longer ago than its TTL."""
        known = self._servers.get(server)
        # A time to come, from a clock that was wrong, would otherwise be fresh until it has come.
        return known is None or not 0 <= self._clock() - known.discovered_at <= known.ttl

    def all(self) -> list[RegisteredTool]:
        """Every tool, sorted by name."""
        if self._sorted is None:
            self._sorted = tuple(self._names[name] for name in sorted(self._names))
        return list(self._sorted)

    def full_name(self, name: str) -> RegisteredTool | None:
        """The tool of that name, or the one whose name was too long or too strange to be exposed as it is."""
        return self._names.get(name) or self._names.get(expose(name, self.max_name_length))

    def values(self) -> Iterable[RegisteredTool]:
        """Every tool, in no particular order."""
        return self._names.values()

    def static(self) -> Mapping[str, RegisteredTool]:
        """The static tools by name; another mapping after each change."""
        return self._static

    def server(self, name: str) -> ServerTools | None:
        """What is known of a server's tools; `None` if it was never discovered."""
        return self._servers.get(name)

    def servers(self) -> list[str]:
        """Every server whose tools are known."""
        return sorted(self._servers)

    def touch(self, server: str, ttl: float | None = None) -> None:
        """The same tools were found again: they are fresh from now on, and nothing changed."""
        if known := self._servers.get(server):
            known.discovered_at = self._clock()
            known.ttl = ttl or known.ttl

    def _fill(self, known: ServerTools, server: str) -> None:
        known.tools = {}
        conflicts: list[str] = []
        rejected: dict[str, str] = {}
        for raw in known.raw:
            label = _own_name(raw)
            if problem := tool_problem(raw):
                rejected[label[:200]] = problem
            elif label in self._static:
                conflicts.append(label)
            elif known.exposure.permits(label):
                try:
                    self._add(known, server, label, raw)
                except exactjson.NotJson as exc:
                    rejected[label[:200]] = str(exc)
        known.conflicts, known.rejected = tuple(conflicts), rejected
        _log_left_out(server, conflicts, rejected)

    def _fill_again(self, name: str) -> None:
        """A static name came or went: a server's tool of that name goes or comes, whichever was there first."""
        for server, known in self._servers.items():
            if any(_own_name(raw) == name for raw in known.raw):
                self._fill(known, server)

    def _add(self, known: ServerTools, server: str, own_name: str, raw: dict[str, Any]) -> None:
        full = compose(server, own_name) if known.exposure.prefix else own_name
        name = expose(full, self.max_name_length)
        if name in known.tools:
            logger().error("tools.duplicate", serverName=server, tool=own_name)
            return
        description = raw.get("description") or raw.get("title") or f"{own_name} of {server}"
        known.tools[name] = _registered(name, server, own_name, {**raw, "name": name, "description": description})

    def _unregister(self, name: str) -> None:
        if name in self._static:
            self._static = {other: tool for other, tool in self._static.items() if other != name}
            self._fill_again(name)
            self._changed()

    def _changed(self) -> None:
        self.generation += 1
        names: dict[str, RegisteredTool] = {}
        for server in sorted(self._servers):
            for name, tool in self._servers[server].tools.items():
                names.setdefault(name, tool)
        names.update(self._static)
        self._names = names
        self._sorted = None
        static = len(self._static)
        self.server_tools = len(names) - static
        logger().info("tools.registry.updated", staticCount=static, mcpCount=self.server_tools)
        self._on_change()


class _FunctionTool(ResultTool):
    """A static tool made from a function."""

    name = ""
    description = ""

    def __init__(self, handler: Any, definition: Mapping[str, Any]) -> None:
        self._handler = handler
        self._definition = dict(definition)
        self.input_schema = definition["inputSchema"]  # pyright: ignore[reportAttributeAccessIssue]

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        answer = self._handler(dict(arguments))
        return await answer if hasattr(answer, "__await__") else answer

    def definition(self) -> dict[str, Any]:
        return dict(self._definition)


def _registered(
    name: str, server: str | None, original: str, definition: Mapping[str, Any], tool: Tool | None = None
) -> RegisteredTool:
    text = exactjson.dump(definition)
    return RegisteredTool(name, server, original, definition, hash(text), tool, marked=b"x-mcp-header" in text)


def _own_name(raw: object) -> str:
    name = (exactjson.as_object(raw) or {}).get("name")
    return name if isinstance(name, str) else "?"


def _refused(message: str) -> ToolResult[Any]:
    return ToolResult[Any].failed(ToolError(ToolErrorCode.INVALID_INPUT, message))


def _log_left_out(server: str, conflicts: list[str], rejected: Mapping[str, str]) -> None:
    for name in conflicts:
        logger().warning("tools.registry.conflict", serverName=server, tool=name, reason="a static tool has this name")
    for name, reason in rejected.items():
        logger().error("tools.schema.invalid", serverName=server, tool=name, reason=reason)
