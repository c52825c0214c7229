"""The finder: the search index over all tools, kept in step with the registry, one server's changes at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard.catalog.registry import ToolRegistry
from pegboard.exactjson import as_list, as_object
from pegboard.pace import Pace
from pegboard.tool import RegisteredTool

if TYPE_CHECKING:
    from pegboard.search.index import Hit as IndexHit
    from pegboard.search.index import ToolIndex

Keywords = Callable[[RegisteredTool], Sequence[str]]
_OWN = ""
_FIRST_THINGS_FIRST = 1.0
_DONE = object()


@dataclass(frozen=True, slots=True)
class ToolHit:
    """A tool and how well it fits."""

    tool: RegisteredTool
    score: float


class Finder:
    """Finds tools by what they do. The tools that do the finding are not among them: every client has those."""

    def __init__(
        self,
        registry: ToolRegistry,
        configured: Keywords = lambda _: (),
        *,
        keywords_of: Callable[[str], object] = lambda _: None,
        semantic: Callable[[], bool] = bool,
    ) -> None:
        self._registry = registry
        # What the config says of all tools of a server: when that is another, they are read anew.
        self._keywords_of = keywords_of
        self._configured = configured
        self._semantic = semantic
        self._made: ToolIndex | None = None
        self._by_meaning = semantic()
        # Whose tools are in the index, and which: the registry gives a server another dict when they change.
        self._entered: dict[str, tuple[Mapping[str, RegisteredTool], object]] = {}
        self._generation = -1
        # What is under way to bring the index up to date. Whoever needs the index goes on with it.
        self._work: Iterator[None] | None = None

    @property
    def _index(self) -> ToolIndex:
        """Made for the first that needs it: what it is built on takes a tenth of a second to load."""
        if self._made is None:
            from pegboard.search.index import ToolIndex

            self._made = ToolIndex(semantic=self._by_meaning)
        return self._made

    def find(
        self, query: str, limit: int, admits: Callable[[RegisteredTool], bool] | None = None
    ) -> tuple[list[ToolHit], int]:
        """The best of the tools that are admitted, and how many of them fit at all."""
        self.keep_up()
        return self._hits(*self._index.find(query, limit, self._name_filter(admits)))

    async def find_in_slices(
        self, query: str, limit: int, admits: Callable[[RegisteredTool], bool] | None = None
    ) -> tuple[list[ToolHit], int]:
        """The same, in turns with everybody else on the loop."""
        await self.catch_up()
        while self._work is not None:
            # Another change has come, and somebody is at it: in the middle of that nothing can be found.
            await self.catch_up()
        steps = self._index.finding(query, limit, self._name_filter(admits))
        return self._hits(*await Pace(waits=False).outcome(steps))

    def _name_filter(self, admits: Callable[[RegisteredTool], bool] | None) -> Callable[[str], bool] | None:
        if admits is None:
            return None
        get = self._registry.get
        return lambda name: (tool := get(name)) is not None and admits(tool)

    def _hits(self, found: list[IndexHit], total: int) -> tuple[list[ToolHit], int]:
        get = self._registry.get
        return [ToolHit(tool, hit.score) for hit in found if (tool := get(hit.name)) is not None], total

    def like(self, name: str, limit: int) -> list[str]:
        """Names of tools that could have been meant."""
        self.keep_up()
        return [found.name for found in self._index.search(name, limit)]

    def keep_up(self) -> None:
        """Take over what changed since the last time; the rest of the index stays as it is."""
        while self._is_behind():
            self._step()

    async def catch_up(self) -> None:
        """The same in slices, with whoever else does it: others on the loop have their turns meanwhile."""
        pace = Pace()
        while self._is_behind():
            self._step()
            # The last one, too: whoever waited for it has work of its own to do.
            if pace.is_over or not self._is_behind():
                await pace.rest()

    async def warm_up(self) -> None:
        """Read every server's tools, so that nobody has to wait for it; clients that are greeted and given their list
        meanwhile come first."""
        await asyncio.sleep(_FIRST_THINGS_FIRST)
        await asyncio.to_thread(import_module, "pegboard.search.index")
        await self.catch_up()

    def invalidate(self) -> None:
        """The configured keywords may be others now, or what the index goes by."""
        if self._semantic() != self._by_meaning:
            self._by_meaning = self._semantic()
            # An index with nothing in it has too few tools, so that every server is read anew.
            self._made = self._work = None
        self._generation = -1

    def _is_behind(self) -> bool:
        return self._work is not None or self._generation != self._registry.generation

    def _step(self) -> None:
        """One small step of the work that is under way, or the first of what is to be done."""
        self._work = self._work or self._steps()
        if next(self._work, _DONE) is _DONE:
            self._work = None

    def _steps(self) -> Iterator[None]:
        self._generation = generation = self._registry.generation
        offered = self._tools_by_server()
        for server, tools in offered.items():
            made_of = tools, self._keywords_of(server)
            before = self._entered.get(server)
            if before is None or before[0] is not tools or before[1] != made_of[1]:
                yield from self._enter(server, tools)
                self._entered[server] = made_of
        for server in self._entered.keys() - offered.keys():
            yield from self._index.replacing(server, ())
            del self._entered[server]
        sought = self._registry.server_tools + sum(map(_is_sought, self._registry.static().values()))
        if generation == self._registry.generation and len(self._index) != sought:
            # Two servers have a name in common, and the one whose tool it was gave it up.
            for server, tools in offered.items():
                yield from self._enter(server, tools)

    def keywords(self, tool: RegisteredTool) -> tuple[str, ...]:
        """Words a tool is to be found by: its own, its server's, the config's."""
        own = tool.tool.keywords if tool.tool is not None else _meta_texts(tool.definition, "keywords", "tags")
        return tuple(dict.fromkeys([*own, *self._configured(tool)]))

    def _tools_by_server(self) -> dict[str, Mapping[str, RegisteredTool]]:
        return {_OWN: self._registry.static(), **self._registry.groups()}

    def _enter(self, server: str, tools: Mapping[str, RegisteredTool]) -> Iterator[None]:
        return self._index.replacing(server, self._documents(tools.values()))

    def _documents(self, tools: Iterable[RegisteredTool]) -> Iterable[Mapping[str, Any]]:
        for tool in tools:
            if _is_sought(tool) and self._registry.get(tool.name) is tool:
                yield _document(tool, self.keywords(tool))


def category(tool: RegisteredTool) -> str | None:
    """What kind of tool it is, as far as anybody says."""
    if tool.tool is not None:
        return tool.tool.category
    return next(iter(_meta_texts(tool.definition, "category")), None)


def is_discovery_tool(tool: RegisteredTool) -> bool:
    """Whether a tool is there to find the others with."""
    return tool.tool is not None and tool.tool.category == "discovery"


def is_result_reader(tool: RegisteredTool) -> bool:
    """Whether a tool is there to read what was left out of large results."""
    return tool.tool is not None and tool.tool.category == "results"


def _is_sought(tool: RegisteredTool) -> bool:
    return not is_discovery_tool(tool)


def _document(tool: RegisteredTool, keywords: Sequence[str]) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        # The name that clients use may be a cut one, or one of underscores.
        "original_name": tool.original_name,
        "title": tool.definition.get("title"),
        "description": tool.definition.get("description"),
        "input_schema": tool.definition.get("inputSchema"),
        "keywords": list(keywords),
        "category": category(tool),
    }


def _meta_texts(definition: Mapping[str, Any], *keys: str) -> list[str]:
    """Texts that a server put into a tool's `_meta` under one of these keys, or one level below."""
    meta = as_object(definition.get("_meta")) or {}
    places = [meta, *(inner for value in meta.values() if (inner := as_object(value)) is not None)]
    found: list[str] = []
    for place in places:
        for key in keys:
            value = place.get(key)
            values = [value] if isinstance(value, str) else as_list(value) or []
            found += [text for text in values if isinstance(text, str)]
    return found
