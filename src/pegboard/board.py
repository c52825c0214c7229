"""The board: servers and tools as one, what the gateway and the library call."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pegboard.access.limits import Limits
from pegboard.access.principal import LOCAL, Principal
from pegboard.audit.audit import Audit
from pegboard.audit.changes import note_changes
from pegboard.calls import Calls
from pegboard.catalog.discovery import Discovery
from pegboard.catalog.finder import Finder, ToolHit, category
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import CatalogEntry
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.clients.sign_in_advice import SignInAdvice
from pegboard.config import ServerSpec, Settings, locate, read_settings
from pegboard.config.settings import ChangePolicy
from pegboard.configured_servers import ConfiguredServers, find_unlisted, may_try
from pegboard.decisions import Decisions
from pegboard.gate import Gate
from pegboard.listing.lists import SHORT, Lists
from pegboard.listing.loaded import LoadedTools
from pegboard.listing.view import EVERYTHING, Filter, ListKey, View
from pegboard.log import logger, trace_scope
from pegboard.metrics import Metrics
from pegboard.oauth.oauth import OAuth
from pegboard.pins.change import DefinitionChange
from pegboard.pins.lock_file import lock_of
from pegboard.pins.pin_set import GONE
from pegboard.pins.pin_state import PinState
from pegboard.pins.pins import Pins, marks_of, outcome_of
from pegboard.pins.review import Outcome
from pegboard.relay.relay import Relay
from pegboard.resolver import ToolResolver
from pegboard.result import ToolErrorCode, ToolFailure, ToolResult, invalid
from pegboard.results.results import Results
from pegboard.servers.availability import Availability
from pegboard.servers.server import Server
from pegboard.storage import Storage, open_storage
from pegboard.tool import Disposable, RegisteredTool, Tool
from pegboard.toolsets.collection import Toolsets
from pegboard.toolsets.workspace import Workspace

NEW_SERVER_WAIT = 0.4
# What changed, in words.
_KINDS = {"tool": "tools", "prompt": "prompts", "template": "resource templates", "instructions": "instructions"}
# What clients have of definitions that changed.
_OUTCOMES: Mapping[Outcome, str] = {
    "in use": "in use",
    "held": "in use as approved before",
    "withheld": "withheld",
    "left out": "left out",
}


class Board:
    """Many servers and static tools as one board."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        storage: Storage | None = None,
        workspace: str | None = None,
        audit: str | None = None,
    ) -> None:
        """`audit` says what the board is open for ("serve", "stdio", "command"); without it nothing is recorded."""
        self.settings = settings or Settings()
        self.workspace = Workspace(lambda: workspace or self.settings.workspace)
        self.storage = storage or open_storage(self.settings.storage)
        self.metrics = Metrics()
        self.audit = Audit(self.storage, lambda: self.settings.audit, self.metrics, audit)
        self.oauth = OAuth(self.storage, self.settings.storage, lambda: self.settings, self.metrics, self._note_sign_in)
        self.servers: dict[str, Server] = {}
        length = self.settings.max_name_length
        self.registry = ToolRegistry(max_name_length=length, on_change=self._tell, configured=self.servers.keys)
        self.library = ResourceCatalog(max_name_length=length, order=lambda: self.servers, on_change=self._tell)
        self.gate = Gate(self.registry, lambda: self.settings)
        self.loaded = LoadedTools(self.storage.boards, self._tell, lambda: self.settings.board_size)
        self.lists = Lists(
            self.registry,
            self.library,
            self.loaded,
            hidden=lambda: find_unlisted(self.servers),
            settings=lambda: self.settings,
            starting=self.list_starting,
        )
        self.results = Results(
            self.storage.results, lambda: self.settings, self.lists, lambda client: self.gate.has_reader(client.filter)
        )
        self.finder = Finder(
            self.registry,
            self._config_keywords,
            keywords_of=lambda name: spec.keywords if (spec := self.settings.servers.get(name)) else None,
            semantic=lambda: self.settings.search == "semantic",
        )
        # Whoever serves others holds definitions that change, where nothing is set.
        self.serves_others = False
        self.pins = Pins(self.storage.pins, self._change_policy)
        self.pins.on_news = self._note_news
        self.discovery = Discovery(
            self.registry,
            self.storage.catalog,
            lambda: self.servers,
            may_try=lambda name: may_try(self.servers[name]),
            library=self.library,
            pins=self.pins,
        )
        self.discovery.own.tell = self.lists.tell
        self.limits = Limits(self.metrics.record_refusal)
        self.relay = Relay(lambda: self.servers, self.discovery, self.library, self.limits, self.audit)
        self.configured = ConfiguredServers(
            self.servers, self.registry, self.gate, self.discovery, self.relay, self.oauth, self.lists.invalidate
        )
        self.resolver = ToolResolver(
            self.registry, self.gate, self.configured, self.discovery, self.finder, lambda: self.settings
        )
        self.decisions = Decisions(self.pins, self.configured, self.registry, self.discovery, self.audit)
        self.sign_in_advice = SignInAdvice(lambda: self.servers)
        self.calls = Calls(
            lambda: self.servers,
            self.resolver,
            self.discovery,
            self.relay,
            self.metrics,
            self.loaded,
            self.limits,
            self.audit,
            self.sign_in_advice,
            self.results,
        )
        # What the entrances and our own tools use most, by the names that they know it by.
        self.call = self.calls.call_for_python
        self.find_tool, self.lookup_tool = self.resolver.find, self.resolver.lookup
        self.toolsets = Toolsets(self, self.register, self.registry.batch)
        self.toolsets.apply(self.settings)
        # Whom to tell that the settings are others now.
        self.on_apply: Callable[[], object] = lambda: None
        self._warming_up: asyncio.Task[None] | None = None
        self._applying = asyncio.Lock()

    @staticmethod
    def settings_of(path: str | os.PathLike[str] | None = None) -> Settings:
        """The settings of a config file, found as the commands find it."""
        location = locate(Path(path) if path is not None else None)
        # A file that was asked for by name has to be there; one that was only looked for need not.
        is_named = path is not None or bool(os.environ.get("PEGBOARD_CONFIG"))
        chosen = location.path if location.exists or is_named else None
        return read_settings(chosen, os.environ, needs_trust=location.needs_trust)

    async def __aenter__(self) -> Board:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Register every server and take over the catalog; nothing is connected."""
        await self.storage.open()
        await self.audit.open()
        await self.loaded.open()
        await self.results.open()
        await self.toolsets.open()
        for remark in self.settings.remarks:
            logger().warning("config.remark", remark=remark)
        await self.pins.open()
        await self.pins.apply(lock_of(self.settings))
        await self.configured.open(self.settings.servers)
        self._warming_up = asyncio.get_running_loop().create_task(self.finder.warm_up())

    async def close(self) -> None:
        """Stop everything and leave nothing behind."""
        if self._warming_up is not None:
            self._warming_up.cancel()
        self.lists.close()
        await self.relay.close()
        await self.discovery.close()
        await self.pins.close()
        await self.configured.close()
        await self.oauth.close()
        await self.toolsets.close()
        await self.results.close()
        await self.audit.close()
        await self.storage.close()

    def register(self, tool: Tool) -> Disposable:
        """Add a static tool."""
        return self.registry.register_tool(tool.name, tool)

    async def list_tools(self, sight: ListKey | None = None, *, is_check: bool = False) -> View[RegisteredTool]:
        """The list a client sees now. It never waits for a server in the catalog, and a moment at most for new ones. A
        check of ours is nobody's prompt, and does not count."""
        self.metrics.lists += not is_check
        sight = sight or ListKey()
        await self.discover_new(sight.filter)
        view = await self.lists.list_in_slices(sight)
        if len(view.items) > SHORT:
            await view.write()
        self.lists.tools.record_served(sight, view)
        return view

    async def list_entries(self, kind: str, wanted: Filter = EVERYTHING) -> View[CatalogEntry]:
        """The same for "prompts", "resources" or "templates"."""
        await self.discover_new(wanted)
        await self.discovery.discover_resources(NEW_SERVER_WAIT)
        if kind == "prompts":
            self.lists.prompts.record_served(wanted, self.lists.entries(kind, wanted))
        else:
            self.lists.resources.record_served(wanted, await self.lists.resources_in_slices(wanted))
        return self.lists.entries(kind, wanted)

    async def discover_own(self, wanted: Filter) -> None:
        """Have it known what the sign-ins of whoever has this filter show, or that there are none; that takes a moment
        at most."""
        if wanted.holder is not None:
            await self.discovery.own.discover(wanted.holder, NEW_SERVER_WAIT)

    def list_starting(self, wanted: Filter = EVERYTHING) -> list[str]:
        """Servers that a client may see and whose tools are not known yet, because they are asked for the first
        time."""
        return [name for name in self.discovery.list_starting() if wanted.admits_server(name)]

    async def find(self, query: str, limit: int = 10, wanted: Filter = EVERYTHING) -> tuple[list[ToolHit], int]:
        """The tools that fit a query best, and how many fit at all."""
        await self.discover_new(wanted)
        found, total = await self.finder.find_in_slices(query, limit, wanted.admits if wanted != EVERYTHING else None)
        if wanted.holder is not None:
            found = [replace(hit, tool=wanted.pick(hit.tool)) for hit in found]
        return found, total

    def availability(self, tool: RegisteredTool, client: Client | None = None) -> Availability:
        """Whether a tool can be used now, and if not, why, in words for this client."""
        found = self.configured.availability(tool, EVERYTHING if client is None else client.filter)
        return found if client is None else self.sign_in_advice.availability(found, tool.server_name, client)

    def describe(self, tool: RegisteredTool, client: Client | None = None) -> dict[str, Any]:
        """One tool in full: everything its server says of it, and everything we know. What a server says of all of its
        tools is for whoever has all."""
        wanted = EVERYTHING if client is None else client.filter
        row = dict(tool.definition)
        row["server"] = tool.server_name
        row["originalName"] = tool.original_name
        row["availability"] = self.availability(tool, client).to_dict()
        row["category"] = category(tool)
        row["keywords"] = list(self.finder.keywords(tool))
        server = tool.server_name
        has_all = server is not None and wanted.knows_whole_server(server)
        if has_all and (said := self.discovery.instructions.get(server or "")):
            row["serverInstructions"] = said
        return row

    async def run_own(
        self,
        toolset: str,
        name: str,
        arguments: Mapping[str, Any],
        caller: Caller | None = None,
        *,
        is_read: bool = False,
    ) -> Any:
        """What a tool of Pegboard's own answers, for an entrance that wants the data alone; `ToolFailure` for the
        rest. Where it `is_read`, that is no call."""
        caller = caller or Caller()
        tool = self.gate.own_tool(toolset, name, caller.client.filter)
        return await self.calls.run_own(tool, arguments, caller, is_read=is_read)

    async def search(self, query: str, limit: int, caller: Caller) -> dict[str, Any]:
        """What `tool_find` answers, for people and programs: they search also where models have no tools for it."""
        tool = self.toolsets.tool("tool_find")
        if tool is None:
            raise ToolFailure(ToolErrorCode.NOT_IMPLEMENTED, "the discovery toolset is not installed", retryable=False)
        self.gate.check_own(tool.name)
        return await self.calls.run_own(tool, {"query": query, "limit": limit}, caller, is_read=True)

    async def refresh(self, names: list[str] | None = None, trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask servers for their tools now; all enabled ones unless some are named."""
        if problem := _names_problem(names) or _text_problem("trace", trace):
            return ToolResult[dict[str, int]].failed(invalid(problem).error)
        chosen = names or [name for name, server in self.servers.items() if server.spec.enabled]
        for name in chosen:
            if (server := self.servers.get(name)) is not None:
                server.breaker.half_open()
        return await self.discovery.refresh(chosen, trace)

    async def discover_all_tools(self, trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask every enabled server whose tools are not fresh."""
        if problem := _text_problem("trace", trace):
            return ToolResult[dict[str, int]].failed(invalid(problem).error)
        return await self.discovery.discover_all_tools(trace)

    def all_tools(self) -> list[RegisteredTool]:
        """Every tool there is something to say about, those of disabled servers included; sorted by name."""
        return sorted(self.iter_tools(), key=lambda tool: tool.name)

    def iter_tools(self) -> Iterator[RegisteredTool]:
        """The same in no order."""
        yield from self.registry.all()
        yield from self.configured.iter_shelved()

    async def apply(self, settings: Settings) -> None:
        """Take over a changed config; clients stay connected, and only what changed is touched."""
        async with self._applying:
            with trace_scope():
                await self._apply(settings)

    async def _apply(self, settings: Settings) -> None:
        old, self.settings = self.settings, settings
        policies, lock_file = (
            {name: self._policy_by(spec, old) for name, spec in old.servers.items()},
            self.pins.lock_file,
        )
        self.results.caps.apply(settings)
        self.audit.apply()
        note_changes(self.audit, old, settings)
        for remark in settings.remarks:
            logger().warning("config.remark", remark=remark)
        if _startup_settings(old) != _startup_settings(settings):
            logger().warning("config.remark", remark="storage, maxNameLength and hosts change with the next start")
        work = self.configured.changes(settings.servers)
        # Before anything waits: what is denied from now on is gone from now on.
        self.on_apply()
        self.toolsets.apply(settings)
        await self.pins.apply(lock_of(settings))
        # All at once: one process that is slow to end must not keep the others' tools in the list.
        await asyncio.gather(*work)
        if old.servers.keys() != settings.servers.keys():
            await self.configured.rename_bare()
        for name, spec in settings.servers.items():
            policy = self._change_policy(spec)
            is_locked_anew = policy == "locked" and self.pins.lock_file != lock_file
            if policies.get(name) not in {None, policy} or is_locked_anew:
                await self.discovery.review(name)
        self.finder.invalidate()
        self.lists.invalidate()

    async def leave_session(self, key: str) -> None:
        """A client session ended; servers that gave it a process of its own end that."""
        self.relay.leave(key)
        self.loaded.leave(key)
        await self.configured.leave_session(key)

    async def discover_new(self, wanted: Filter = EVERYTHING) -> None:
        """Have servers asked that nobody has asked yet, or not for long; those that are new are given a moment."""
        self.discovery.refresh_stale()
        await self.discovery.discover_new(NEW_SERVER_WAIT)
        await self.discover_own(wanted)

    def _config_keywords(self, tool: RegisteredTool) -> Sequence[str]:
        spec = self.settings.servers.get(tool.server_name or "")
        return () if spec is None else spec.keywords.get(tool.original_name) or spec.keywords.get(tool.name) or ()

    async def review_definitions(self, name: str) -> None:
        """Of this server something was decided elsewhere, perhaps about definitions that are not known here yet."""
        server = self.servers.get(name)
        if server is None or not server.spec.enabled:
            return
        await self.discovery.review(name)
        if self.pins.count_waiting(server.spec) and (server.is_connected or not server.is_process):
            self.discovery.on_list_changed(name)

    def _change_policy(self, spec: ServerSpec) -> ChangePolicy:
        return self._policy_by(spec, self.settings)

    def _policy_by(self, spec: ServerSpec, settings: Settings) -> ChangePolicy:
        usual = "hold" if self.serves_others or settings.is_for_others else "tell"
        return spec.changes or settings.changes or usual

    def _note_news(self, spec: ServerSpec, state: PinState, changes: Sequence[DefinitionChange]) -> None:
        """A server says something else than what is approved."""
        policy = self._change_policy(spec)
        words = _count(("changed", "new", "gone"), Counter(change.what for change in changes))
        there = (change for change in changes if change.said != GONE)
        outcomes = Counter(_OUTCOMES[outcome_of(state, change, policy)] for change in there)
        wants_look = sum(bool(marks_of(state, change)) for change in changes)
        remarks = [_count(_OUTCOMES.values(), outcomes), f"{wants_look} to look at first" if wants_look else ""]
        logger().info(
            "definitions.changed",
            server=spec.name,
            kinds=_KINDS[changes[0].kind],
            what=words,
            policy=policy,
            version=state.version,
            wantsLook=wants_look,
            remark=", ".join(filter(None, remarks)),
        )
        self.audit.note("definition.changed", LOCAL, server=spec.name, detail=f"{words} ({policy})")

    def _tell(self) -> None:
        self.lists.tell()

    def _note_sign_in(self, kind: str, outcome: str, server: str, detail: str, principal: Principal | None) -> None:
        self.audit.note(kind, principal, outcome=outcome, server=server, detail=detail)


def _names_problem(names: object) -> str | None:
    if names is None or (isinstance(names, list) and all(isinstance(name, str) for name in cast("list[Any]", names))):
        return None
    return "the names of servers must be a list of texts"


def _text_problem(what: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return None
    return f"{what} must be a text, found {type(value).__name__}"


def _startup_settings(settings: Settings) -> tuple[object, ...]:
    """What a running gateway cannot take over."""
    return settings.storage, settings.max_name_length, settings.hosts


def _count(words: Iterable[str], counts: Counter[str]) -> str:
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
