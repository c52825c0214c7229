"""The lists that clients see: made once for each change, and told about when they changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Hashable, Iterable
from typing import Any, Literal, TypeVar

from pegboard.access.access import Access
from pegboard.catalog.finder import is_discovery_tool, is_result_reader
from pegboard.catalog.registry import ToolRegistry, without_board
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import CatalogEntry
from pegboard.config import Settings
from pegboard.listing.list_changed import ListChangedNotifier
from pegboard.listing.loaded import LoadedTools
from pegboard.listing.view import Draft, Filter, ListItem, ListKey, View
from pegboard.lru_dict import LruDict
from pegboard.pace import Pace
from pegboard.tool import BYTES_A_TOKEN, RegisteredTool

# Up to this many tools of servers, and tokens of their definitions, `auto` lists them all.
FEW, FEW_TOKENS = 30, 8000
# Up to this many a list is made at once.
SHORT = 1000
_MAX_VIEWS = 1024
# Views have the texts of all that they list: a hundred filters over ten thousand tools would be a gigabyte.
_MAX_BYTES = 64 * 2**20

T = TypeVar("T", bound=ListItem)
# All tools; all of servers and those that were chosen; those that were chosen: pinned, loaded, or to find others with.
ListScope = Literal["all", "servers", "chosen"]
Sorting = Generator[None, None, tuple[RegisteredTool, ...]]


class Lists:
    """Everything that can be listed, by whose list it is."""

    def __init__(
        self,
        registry: ToolRegistry,
        library: ResourceCatalog,
        loaded: LoadedTools,
        *,
        hidden: Callable[[], set[str]],
        settings: Callable[[], Settings],
        starting: Callable[[Filter], Collection[str]] = lambda _: (),
    ) -> None:
        self._registry = registry
        self._library = library
        self._loaded = loaded
        # Servers whose things are not to be listed now.
        self._hidden = hidden
        self._settings = settings
        # Servers that a filter admits, and whose tools are not known yet.
        self._starting = starting
        # What each view was made of, and the view.
        self._views: dict[tuple[str, Hashable], tuple[object, View[Any]]] = {}
        self._weight = 0
        self._epoch = 0
        self._seen = (-1, -1)
        # Whether servers have few tools for whoever has this access, and what that was counted of.
        self._few: LruDict[Hashable, bool] = LruDict(_MAX_VIEWS)
        self._few_of = (-1, -1)
        self._making: dict[tuple[Hashable, object], asyncio.Task[View[RegisteredTool]]] = {}
        self.tools: ListChangedNotifier[ListKey] = ListChangedNotifier(self._list_now)
        self.prompts: ListChangedNotifier[Filter] = ListChangedNotifier(lambda wanted: self.entries("prompts", wanted))
        self.resources: ListChangedNotifier[Filter] = ListChangedNotifier(self._resources_now)
        self._seeing: set[asyncio.Task[View[CatalogEntry]]] = set()

    def invalidate(self) -> None:
        """Something is another way now that no registry knows of: a server's state, a setting."""
        self._epoch += 1
        self.tell()

    def tell(self) -> None:
        """Look, in a moment, who has to be told of a change."""
        for notices in (self.tools, self.prompts, self.resources):
            notices.schedule_check()

    def close(self) -> None:
        """No more notices."""
        for notices in (self.tools, self.prompts, self.resources):
            notices.close()
        for task in (*self._making.values(), *self._seeing):
            task.cancel()

    def view(self, wanted: Filter) -> View[RegisteredTool]:
        """Every tool that passes a filter."""

        def choose(shown: Callable[[ListItem], bool]) -> Iterable[RegisteredTool]:
            tools = (tool for tool in self._registry.all() if shown(tool) and self._is_in_all(tool, wanted))
            return tools if wanted.holder is None else map(wanted.pick, tools)

        return self._view("tools", wanted, choose)

    def list_for(self, sight: ListKey) -> View[RegisteredTool]:
        """The tools that a client has in its list: a filter's matches, all, or those that were chosen."""
        scope = self.scope(sight)
        if scope == "all":
            return self.view(sight.filter)
        loaded = self._loaded.on(sight.board)
        readers: list[str] = []
        if self._may_have_caps(scope, sight.filter):
            readers = [name for name, tool in self._registry.static().items() if is_result_reader(tool)]

        def choose(shown: Callable[[ListItem], bool]) -> Iterable[RegisteredTool]:
            # Name by name: a few among thousands, and every session has its own.
            names = (*self._settings().pinned, *loaded, *readers)
            found = {tool.name: tool for name in names if (tool := self._registry.full_name(name)) is not None}
            found.update(self._find_discovery_tools(has_board=sight.board is not None))
            if scope == "servers":
                found.update({tool.name: tool for tool in self._registry.values() if tool.server_name is not None})
            wanted = sight.filter
            return (wanted.pick(tool) for _, tool in sorted(found.items()) if shown(tool) and wanted.admits(tool))

        return self._view("listed", sight, choose, (*loaded, *readers))

    def is_listed(self, name: str, sight: ListKey) -> bool:
        """Whether a client has this tool in its list."""
        if self.scope(sight) != "all":
            return name in self.list_for(sight).names
        # A long list is not made for one name.
        _, view = self._look_up("tools", sight.filter, ())
        if view is not None or self._registry.server_tools <= SHORT:
            return name in self.view(sight.filter).names
        tool = self._registry.get(name)
        return tool is not None and tool.server_name not in self._hidden() and self._is_in_all(tool, sight.filter)

    async def list_in_slices(self, sight: ListKey) -> View[RegisteredTool]:
        """The list as it is now. Where it is long it is made in slices: others on the loop have their turns."""
        view = self._list_now(sight)
        # Whoever gives up must not take it from the others.
        return view if isinstance(view, View) else await asyncio.shield(view)

    async def view_in_slices(self, wanted: Filter) -> View[RegisteredTool]:
        """Every tool that passes a filter, likewise."""
        view = self._view_now(wanted)
        return view if isinstance(view, View) else await asyncio.shield(view)

    def _list_now(self, sight: ListKey) -> View[RegisteredTool] | asyncio.Task[View[RegisteredTool]]:
        return self._view_now(sight.filter) if self.scope(sight) == "all" else self.list_for(sight)

    def _view_now(self, wanted: Filter) -> View[RegisteredTool] | asyncio.Task[View[RegisteredTool]]:
        """Every tool that passes a filter now: the view, or what makes it of the tools of this moment."""
        if self._registry.server_tools <= SHORT:
            return self.view(wanted)
        made_of, view = self._look_up("tools", wanted, ())
        if view is not None:
            return view
        # What its holder is shown may be another way while it is made.
        key = wanted.content_key, made_of
        making = self._making.get(key)
        if making is None:
            work = self._make(wanted, made_of, self._registry.sorting(), self._hidden())
            making = self._making[key] = asyncio.get_running_loop().create_task(work)
            making.add_done_callback(lambda _: self._making.pop(key))
        return making

    async def _make(self, wanted: Filter, made_of: object, sorting: Sorting, hidden: set[str]) -> View[RegisteredTool]:
        """The view of the tools that there were at one moment, whatever changes meanwhile."""
        draft, pace, key = Draft[RegisteredTool](), Pace(), wanted.content_key
        await pace.rest()
        for tool in await pace.outcome(sorting):
            if tool.server_name not in hidden and self._is_in_all(tool, wanted):
                draft.add(wanted.pick(tool))
            if pace.is_over:
                await pace.rest()
        view = draft.view()
        if not wanted.is_long and key == wanted.content_key and self._look_up("tools", wanted, ())[0] == made_of:
            self._keep(("tools", key), made_of, view)
        return view

    def _is_in_all(self, tool: RegisteredTool, wanted: Filter) -> bool:
        """Whether a tool is listed to a client that is listed all that pass its filter."""
        return wanted.admits(tool) and (not is_result_reader(tool) or self._has_caps("all"))

    def _has_caps(self, scope: ListScope) -> bool:
        """Whether results may be too large for clients with this list. What reads the rest of one is of use to no
        others."""
        settings = self._settings()
        return any(settings.caps) or (settings.results.cap is None and scope == "chosen")

    def _may_have_caps(self, scope: ListScope, wanted: Filter) -> bool:
        """The same, or whether that may become so: a list that is short because of servers that still start may turn
        into one for clients that search, and a client may never ask for that."""
        if self._has_caps(scope):
            return True
        return scope == "servers" and self._settings().results.cap is None and bool(self._starting(wanted))

    def scope(self, sight: ListKey) -> ListScope:
        """Which tools a client has in its list."""
        wanted = sight.expose or self._settings().expose
        if sight.filter.narrows or wanted == "all":
            return "all"
        if wanted == "search":
            return "chosen"
        # Without the tools to find others with, a short list would be a dead end.
        if "tool_find" not in self._registry.static():
            return "all"
        return "servers" if self._are_few(sight.filter.access) else "chosen"

    def _are_few(self, access: Access | None) -> bool:
        """Whether all tools of servers are few that a client may have. What is known counts, be it there or lost at the
        moment: a list that turns from short to long because a server went away helps nobody."""
        made_of = (self._registry.generation, self._epoch)
        if self._few_of != made_of:
            self._few_of = made_of
            self._few.clear()
        key = access if access is None or access.sight is None else (access.rules, access.sight.key)
        if (few := self._few.get(key)) is None:
            few = self._few[key] = self._count_few(access)
        return few

    def _count_few(self, access: Access | None) -> bool:
        if access is None and self._registry.server_tools > FEW:
            return False
        count = size = 0
        for group, tools in self._registry.groups().items():
            if access is not None and not access.admits_server(group.partition(" ")[0]):
                continue
            for tool in tools.values():
                if access is None or access.admits(tool):
                    count, size = count + 1, size + len(tool.text)
                if count > FEW or size // BYTES_A_TOKEN > FEW_TOKENS:
                    return False
        return True

    def _find_discovery_tools(self, *, has_board: bool) -> dict[str, RegisteredTool]:
        """The tools that find others, in the words for clients that can load tools, or for those that cannot."""
        found = {name: tool for name, tool in self._registry.static().items() if is_discovery_tool(tool)}
        return found if has_board else {name: without_board(tool) for name, tool in found.items()}

    def entries(self, kind: str, wanted: Filter) -> View[CatalogEntry]:
        """The prompts, resources or templates of a filter."""

        def choose(shown: Callable[[ListItem], bool]) -> Iterable[CatalogEntry]:
            if kind == "prompts" and not self._library.has_own(wanted.holder):
                return (
                    entry for entry in self._library.prompts.entries.values() if shown(entry) and wanted.admits(entry)
                )
            sight = self._library.see_now(wanted.knows_server, wanted.holder)
            if kind == "prompts":
                return (entry for entry in sight.prompts.values() if shown(entry) and wanted.admits(entry))
            found = sight.resources if kind == "resources" else sight.templates
            return (entry for entry in found.values() if shown(entry) and wanted.admits_resources(entry.server_name))

        return self._view(kind, wanted, choose)

    async def resources_in_slices(self, wanted: Filter) -> View[CatalogEntry]:
        """Resources and templates, whatever has to be laid out for that."""
        await self._library.see(wanted.knows_server, wanted.holder)
        return self.resources_and_templates(wanted)

    def _resources_now(self, wanted: Filter) -> View[CatalogEntry] | asyncio.Task[View[CatalogEntry]]:
        if self._library.sight(wanted.knows_server, wanted.holder) is not None:
            return self.resources_and_templates(wanted)
        task = asyncio.get_running_loop().create_task(self.resources_in_slices(wanted))
        self._seeing.add(task)
        task.add_done_callback(self._seeing.discard)
        return task

    def resources_and_templates(self, wanted: Filter) -> View[CatalogEntry]:
        """Both, since one notice tells of both."""
        resources, templates = self.entries("resources", wanted), self.entries("templates", wanted)
        return View(resources.items + templates.items, hash((resources.digest, templates.digest)))

    def _view(
        self,
        kind: str,
        key: Filter | ListKey,
        choose: Callable[[Callable[[ListItem], bool]], Iterable[T]],
        loaded: tuple[str, ...] = (),
    ) -> View[T]:
        made_of, cached = self._look_up(kind, key, loaded)
        if cached is not None:
            return cached
        hidden = self._hidden()
        view = View[T].of(choose(lambda entry: entry.server_name not in hidden))
        if not (key.filter if isinstance(key, ListKey) else key).is_long:
            self._keep((kind, key.content_key), made_of, view)
        return view

    def _look_up(
        self, kind: str, key: Filter | ListKey, loaded: tuple[str, ...]
    ) -> tuple[tuple[int, tuple[str, ...]], View[Any] | None]:
        """What a view of now is made of, and the view if it is there."""
        generation = (self._registry.generation, self._library.generation)
        if self._seen != generation:
            self._seen = generation
            self._epoch += 1
        made_of = (self._epoch, loaded)
        cached = self._views.get((kind, key.content_key))
        return made_of, cached[1] if cached is not None and cached[0] == made_of else None

    def _keep(self, key: tuple[str, Hashable], made_of: object, view: View[Any]) -> None:
        """Keep a view for whoever has the same, and as many of those before as there is room for, the newest first."""
        if (before := self._views.pop(key, None)) is not None:
            self._weight -= before[1].weight
        self._weight += view.weight
        while self._views and (len(self._views) >= _MAX_VIEWS or self._weight > _MAX_BYTES):
            self._weight -= self._views.pop(next(iter(self._views)))[1].weight
        self._views[key] = (made_of, view)
