"""The board: servers and tools as one, what every front and the library calls."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pegboard import exactjson
from pegboard.catalog.discovery import Discovery
from pegboard.catalog.finder import Finder, ToolHit, category
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import CatalogEntry, ResourceCatalog
from pegboard.config import ServerSpec, Settings, locate, read_settings
from pegboard.exactjson import as_object
from pegboard.gate import Gate, refusal_of_remote
from pegboard.listing.lists import SHORT, Lists
from pegboard.listing.loaded import LoadedTools
from pegboard.listing.view import EVERYTHING, Filter, ListKey, View
from pegboard.log import logger, new_trace_id, trace_id, trace_scope
from pegboard.metrics import Metrics
from pegboard.names import FORMER_NAMES, SEPARATOR, nearest, parse
from pegboard.protocol.eras import forward_params
from pegboard.relay.caller import Caller, OnProgress, current
from pegboard.relay.parked import ParkedCalls
from pegboard.relay.relay import Relay
from pegboard.result import ToolError, ToolErrorCode, ToolFailure, ToolResult, as_result, invalid, unavailable
from pegboard.servers.jsonrpc import Message, Params, RpcError, failure_of
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.requester import Requester
from pegboard.servers.server import Server, ServerState
from pegboard.storage import Storage, StorageError, open_storage
from pegboard.telemetry import span
from pegboard.tool import Disposable, RegisteredTool, RelayingTool, Tool
from pegboard.toolsets.collection import Toolsets
from pegboard.toolsets.workspace import Workspace

NEW_SERVER_WAIT = 0.4
# Up to so many names an unknown one is compared with each; among more, with those that the index finds likely.
_COMPARED, _LIKELY = 300, 30
# How much of a name that somebody made up is said back to them.
_SHOWN = 200


class UnknownTool(ToolFailure):
    """Nobody here has a tool of this name; the message says which names come close."""

    def __init__(self, message: str, code: ToolErrorCode = ToolErrorCode.NOT_FOUND) -> None:
        super().__init__(code, message, retryable=False)


class FailedResult(dict[str, Any]):
    """The result of a static tool that failed, and the error that it stands for."""

    def __init__(self, result: Mapping[str, Any], error: ToolError) -> None:
        super().__init__(result)
        self.error = error


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a tool can be used now, and if not, why."""

    status: str
    reason: str | None = None
    stale_since: float | None = None
    next_try_in: float | None = None

    def to_dict(self) -> dict[str, object]:
        """Only what there is to say."""
        data: dict[str, object] = {"status": self.status}
        if self.reason is not None:
            data["reason"] = self.reason
        if self.stale_since is not None:
            data["staleSince"] = _iso(self.stale_since)
        if self.next_try_in is not None:
            data["nextTryInSeconds"] = round(self.next_try_in, 1)
        return data


class Board:
    """Many servers and static tools as one board."""

    def __init__(
        self, settings: Settings | None = None, *, storage: Storage | None = None, workspace: str | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.workspace = Workspace(lambda: workspace or self.settings.workspace)
        self.storage = storage or open_storage(self.settings.storage)
        self.metrics = Metrics()
        self.servers: dict[str, Server] = {}
        length = self.settings.max_name_length
        self.registry = ToolRegistry(max_name_length=length, on_change=self._tell, configured=self.servers.keys)
        self.library = ResourceCatalog(max_name_length=length, order=lambda: self.servers, on_change=self._tell)
        self.gate = Gate(self.registry, lambda: self.settings)
        self.loaded = LoadedTools(self.storage.boards, on_change=self._tell)
        self.lists = Lists(
            self.registry, self.library, self.loaded, hidden=self.unavailable_servers, settings=lambda: self.settings
        )
        self.finder = Finder(
            self.registry,
            self._config_keywords,
            keywords_of=lambda name: spec.keywords if (spec := self.settings.servers.get(name)) else None,
            semantic=lambda: self.settings.search == "semantic",
        )
        self.discovery = Discovery(
            self.registry, self.storage.catalog, lambda: self.servers, may_try=self._may_try, library=self.library
        )
        self.relay = Relay(lambda: self.servers, self.discovery, self.library)
        self.toolsets = Toolsets(self, self.register)
        self.toolsets.apply(self.settings)
        self._reaper = OrphanReaper()
        # Tools of disabled servers: not there for clients, but still to be told about.
        self._shelved: dict[str, tuple[RegisteredTool, ...]] = {}
        # Servers that were taken out of the config while running, and the tools they had.
        self._removed: dict[str, frozenset[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
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
        await self.loaded.open()
        await self.toolsets.open()
        for remark in self.settings.remarks:
            logger().warning("config.remark", remark=remark)
        for spec in self.settings.servers.values():
            self._add(spec)
        records = await self.discovery.load()
        for name, server in self.servers.items():
            record = records.get(name)
            server.recall(record.discovered_at if record else None, self.discovery.errors.get(name))
            if record is not None:
                server.era = "modern" if record.era == "modern" else "handshake"
                if not server.spec.enabled:
                    await self._shelve(name)
        self._warming_up = asyncio.get_running_loop().create_task(self.finder.warm_up())

    async def close(self) -> None:
        """Stop everything and leave nothing behind."""
        if self._warming_up is not None:
            self._warming_up.cancel()
        self.lists.close()
        await self.relay.close()
        await self.discovery.close()
        await asyncio.gather(*(server.close() for server in self.servers.values()), return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._reaper.close)
        await self.toolsets.close()
        await self.storage.close()

    @property
    def parked(self) -> ParkedCalls:
        """Calls that wait for their clients' answers."""
        return self.relay.parked

    def restrict_to_local(self, wanted: Filter, *, remote: bool) -> Filter:
        """A filter as it is for a client on another machine, or on this one."""
        return replace(wanted, remote=True) if remote and not self.settings.opens_local_tools else wanted

    def register(self, tool: Tool) -> Disposable:
        """Add a static tool."""
        return self.registry.register_tool(tool.name, tool)

    async def list_tools(self, sight: ListKey | None = None) -> View[RegisteredTool]:
        """The list a client sees now. It never waits for a server in the catalog, and a moment at most for new ones."""
        self.metrics.lists += 1
        await self._discover_new()
        sight = sight or ListKey()
        view = await self.lists.list_in_slices(sight)
        if len(view.items) > SHORT:
            await view.write()
        self.lists.tools.record_served(sight, view)
        return view

    async def list_entries(self, kind: str, wanted: Filter = EVERYTHING) -> View[CatalogEntry]:
        """The same for "prompts", "resources" or "templates"."""
        await self._discover_new()
        await self.discovery.discover_resources(NEW_SERVER_WAIT)
        if kind == "prompts":
            self.lists.prompts.record_served(wanted, self.lists.entries(kind, wanted))
        else:
            self.lists.resources.record_served(wanted, self.lists.resources_and_templates(wanted))
        return self.lists.entries(kind, wanted)

    async def find(self, query: str, limit: int = 10, wanted: Filter = EVERYTHING) -> tuple[list[ToolHit], int]:
        """The tools that fit a query best, and how many fit at all."""
        await self._discover_new()
        return await self.finder.find_in_slices(query, limit, wanted.admits if wanted != EVERYTHING else None)

    def describe(self, tool: RegisteredTool) -> dict[str, Any]:
        """One tool in full: everything its server says of it, and everything we know."""
        row = dict(tool.definition)
        row["server"] = tool.server_name
        row["originalName"] = tool.original_name
        row["availability"] = self.availability(tool).to_dict()
        row["category"] = category(tool)
        row["keywords"] = list(self.finder.keywords(tool))
        if tool.server_name is not None and (said := self.discovery.instructions.get(tool.server_name)):
            row["serverInstructions"] = said
        return row

    async def find_tool(self, name: str, wanted: Filter = EVERYTHING) -> RegisteredTool:
        """The tool of this name, met for the first time if need be; else why there is none."""
        if self.registry.get(name) is None:
            await self._discover_owner(name, wanted)
        tool = self.gate.tool(name, wanted)
        if tool is None:
            raise await self._unknown(name, wanted)
        return tool

    def lookup_tool(self, name: str, wanted: Filter = EVERYTHING) -> RegisteredTool | None:
        """The tool of this name as far as it is known here; nobody is asked."""
        tool = self.registry.get(name) or next((tool for tool in self._put_by() if tool.name == name), None)
        return tool if tool is not None and wanted.admits(tool) else None

    async def run_own(self, toolset: str, name: str, arguments: Mapping[str, Any], caller: Caller | None = None) -> Any:
        """What a tool of Pegboard's own answers, for a front that wants the data alone; `ToolFailure` for the rest."""
        caller = caller or Caller()
        return await _answer_of(self.gate.own_tool(toolset, name, caller.filter), arguments, caller)

    async def task_graph(
        self, form: str, change: str | None, path: str | None, caller: Caller | None = None
    ) -> dict[str, Any]:
        """Who waits for whom, for whoever may list tasks: it shows what the list does."""
        from pegboard.toolsets.tasks.toolset import TasksToolset

        return await self.toolsets.of(TasksToolset).graph(form, change, path, caller or Caller())

    async def search(self, query: str, limit: int, caller: Caller) -> dict[str, Any]:
        """What `tool_find` answers, for people and programs: they search also where models have no tools for it."""
        tool = self.toolsets.tool("tool_find")
        if tool is None:
            raise ToolFailure(ToolErrorCode.NOT_IMPLEMENTED, "the discovery toolset is not installed", retryable=False)
        self.gate.check_own(tool.name)
        return await _answer_of(tool, {"query": query, "limit": limit}, caller)

    async def call_tool(self, name: str, params: Params | None, caller: Caller) -> Message:
        """Relay a call as it is and give the result as it is.

        Raises `UnknownTool`, the server's own `RpcError`, or `ToolFailure` for everything else.
        """
        started = time.perf_counter()
        outcome, owner = "failed", "none"
        token = trace_id.set(new_trace_id()) if trace_id.get() is None else None
        try:
            with span("tools/call", name) as told:
                try:
                    tool = await self.find_tool(name, caller.filter)
                    if isinstance(tool.tool, RelayingTool):
                        tool, params = await self._resolve_relayed(tool.tool, params, caller)
                        name = tool.name
                    owner = tool.server_name or "pegboard"
                    result = await self._call(tool, params, caller)
                    outcome = "error" if result.get("isError") is True else "ok"
                    return result
                except asyncio.CancelledError:
                    outcome = "cancelled"
                    raise
                finally:
                    told.set_attribute("pegboard.server", owner)
                    told.set_attribute("pegboard.trace_id", trace_id.get())
                    told.set_attribute("pegboard.outcome", outcome)
        finally:
            self.metrics.record_call(owner, outcome, time.perf_counter() - started)
            logger().debug("tool.called", tool=name, outcome=outcome)
            if token is not None:
                trace_id.reset(token)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, caller: Caller | None = None
    ) -> ToolResult[Message]:
        """Call a tool from Python; never raises."""
        return await as_result(self._call_for_python(name, arguments, caller or Caller()))

    async def refresh(self, names: list[str] | None = None, trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask servers for their tools now; all enabled ones unless some are named."""
        if problem := _names_problem(names) or _text_problem("trace", trace):
            return ToolResult[dict[str, int]].failed(invalid(problem).error)
        chosen = names or [name for name, server in self.servers.items() if server.spec.enabled]
        for name in chosen:
            if (server := self.servers.get(name)) is not None:
                server.try_now()
        return await self.discovery.refresh(chosen, trace)

    async def discover_all_tools(self, trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask every enabled server whose tools are not fresh."""
        if problem := _text_problem("trace", trace):
            return ToolResult[dict[str, int]].failed(invalid(problem).error)
        return await self.discovery.discover_all_tools(trace)

    def availability(self, tool: RegisteredTool) -> Availability:
        """Whether a tool can be used now, and if not, why."""
        if tool.server_name is None:
            return Availability("available")
        server = self.servers.get(tool.server_name)
        if server is None:
            return Availability("disabled", "the server was removed from the config")
        return self._server_availability(server)

    def tool_count(self, server: str) -> int:
        """How many tools of a server are known, whether it is enabled or not."""
        known = self.registry.server(server)
        return len(known.tools) if known is not None else sum(map(self.gate.permits, self._shelved.get(server, ())))

    def all_tools(self) -> list[RegisteredTool]:
        """Every tool there is something to say about, those of disabled servers included; sorted by name."""
        return sorted([*self.registry.all(), *self._put_by()], key=lambda tool: tool.name)

    def _put_by(self) -> Iterator[RegisteredTool]:
        """The tools of disabled servers, as far as the config lets them through."""
        return (tool for tools in self._shelved.values() for tool in tools if self.gate.permits(tool))

    async def apply(self, settings: Settings) -> None:
        """Take over a changed config; clients stay connected, and only what changed is touched."""
        async with self._applying:
            with trace_scope():
                await self._apply(settings)

    async def _apply(self, settings: Settings) -> None:
        old, self.settings = self.settings, settings
        for remark in settings.remarks:
            logger().warning("config.remark", remark=remark)
        if _startup_settings(old) != _startup_settings(settings):
            logger().warning("config.remark", remark="storage, maxNameLength and hosts change with the next start")
        work: list[Coroutine[Any, Any, None]] = [
            self._remove(name) for name in self.servers if name not in settings.servers
        ]
        for name, spec in settings.servers.items():
            if name not in self.servers:
                self._add(spec)
                work.append(self._restore(name))
            elif self.servers[name].spec != spec:
                work.append(self._replace(name, spec))
        # Before anything waits: what is denied from now on is gone from now on.
        self.toolsets.apply(settings)
        # All at once: one process that is slow to end must not keep the others' tools in the list.
        await asyncio.gather(*work)
        for name, server in self.servers.items():
            # Which bare names are another server's depends on what other servers there are.
            if not server.spec.prefix and server.spec.enabled and old.servers.keys() != settings.servers.keys():
                await self.discovery.restore(name)
        self.finder.invalidate()
        self._changed()

    async def leave_session(self, key: str) -> None:
        """A client session ended; servers that gave it a process of its own end that."""
        self.relay.leave(key)
        self.loaded.leave(key)
        await asyncio.gather(*(server.leave_session(key) for server in self.servers.values()))

    def on_state_changed(self, server: Server) -> None:
        """A server's state changed; so, perhaps, did the list."""
        logger().debug("server.state", server=server.name, state=server.state)
        self._changed()

    def on_list_changed(self, server: Server) -> None:
        """A server said that a list of its changed."""
        if server.spec.enabled:
            self.discovery.on_list_changed(server.name)

    def on_resource_updated(self, server: Server, key: str | None, params: Params) -> None:
        """A server said that a resource changed."""
        self.relay.subscriptions.publish(server, key, params)

    def on_notification(self, server: Server, key: str | None, method: str, params: Params, only: str | None) -> None:
        """A server said something that belongs to no request under way."""
        self.relay.forward_notification(server, key, method, params, only)

    async def on_request(self, server: Server, key: str | None, method: str, params: Params) -> Message:
        """A server asks something that belongs to no request under way."""
        return await self.relay.forward_request(server, key, method, params)

    async def _discover_new(self) -> None:
        self.discovery.refresh_stale()
        await self.discovery.discover_new(NEW_SERVER_WAIT)

    def unavailable_servers(self) -> set[str]:
        """Those whose tools are in no list now."""
        return {name for name, server in self.servers.items() if not _is_listed(server)}

    def _config_keywords(self, tool: RegisteredTool) -> Sequence[str]:
        spec = self.settings.servers.get(tool.server_name or "")
        return () if spec is None else spec.keywords.get(tool.original_name) or spec.keywords.get(tool.name) or ()

    async def _call(self, tool: RegisteredTool, params: Params | None, caller: Caller) -> Message:
        if tool.tool is not None:
            return await self._call_own(tool.tool, params, caller)
        assert tool.server_name is not None
        server = self.servers.get(tool.server_name)
        if server is None:
            raise unavailable(f"server {tool.server_name} was removed from the config", retryable=False)
        self.discovery.refresh_if_stale(server.name)
        forwarded = forward_params(params)
        forwarded["name"] = tool.original_name
        result = await self.relay.send(
            server,
            "tools/call",
            forwarded,
            caller,
            subject=f"tools/call {tool.original_name}",
            input_schema=tool.definition["inputSchema"] if tool.marked else None,
        )
        return await self.relay.name_references(server.name, result, caller)

    async def _call_own(self, tool: Tool, params: Params | None, caller: Caller) -> Message:
        if not tool.asks or caller.ask is not None or caller.era == "handshake":
            return await _call_static(tool, params, caller)

        async def start(requester: Requester, _: OnProgress | None) -> Message:
            return await _call_static(tool, params, replace(caller, ask=requester.on_request))

        return await self.parked.call("tools/call", params or {}, caller, start)

    async def _resolve_relayed(
        self, tool: RelayingTool, params: Params | None, caller: Caller
    ) -> tuple[RegisteredTool, dict[str, Any]]:
        """The other tool that a call is for; what is wrong with it is said to the model, not to its client."""
        arguments = as_object((params or {}).get("arguments")) or {}
        name, inner = tool.target(await tool.accept(arguments))
        try:
            meant = await self.find_tool(name, caller.filter)
        except UnknownTool as exc:
            raise ToolFailure(exc.error.code, str(exc), retryable=False) from None
        return meant, {**(params or {}), "name": name, "arguments": inner}

    async def _call_for_python(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Message:
        params = {"name": name, "arguments": _arguments(name, arguments)}
        try:
            return await self.call_tool(name, params, caller)
        except RpcError as exc:
            raise failure_of(exc, name) from None

    async def _discover_owner(self, name: str, wanted: Filter) -> None:
        """The owner of a name that is not in the catalog may be off, or may never have been asked."""
        parts = parse(name)
        for server in self._possible_owners(name, wanted):
            if server.spec.enabled and not server.spec.problem and self.registry.server(server.name) is None:
                if server.spec.prefix and (failure := server.failure()):
                    raise failure
                result = await self.discovery.discover(server.name, for_call=True)
                if result.error is not None and server.spec.prefix:
                    result.unwrap()
            named = parts is not None and server.name == parts[0]
            had = any(tool.name == name for tool in self._shelved.get(server.name, ()))
            # A server that has this tool and cannot answer says why; also if that came about just now.
            if (named or had) and self.registry.get(name) is None and (failure := server.failure()):
                raise failure
        for server_name, tools in self._removed.items():
            if not wanted.admits_server(server_name):
                continue
            if name in tools or (parts is not None and server_name == parts[0]):
                raise unavailable(f"server {server_name} was removed from the config", retryable=False)

    def _possible_owners(self, name: str, wanted: Filter) -> list[Server]:
        """Who may have a tool of this name, as far as this client may know of them."""
        parts = parse(name)
        named = self.servers.get(parts[0]) if parts is not None else None
        owners = [*([named] if named else []), *(server for server in self.servers.values() if not server.spec.prefix)]
        return [server for server in owners if wanted.admits_server(server.name)]

    async def _unknown(self, name: str, wanted: Filter) -> UnknownTool:
        shown = name if len(name) <= _SHOWN else name[:_SHOWN] + "…"
        if wanted.remote and (there := self.registry.get(name)) is not None and there.local_only:
            return UnknownTool(refusal_of_remote(name))
        find = " Use tool_find to search for tools." if "tool_find" in self.registry.static() else ""
        if renamed := self.settings.renamed.get(name) or FORMER_NAMES.get(name):
            state = await self._state(renamed, wanted)
            return UnknownTool(f'Unknown tool "{shown}": it is called "{renamed}" now{state}.{find}')
        if SEPARATOR in name and parse(name) is None:
            words = f'Unknown tool "{shown}": the name of a server\'s tool is server__tool.{find}'
            return UnknownTool(words, ToolErrorCode.INVALID_INPUT)
        if self.registry.server_tools > _COMPARED:
            await self.finder.catch_up()
        close = nearest(name[:_SHOWN], self._candidates(name, wanted))
        hint = f" Did you mean {', '.join(close)}?" if close else ""
        return UnknownTool(f'Unknown tool "{shown}".{hint}{find}')

    async def _state(self, renamed: str, wanted: Filter) -> str:
        """What there is to say of a tool that has another name now; one that leads on to a third is not followed."""
        if renamed in self.settings.renamed or renamed in FORMER_NAMES:
            return "" if self.registry.get(renamed) else ", which is not installed here"
        try:
            await self.find_tool(renamed, wanted)
        except UnknownTool:
            return ", which is not installed here"
        except ToolFailure as exc:
            return f", which cannot be used now: {exc}"
        return ""

    def _candidates(self, name: str, wanted: Filter) -> list[str]:
        """Names that may come close: all of them, or where there are many those that the index finds alike."""
        if self.registry.server_tools > _COMPARED:
            likely = [*self.finder.like(name, _LIKELY), *self.registry.static()]
            known = [tool for each in likely if (tool := self.registry.get(each)) is not None]
        else:
            known = self.registry.all()
        meant = self.registry.full_name(name)
        return [tool.name for tool in (*known, *([meant] if meant else [])) if self.gate.admits(tool, wanted)]

    def _server_availability(self, server: Server) -> Availability:
        stale = self.discovery.stale_since.get(server.name)
        match server.state:
            case ServerState.DISABLED:
                return Availability("disabled", f"server {server.name} is disabled")
            case ServerState.INVALID:
                return Availability("unavailable", server.spec.problem)
            case ServerState.LOST:
                return Availability("unavailable", server.last_error, next_try_in=server.next_try_in)
            case ServerState.NEEDS_AUTH:
                return Availability("needs_auth", server.last_error)
            case _:
                return Availability("available", stale_since=stale)

    def _add(self, spec: ServerSpec) -> None:
        self._removed.pop(spec.name, None)
        self.servers[spec.name] = Server(spec, reaper=self._reaper, listener=self)
        if spec.problem:
            logger().error("config.server.invalid", server=spec.name, reason=spec.problem)

    async def _remove(self, name: str) -> None:
        server = self.servers.pop(name)
        self.relay.forget(name)
        self._spawn(server.close())
        known = self.registry.server(name)
        self._removed[name] = frozenset(known.tools if known else ())
        self._shelved.pop(name, None)
        try:
            await self.discovery.forget(server.spec)
        except StorageError as exc:
            logger().warning("catalog.forget.failed", serverName=name, reason=str(exc))
        self._changed()

    async def _replace(self, name: str, spec: ServerSpec) -> None:
        server = self.servers[name]
        moved = spec.fingerprint != server.spec.fingerprint
        if not spec.enabled:
            await self._shelve(name)
        await server.replace_spec(spec)
        if not spec.enabled:
            return
        if moved:
            server.era = None
            await self.discovery.put_away(name)
        await self._restore(name)

    async def _restore(self, name: str) -> None:
        self._shelved.pop(name, None)
        try:
            await self.discovery.restore(name)
        except StorageError as exc:
            logger().warning("catalog.load.failed", serverName=name, reason=str(exc))
        # Nobody would hear of a server that is only met when somebody lists.
        self.discovery.discover_if_new(name)

    async def _shelve(self, name: str) -> None:
        if (known := self.registry.server(name)) is not None:
            self._shelved[name] = tuple(known.tools.values())
            await self.discovery.put_away(name)

    def _may_try(self, name: str) -> bool:
        server = self.servers[name]
        return not server.breaker.is_waiting and server.state not in {ServerState.INVALID, ServerState.NEEDS_AUTH}

    def _changed(self) -> None:
        self.lists.invalidate()

    def _tell(self) -> None:
        self.lists.tell()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _answer_of(tool: Tool, arguments: Mapping[str, Any], caller: Caller) -> Any:
    given = await tool.accept(arguments)
    token = current.set(caller)
    try:
        return await tool.call_for_data(given)
    finally:
        current.reset(token)


async def _call_static(tool: Tool, params: Params | None, caller: Caller) -> Message:
    token = current.set(caller)
    try:
        answer = await tool.invoke(as_object((params or {}).get("arguments")))
    finally:
        current.reset(token)
    result: Message = {"content": [{"type": "text", "text": part.value} for part in answer.content]}
    if answer.data is not None:
        result["structuredContent"] = dict(answer.data)
    result["isError"] = answer.is_error
    if not answer.is_error:
        return result
    text = "".join(part.value for part in answer.content)
    return FailedResult(result, answer.error or ToolError(ToolErrorCode.EXECUTION_FAILED, text))


def _arguments(name: object, arguments: object) -> dict[str, Any]:
    """The arguments that a program gives to a tool, if they can be sent to one."""
    if problem := _text_problem("a tool's name", name if name is not None else False):
        raise invalid(problem)
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise invalid(f"the arguments must be an object, found {type(arguments).__name__}")
    try:
        return exactjson.exact(dict(cast("Mapping[str, Any]", arguments)))
    except exactjson.NotJson as exc:
        raise invalid(f"the arguments are not JSON: {exc}") from None


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


def _is_listed(server: Server) -> bool:
    return server.state not in {ServerState.DISABLED, ServerState.INVALID, ServerState.LOST}


def _iso(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
