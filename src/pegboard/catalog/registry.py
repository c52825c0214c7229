"""The registry: every tool there is, static ones and servers', by the name that clients use."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from pegboard import exactjson
from pegboard.catalog.definitions import tool_problem
from pegboard.catalog.handler_tool import HandlerTool, mcp_definition
from pegboard.catalog.server_tools import DEFAULT_TTL, Exposure, ServerTools
from pegboard.catalog.sorting import sorting
from pegboard.log import logger
from pegboard.names import compose, foreign_prefix, is_snake_case, public_name
from pegboard.pace import Pace
from pegboard.pins.review import Review
from pegboard.result import ToolError, ToolErrorCode, ToolResult, error_of, words_of
from pegboard.tool import Disposable, RegisteredTool, Tool, handshake_definition

# Behind the name of a server: of the tools that it shows to some principals alone.
_PRIVATE = " private"
# How many tools that were left out are named, in the log and to people: a server can have thousands of them.
_MOST_NAMED = 20


class ToolRegistry:
    """Static tools and servers' tools under one roof. Nothing here raises; nothing here connects."""

    def __init__(
        self,
        *,
        max_name_length: int = 48,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[], None] = lambda: None,
        configured: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.max_name_length = max_name_length
        # The names of all servers: what begins with one of them is that server's.
        self._configured = configured
        self._on_change = on_change
        self._clock = clock
        self._static: dict[str, RegisteredTool] = {}
        self._servers: dict[str, ServerTools] = {}
        self._names: dict[str, RegisteredTool] = {}
        # Names that more than one server has had.
        self._contested: set[str] = set()
        self._order: list[str] = []
        self._sorted: tuple[RegisteredTool, ...] | None = None
        # How many of the tools are servers'.
        self.server_tools = 0
        # Counts every change, so that whoever keeps something made from the registry knows when it is old.
        self.generation = 0
        # Whether changes belong to one larger change, which is told as one; and whether there was any.
        self._is_batch = self._is_changed = False

    @contextmanager
    def batch(self) -> Generator[None]:
        """Whatever is changed meanwhile is one change: it is told once, at the end."""
        self._is_batch, self._is_changed = True, False
        try:
            yield
        finally:
            self._is_batch = False
            if self._is_changed:
                self._tell_change()

    def register_tool(self, name: str, tool: Tool) -> Disposable:
        """Add a static tool; disposing of what comes back takes it out again."""
        if not is_snake_case(name) or "__" in name:
            raise ValueError(f"a static tool's name must be snake_case without '__': {name!r}")
        if not name.startswith(tool.name_prefix):
            raise ValueError(f"the name of this tool must begin with {tool.name_prefix!r}: {name!r}")
        if name in self._static:
            raise ValueError(f"there is a tool {name!r} already")
        definition = {**tool.definition(), "name": name}
        self._static = {**self._static, name: _make_tool(name, None, name, definition, tool)}
        self._fill_again(name)
        self._names[name] = self._static[name]
        self._publish_change()
        logger().info(f"MCP tool registered: {name}")
        return Disposable(lambda: self._unregister(name))

    def register_static_tool(self, name: str, handler: Any, definition: Mapping[str, Any]) -> ToolResult[str]:
        """Add a static tool from a plain function and its definition, as MCP has it or as Anthropic has it."""
        if not callable(handler):
            return _refusal(f"tool {name!r} cannot be registered: its handler is no function")
        try:
            named = mcp_definition(name, definition)
            if problem := tool_problem(named):
                return _refusal(f"tool {name!r} cannot be registered: {problem}")
            self.register_tool(name, HandlerTool(handler, cast("dict[str, Any]", named)))
        except (TypeError, ValueError, RecursionError) as exc:
            return _refusal(words_of(exc))
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
        if not isinstance(server, str) or not is_snake_case(server):  # pyright: ignore[reportUnnecessaryIsInstance]
            return _refusal(f"server name {server!r} is not snake_case")
        if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            return _refusal(f"what server {server!r} offers is no list of tools")
        if not (_is_time(ttl) and _is_time(discovered_at) and isinstance(exposure, Exposure | None)):  # pyright: ignore[reportUnnecessaryIsInstance]
            return _refusal("ttl and discovered_at must be seconds, and exposure an Exposure")
        try:
            known = self._make_server_tools(list(tools), exposure, ttl, discovered_at)
            self._fill(known, server)
        except Exception as exc:
            # What gives the tools one by one is the caller's, and may do anything.
            return ToolResult[int].failed(error_of(exc))
        self._put(server, known)
        return ToolResult[int].ok(len(known.tools))

    async def register_in_slices(
        self,
        server: str,
        tools: list[Any],
        *,
        exposure: Exposure,
        ttl: float,
        still: Callable[[], bool],
        discovered_at: float | None = None,
        pace: Pace | None = None,
        review: Review | None = None,
    ) -> int | None:
        """The same for a list of any length: others on the loop have their turns while its tools are judged. A review
        says what of it is served.

        `None`, and nothing is registered, if by then it is no longer wanted.
        """
        known = self._make_server_tools(tools, exposure, ttl, discovered_at, review)
        await self._judge_in_slices(known, server, pace or Pace())
        if not still():
            return None
        self._put(server, known)
        return len(known.tools)

    async def judge_in_slices(
        self, server: str, tools: list[Any], exposure: Exposure, review: Review | None = None
    ) -> ServerTools:
        """What would become of a server's tools by the names that clients would use; nothing is registered."""
        known = self._make_server_tools(tools, exposure, None, None, review)
        await self._judge_in_slices(known, server, Pace())
        return known

    async def _judge_in_slices(self, known: ServerTools, server: str, pace: Pace) -> None:
        static = None
        # What static tools there are decides about names: where that changed meanwhile, all is judged once more.
        while self._static is not static:
            static = self._static
            for _ in self._judge(known, server):
                if pace.is_over:
                    await pace.rest()

    def put_private_tools(self, server: str, tools: Mapping[str, RegisteredTool]) -> None:
        """Tools beside those of a server's own list, which it shows to some principals alone."""
        known, key = self._servers.get(server), _private_key(server)
        if known is not None and tools:
            before = self._servers.get(key)
            if before is None or before.tools != tools:
                self._servers[key] = private = ServerTools(tools=dict(tools), exposure=known.exposure)
                self._exchange(key, before, private)
        elif (gone := self._servers.pop(key, None)) is not None:
            self._exchange(key, gone, None)
        self._publish_change()

    def review_sights(self) -> None:
        """Who is shown what is another way now: what was decided and listed by that counts no more."""
        self._publish_change()

    def remove_server_tools(self, server: str) -> ToolResult[int]:
        """Forget a server's tools and when they were discovered."""
        if not isinstance(server, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return _refusal(f"server name {server!r} is not snake_case")
        if _private_key(server) in self._servers:
            self.put_private_tools(server, {})
        known = self._servers.pop(server, None)
        removed = len(known.tools) if known else 0
        if known is not None:
            self._exchange(server, known, None)
            self._publish_change()
            logger().info("tools.registry.server.removed", serverName=server, removedCount=removed)
        return ToolResult[int].ok(removed)

    def get_mcp_tool(self, name: str) -> RegisteredTool | None:
        """The server's tool of that name."""
        found = self.get(name)
        return found if found is not None and found.server_name is not None else None

    def get(self, name: str) -> RegisteredTool | None:
        """The tool of that name, static or a server's."""
        return self._names.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def get_tools_for_claude(self) -> list[dict[str, Any]]:
        """Every tool in the provider's form, sorted by name."""
        return [tool.claude_tool for tool in self.all()]

    def is_discovery_stale(self, server: str) -> bool:
        """Whether a server was never discovered, or longer ago than its TTL."""
        known = self.server(server)
        # A time to come, from a clock that was wrong, would otherwise be fresh until it has come.
        return known is None or not 0 <= self._clock() - known.discovered_at <= known.ttl

    def all(self) -> list[RegisteredTool]:
        """Every tool, sorted by name."""
        if self._sorted is None:
            for _ in self.sorting():
                pass
        return list(self._sorted or ())

    def sorting(self) -> Generator[None, None, tuple[RegisteredTool, ...]]:
        """The same of this moment in small steps, whatever changes meanwhile."""
        return self._sort(self._sorted, self._names.copy() if self._sorted is None else {}, self.generation)

    def _sort(
        self, known: tuple[RegisteredTool, ...] | None, names: dict[str, RegisteredTool], generation: int
    ) -> Generator[None, None, tuple[RegisteredTool, ...]]:
        if known is not None:
            return known
        # What was in order before stays in order: only the new ones are sorted, and put in their places.
        order = [name for name in self._order if name in names]
        yield
        if len(order) < len(names):
            new = names.keys() - order
            yield
            order += yield from sorting(new)
            order.sort()
            yield
        tools = tuple(map(names.__getitem__, order))
        if generation == self.generation:
            self._order, self._sorted = order, tools
        return tools

    def withheld(self, name: str) -> tuple[RegisteredTool, str] | None:
        """A server's tool of that name that is not served, and why; nothing but its name is known of it."""
        found = (known.withheld_by_name(name) for known in self._servers.values())
        return next((each for each in found if each is not None), None)

    def full_name(self, name: str) -> RegisteredTool | None:
        """The tool of that name, or the one whose name was too long or too strange to be exposed as it is."""
        return self.get(name) or self.get(public_name(name, self.max_name_length))

    def values(self) -> Iterable[RegisteredTool]:
        """Every tool, in no particular order."""
        return self._names.values()

    def static(self) -> Mapping[str, RegisteredTool]:
        """The static tools by name; another mapping after each change."""
        return self._static

    def server(self, name: str) -> ServerTools | None:
        """What is known of a server's tools; `None` if it was never discovered."""
        return self._servers.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def servers(self) -> list[str]:
        """Every server whose tools are known."""
        return sorted(server for server in self._servers if not server.endswith(_PRIVATE))

    def groups(self) -> dict[str, Mapping[str, RegisteredTool]]:
        """The tools of servers in groups, of which each has another mapping after each change: those of each server,
        and those that it shows to some principals alone."""
        return {server: self._servers[server].tools for server in sorted(self._servers)}

    def touch(self, server: str, ttl: float | None = None) -> None:
        """The same tools were found again: they are fresh from now on, and nothing changed."""
        if known := self.server(server):
            known.discovered_at = self._clock()
            known.ttl = ttl or known.ttl

    def _make_server_tools(
        self,
        raw: list[Any],
        exposure: Exposure | None,
        ttl: float | None,
        discovered_at: float | None,
        review: Review | None = None,
    ) -> ServerTools:
        return ServerTools(
            raw=raw,
            served=None if review is None else review.served,
            withheld={} if review is None else review.withheld,
            discovered_at=self._clock() if discovered_at is None else discovered_at,
            ttl=ttl or DEFAULT_TTL,
            exposure=exposure or Exposure(),
        )

    def _fill(self, known: ServerTools, server: str) -> None:
        for _ in self._judge(known, server):
            pass

    def _judge(self, known: ServerTools, server: str) -> Iterator[None]:
        """Look at a server's tools one by one; what is wrong with one is noted, the others are taken."""
        before = self._servers.get(server)
        same = before is not None and before.exposure.is_judged_alike(known.exposure)
        made_of = before.made_of if before is not None and same else {}
        known.tools, known.made_of, known.rejected = {}, {}, {}
        conflicts, duplicates = list[str](), list[str]()
        for raw in known.raw if known.served is None else known.served:
            label = _own_name(raw)
            kept = made_of.get(label)
            kept = kept if kept is not None and exactjson.is_same(kept[0], raw) else None
            if kept is None and (problem := tool_problem(raw, allows_hidden_text=known.exposure.allows_hidden_text)):
                known.rejected[label[:200]] = problem
            elif label in self._static:
                conflicts.append(label)
            elif known.exposure.permits(label):
                try:
                    tool = kept[1] if kept is not None else self._tool(known, server, label, raw)
                except exactjson.NotJson as exc:
                    known.rejected[label[:200]] = str(exc)
                else:
                    self._add(known, tool, raw, duplicates)
            yield
        known.conflicts = tuple(conflicts)
        known.withheld_tools = {}
        for label in known.withheld:
            if known.exposure.permits(label) and label not in self._static:
                tool = self._tool(known, server, label, {"name": label, "inputSchema": {}})
                known.withheld_tools[tool.name] = tool
        _log_left_out(server, conflicts, known.rejected, duplicates)

    def _tool(self, known: ServerTools, server: str, own_name: str, raw: dict[str, Any]) -> RegisteredTool:
        full = compose(server, own_name) if known.exposure.prefix else own_name
        name = public_name(full, self.max_name_length)
        description = raw.get("description") or raw.get("title") or f"{own_name} of {server}"
        return _make_tool(name, server, own_name, {**raw, "name": name, "description": description})

    def _add(self, known: ServerTools, tool: RegisteredTool, raw: Any, duplicates: list[str]) -> None:
        if tool.name in known.tools:
            duplicates.append(tool.original_name)
        elif (owner := self._owner_by_name(known, tool)) is not None:
            known.rejected[tool.original_name[:200]] = _name_clash(tool.name, owner)
        else:
            known.tools[tool.name] = tool
            known.made_of[tool.original_name] = raw, tool

    def _owner_by_name(self, known: ServerTools, tool: RegisteredTool) -> str | None:
        """Another server that a bare name belongs to: its beginning says so, or that server has exactly this name."""
        if known.exposure.prefix:
            return None
        if owner := foreign_prefix(tool.original_name, tool.server_name or "", self._configured()):
            return owner
        holder = self._names.get(tool.name)
        owner = holder.server_name if holder is not None else None
        return owner if owner is not None and self._servers[owner].exposure.prefix else None

    def _fill_again(self, name: str) -> None:
        """A static name came or went: a server's tool of that name goes or comes, whichever was there first."""
        for server, known in self._servers.items():
            if any(_own_name(raw) == name for raw in known.raw):
                before = known.tools
                self._fill(known, server)
                self._exchange(server, replace(known, tools=before), known)

    def _put(self, server: str, known: ServerTools) -> None:
        before, self._servers[server] = self._servers.get(server), known
        self._exchange(server, before, known)
        self._publish_change()

    def _exchange(self, server: str, before: ServerTools | None, after: ServerTools | None) -> None:
        """Take one server's names out and put its new ones in, without a look at the other servers' tools."""
        gone = before.tools if before is not None else {}
        new = after.tools if after is not None else {}
        if self._contested.isdisjoint(gone):
            # Each name is held by its one tool: thousands of them go at once, and come at once.
            deque(map(self._names.__delitem__, gone), maxlen=0)
        else:
            for name in [name for name, tool in gone.items() if self._names.get(name) is tool]:
                del self._names[name]
        if self._names.keys().isdisjoint(new):
            self._names.update(new)
        else:
            self._contest(server, new)
        for name in self._contested.intersection(gone).difference(self._names):
            heirs = [other for other, known in self._servers.items() if name in known.tools]
            if heirs:
                self._names[name] = self._servers[min(heirs, key=self._rank)].tools[name]

    def _contest(self, server: str, new: Mapping[str, RegisteredTool]) -> None:
        """Put in names of which some are another server's already; who ranks higher has them."""
        for name, tool in list(new.items()):
            holder = self._names.setdefault(name, tool)
            if holder is not tool:
                self._contested.add(name)
                if holder.server_name is not None and self._rank(server) < self._rank(holder.server_name):
                    self._names[name] = tool
                    self._withdraw(holder)

    def _rank(self, server: str) -> tuple[bool, str]:
        """Of two servers with the same name, one whose names say whose they are comes first, then the alphabet."""
        known = self._servers.get(server)
        return known is not None and not known.exposure.prefix, server

    def _withdraw(self, tool: RegisteredTool) -> None:
        """A bare name turned out to be another server's."""
        known, owner = self._servers[tool.server_name or ""], self._names[tool.name].server_name or ""
        if self._servers[owner].exposure.prefix and not known.exposure.prefix:
            # Another dict, so that whoever keeps something made from it sees that it changed.
            known.tools = {name: each for name, each in known.tools.items() if each is not tool}
            known.made_of.pop(tool.original_name, None)
            known.rejected[tool.original_name[:200]] = _name_clash(tool.name, owner)

    def _unregister(self, name: str) -> None:
        if name in self._static:
            self._static = {other: tool for other, tool in self._static.items() if other != name}
            del self._names[name]
            self._fill_again(name)
            self._publish_change()

    def _publish_change(self) -> None:
        self.generation += 1
        self._sorted = None
        self.server_tools = len(self._names) - len(self._static)
        if self._is_batch:
            self._is_changed = True
        else:
            self._tell_change()

    def _tell_change(self) -> None:
        logger().info("tools.registry.updated", staticCount=len(self._static), mcpCount=self.server_tools)
        self._on_change()


def _make_tool(
    name: str, server: str | None, original: str, definition: Mapping[str, Any], tool: Tool | None = None
) -> RegisteredTool:
    text = exactjson.dump(definition)
    shown = handshake_definition(definition)
    handshake = None if shown is definition else (shown, exactjson.dump(shown))
    return RegisteredTool(
        name, server, original, definition, hash(text), tool, b"x-mcp-header" in text, text, handshake
    )


def without_board(tool: RegisteredTool) -> RegisteredTool:
    """A tool in the words for clients that have no board to load tools on."""
    words = tool.tool.boardless_description if tool.tool is not None else None
    if words is None:
        return tool
    definition = {**tool.definition, "description": words}
    return _make_tool(tool.name, tool.server_name, tool.original_name, definition, tool.tool)


def _private_key(server: str) -> str:
    return f"{server}{_PRIVATE}"


def _is_time(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (is_number and math.isfinite(cast("float", value)))


def _own_name(raw: object) -> str:
    name = (exactjson.as_object(raw) or {}).get("name")
    return name if isinstance(name, str) else "?"


def _refusal(message: str) -> ToolResult[Any]:
    return ToolResult[Any].failed(ToolError(ToolErrorCode.INVALID_INPUT, message))


def _name_clash(name: str, owner: str) -> str:
    return f"its name {name[:100]!r} is one of server {owner}'s: the server needs a prefix"


def _log_left_out(server: str, conflicts: list[str], rejected: Mapping[str, str], duplicates: Collection[str]) -> None:
    for name in conflicts[:_MOST_NAMED]:
        logger().warning("tools.registry.conflict", serverName=server, tool=name, reason="a static tool has this name")
    for name, reason in islice(rejected.items(), _MOST_NAMED):
        logger().error("tools.schema.invalid", serverName=server, tool=name, reason=reason)
    for name in islice(duplicates, _MOST_NAMED):
        logger().error("tools.duplicate", serverName=server, tool=name)
    for left_out in (conflicts, rejected, duplicates):
        if len(left_out) > _MOST_NAMED:
            logger().warning("tools.left_out", serverName=server, count=len(left_out), named=_MOST_NAMED)
