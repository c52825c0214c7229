"""The servers of the config: added, removed, replaced, switched off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from pegboard.catalog.discovery import Discovery
from pegboard.catalog.registry import ToolRegistry
from pegboard.config import ServerSpec
from pegboard.gate import Gate
from pegboard.listing.view import EVERYTHING, Filter
from pegboard.log import logger
from pegboard.oauth.live_token import GrantChange
from pegboard.oauth.oauth import OAuth
from pegboard.relay.relay import Relay
from pegboard.servers.authorization import Authorization, Authorize
from pegboard.servers.availability import Availability, availability_of
from pegboard.servers.connection_key import principal_in
from pegboard.servers.http.refusal import is_refusal, wants_sign_in
from pegboard.servers.message import Params
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState
from pegboard.storage import StorageError
from pegboard.task_set import TaskSet
from pegboard.tool import RegisteredTool


class ConfiguredServers:
    """Every server of the config, by name, and the tools of those that are switched off."""

    def __init__(
        self,
        by_name: dict[str, Server],
        registry: ToolRegistry,
        gate: Gate,
        discovery: Discovery,
        relay: Relay,
        oauth: OAuth,
        on_change: Callable[[], None],
    ) -> None:
        self.by_name = by_name
        # Servers that were taken out of the config while running, and the tools they had.
        self.removed: dict[str, frozenset[str]] = {}
        self._registry = registry
        self._gate = gate
        self._discovery = discovery
        self._relay = relay
        discovery.own.authorize = self._authorization_of
        oauth.on_change(self._on_sign_in)
        self._on_change = on_change
        # What a server says or asks outside of any request is the relay's business.
        self.on_notification, self.on_request = relay.forward_notification, relay.forward_request
        # Tools of disabled servers: not there for clients, but still to be shown to people.
        self._shelved: dict[str, dict[str, RegisteredTool]] = {}
        self._reaper = OrphanReaper()
        self._tasks = TaskSet()
        # Who has the credentials of servers that one signs in to.
        self.authorize: Authorize | None = oauth.authorize

    async def open(self, specs: Mapping[str, ServerSpec]) -> None:
        """Take over the catalog; nothing is connected."""
        for spec in specs.values():
            self._add(spec)
        records = await self._discovery.load()
        for name, server in self.by_name.items():
            record = records.get(name)
            server.recall(record.discovered_at if record else None, self._discovery.errors.get(name))
            if record is not None:
                server.era = "modern" if record.era == "modern" else "handshake"
                if not server.spec.enabled:
                    await self._shelve(name)

    async def close(self) -> None:
        """End every process and connection."""
        await asyncio.gather(*(server.close() for server in self.by_name.values()), return_exceptions=True)
        await self._tasks.wait()
        await asyncio.to_thread(self._reaper.close)

    def changes(self, specs: Mapping[str, ServerSpec]) -> list[Coroutine[Any, Any, None]]:
        """What there is to do to have these servers instead; those that are new are there at once."""
        work: list[Coroutine[Any, Any, None]] = [self._remove(name) for name in self.by_name if name not in specs]
        for name, spec in specs.items():
            if name not in self.by_name:
                self._add(spec)
                work.append(self._restore(name))
            elif self.by_name[name].spec != spec:
                work.append(self._replace(name, spec))
        return work

    async def rename_bare(self) -> None:
        """Which bare names are another server's depends on what other servers there are."""
        for name, server in self.by_name.items():
            if not server.spec.prefix and server.spec.enabled:
                await self._discovery.restore(name)

    def availability(self, tool: RegisteredTool, wanted: Filter = EVERYTHING) -> Availability:
        """Whether a tool can be used now by whoever has this filter, and if not, why."""
        if tool.server_name is None:
            return Availability("available")
        server = self.by_name.get(tool.server_name)
        if server is None:
            return Availability("disabled", "the server was removed from the config")
        found = availability_of(server, self._discovery.stale_since.get(server.name))
        if found.status == "available" and self._discovery.own.needs_sign_in(server.name, wanted.holder):
            # It is there for others.
            return Availability("needs_auth", wants_sign_in(server.name).removeprefix(f"{server.name} "))
        return found

    def tool_count(self, name: str) -> int:
        """How many tools of a server are known, whether it is enabled or not."""
        known = self._registry.server(name)
        return len(known.tools) if known is not None else len(self.list_shelved(name))

    def iter_shelved(self) -> Iterator[RegisteredTool]:
        """The tools of servers that are disabled at this moment, as far as the config lets them through."""
        return (tool for tools in tuple(self._shelved.values()) for tool in tools.values() if self._gate.permits(tool))

    def list_shelved(self, server: str) -> list[RegisteredTool]:
        """The tools of one disabled server."""
        return [tool for tool in self._shelved.get(server, {}).values() if self._gate.permits(tool)]

    def find_shelved(self, name: str) -> RegisteredTool | None:
        """The tool of this name of a disabled server."""
        known = (tools.get(name) for tools in self._shelved.values())
        return next((tool for tool in known if tool is not None and self._gate.permits(tool)), None)

    def has_shelved(self, server: str, name: str, wanted: Filter) -> bool:
        """Whether a disabled server has a tool of this name that passes a filter."""
        tool = self._shelved.get(server, {}).get(name)
        return tool is not None and wanted.admits(tool)

    async def leave_session(self, key: str) -> None:
        """A client session ended; servers that gave it a process of its own end that."""
        await asyncio.gather(*(server.leave_session(key) for server in self.by_name.values()))

    def on_state_changed(self, server: Server) -> None:
        """A server's state changed; so, perhaps, did the list."""
        logger().debug("server.state", server=server.name, state=server.state)
        self._on_change()

    def on_list_changed(self, server: Server, key: str | None) -> None:
        """A server said that a list of its changed, to all or to one principal."""
        if server.spec.enabled:
            self._discovery.on_list_changed(server.name)
            if (principal_id := principal_in(key)) is not None:
                self._discovery.own.on_list_changed(server.name, principal_id)

    def on_resource_updated(self, server: Server, key: str | None, params: Params) -> None:
        """A server said that a resource changed."""
        self._relay.subscriptions.publish(server, key, params)

    def _on_sign_in(self, name: str, principal: str, change: GrantChange) -> None:
        """Somebody signed in to a server, or out: it is connected with other credentials, or waits for some."""
        server = self.by_name.get(name)
        if server is None:
            return
        if change in {"signed_in", "changed"}:
            # Before anything waits: whoever is told that they are signed in is shown nothing else any more.
            self._discovery.own.expect(name, principal)
            self._tasks.spawn(self._follow_sign_in(server, principal))
        elif change == "signed_out":
            self._tasks.spawn(self._follow_sign_out(server, principal))
        else:
            # Its requests are refused from now on, which says the rest.
            self._tasks.spawn(self._discovery.own.on_signed_out(name, principal))

    async def _follow_sign_in(self, server: Server, principal: str) -> None:
        await server.on_signed_in(principal)
        self._discovery.own.on_signed_in(server.name, principal)

    async def _follow_sign_out(self, server: Server, principal: str) -> None:
        await server.on_signed_out(principal)
        await self._discovery.own.on_signed_out(server.name, principal)

    def _add(self, spec: ServerSpec) -> None:
        self.removed.pop(spec.name, None)
        self.by_name[spec.name] = Server(spec, reaper=self._reaper, listener=self, authorize=self._authorization_of)
        _report_problem(spec)

    def _authorization_of(self, spec: ServerSpec, principal_id: str | None) -> Authorization | None:
        return None if self.authorize is None else self.authorize(spec, principal_id)

    async def _remove(self, name: str) -> None:
        server = self.by_name.pop(name)
        self._relay.forget(name)
        self._tasks.spawn(server.close())
        known = self._registry.server(name)
        self.removed[name] = frozenset(known.tools if known else ())
        self._shelved.pop(name, None)
        try:
            await self._discovery.forget(server.spec)
        except StorageError as exc:
            logger().warning("catalog.forget.failed", serverName=name, reason=str(exc))
        self._on_change()

    async def _replace(self, name: str, spec: ServerSpec) -> None:
        server = self.by_name[name]
        moved = spec.fingerprint != server.spec.fingerprint
        if (spec.enabled, spec.problem) != (server.spec.enabled, server.spec.problem):
            _report_problem(spec)
        if not spec.enabled:
            await self._shelve(name)
        await server.replace_spec(spec)
        if not spec.enabled:
            return
        if moved:
            server.era = None
            await self._discovery.put_away(name)
        await self._restore(name)
        if not moved and spec.signs_in and server.state is ServerState.REGISTERED:
            self._recall_refusal(server)

    def _recall_refusal(self, server: Server) -> None:
        """A server that wanted a sign-in before its entry was edited wants it still, until it says otherwise."""
        said = self._discovery.errors.get(server.name)
        if said is not None and is_refusal(said, server.name):
            server.recall(None, said)
            self._discovery.soon(server.name)

    async def _restore(self, name: str) -> None:
        self._shelved.pop(name, None)
        try:
            await self._discovery.restore(name)
        except StorageError as exc:
            logger().warning("catalog.load.failed", serverName=name, reason=str(exc))
        # Nobody would hear of a server that is only asked when somebody lists.
        self._discovery.discover_if_new(name)

    async def _shelve(self, name: str) -> None:
        if (known := self._registry.server(name)) is not None:
            self._shelved[name] = {tool.name: tool for tool in known.tools.values()}
            await self._discovery.put_away(name)


def _report_problem(spec: ServerSpec) -> None:
    if spec.enabled and spec.problem:
        logger().error("config.server.invalid", server=spec.name, reason=spec.problem)


def find_unlisted(servers: Mapping[str, Server]) -> set[str]:
    """Those whose tools are in no list now."""
    unusable = {ServerState.DISABLED, ServerState.INVALID, ServerState.LOST}
    return {name for name, server in servers.items() if server.state in unusable}


def may_try(server: Server) -> bool:
    """Whether a server may be asked for its tools without anybody wanting them."""
    if server.state is ServerState.NEEDS_AUTH and not server.is_recalled:
        return False
    return not server.breaker.is_waiting and server.state is not ServerState.INVALID
