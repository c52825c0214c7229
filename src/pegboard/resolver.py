"""The resolver: which tool a name means. A name that nobody has is answered with the names that come close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pegboard.catalog.discovery import Discovery
from pegboard.catalog.finder import Finder
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.starting import starting_text
from pegboard.config import Settings
from pegboard.configured_servers import ConfiguredServers
from pegboard.gate import Gate, refusal_of_remote
from pegboard.listing.view import EVERYTHING, Filter
from pegboard.names import FORMER_NAMES, SEPARATOR, nearest, parse
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.authorization import Challenge
from pegboard.servers.connection_key import is_per_user
from pegboard.servers.http.refusal import NeedsAuth
from pegboard.servers.server import Server
from pegboard.text import quote_start
from pegboard.tool import RegisteredTool

# Up to so many names an unknown one is compared with each; among more, with those that the index finds likely.
_COMPARED, _LIKELY = 300, 30
# How much of a name that somebody made up is said back to them.
_SHOWN = 200
# Seconds that a call waits for the list of its caller's own.
_PATIENCE = 10.0


class UnknownTool(ToolFailure):
    """Nobody here has a tool of this name; the message says which names come close."""

    def __init__(self, message: str, code: ToolErrorCode = ToolErrorCode.NOT_FOUND) -> None:
        super().__init__(code, message, retryable=False)


class ToolResolver:
    """Finds the tool of a name, for a client that may see what passes its filter."""

    def __init__(
        self,
        registry: ToolRegistry,
        gate: Gate,
        servers: ConfiguredServers,
        discovery: Discovery,
        finder: Finder,
        settings: Callable[[], Settings],
    ) -> None:
        self._registry = registry
        self._gate = gate
        self._servers = servers
        self._discovery = discovery
        self._finder = finder
        self._settings = settings

    async def find(self, name: str, wanted: Filter = EVERYTHING) -> RegisteredTool:
        """The tool of this name; its server is asked first if it never was. `UnknownTool` where there is none."""
        tool = self._gate.tool(name, wanted)
        if tool is None:
            # Also where there is one that this client may not see: to it, it is as if there were none.
            await self._discover_own(name, wanted)
            await self._discover_owner(name, wanted)
            tool = self._gate.tool(name, wanted)
        if tool is None:
            self._check_withheld(name, wanted)
            raise await self._unknown(name, wanted)
        return tool

    def lookup(self, name: str, wanted: Filter = EVERYTHING) -> RegisteredTool | None:
        """The tool of this name as far as it is known here; nobody is asked."""
        tool = self._registry.get(name) or self._servers.find_shelved(name)
        return wanted.pick(tool) if tool is not None and wanted.admits(tool) else None

    async def _discover_own(self, name: str, wanted: Filter) -> None:
        """The caller's own sign-in may show a tool that is not known yet; without one, it is to sign in first, whatever
        the tool is called."""
        if wanted.holder is None:
            return
        for server in self._possible_owners(name, wanted):
            if is_per_user(server.spec):
                await self._discovery.own.discover(wanted.holder, _PATIENCE, server.name)
        parts = parse(name)
        if parts is None or not wanted.admits_server(parts[0]) or self._gate.tool(name, wanted) is not None:
            return
        if self._discovery.own.needs_sign_in(parts[0], wanted.holder):
            raise NeedsAuth(parts[0], Challenge(401), signs_in=True, has_sign_in=True)
        if self._discovery.own.awaits_list(parts[0], wanted.holder):
            server = self._servers.by_name.get(parts[0])
            failure = None if server is None else server.failure()
            raise failure or unavailable(f"server {parts[0]} has not said yet what it has for you")

    async def _discover_owner(self, name: str, wanted: Filter) -> None:
        """The owner of a name that is not in the catalog may be off, or may never have been asked."""
        parts = parse(name)
        for server in self._possible_owners(name, wanted):
            if server.spec.is_usable and self._registry.server(server.name) is None:
                if server.spec.prefix and (failure := server.failure()):
                    raise failure
                result = await self._discovery.discover(server.name, for_call=True)
                if result.error is not None and server.spec.prefix:
                    result.unwrap()
            named = parts is not None and server.name == parts[0]
            had = self._servers.has_shelved(server.name, name, wanted)
            # A server that has this tool and cannot answer says why; also if that came about just now.
            if (named or had) and self._gate.tool(name, wanted) is None and (failure := server.failure()):
                raise failure
        for server_name, tools in self._servers.removed.items():
            if not wanted.admits_server(server_name):
                continue
            if (name in tools and wanted.admits_name(name)) or (parts is not None and server_name == parts[0]):
                raise unavailable(f"server {server_name} was removed from the config", retryable=False)

    def _possible_owners(self, name: str, wanted: Filter) -> list[Server]:
        """Who may have a tool of this name, as far as this client may know of them."""
        parts, servers = parse(name), self._servers.by_name
        named = servers.get(parts[0]) if parts is not None else None
        owners = [*([named] if named else []), *(server for server in servers.values() if not server.spec.prefix)]
        return [server for server in owners if wanted.admits_server(server.name)]

    def _check_withheld(self, name: str, wanted: Filter) -> None:
        """A tool that is there and not served says why, and what to do about it."""
        found = self._registry.withheld(name)
        # Which of the tools are a principal's own is asked of its own list.
        access = None if wanted.access is None else wanted.access.without_sight()
        for server in self._possible_owners(name, wanted):
            if wanted.holder is not None and is_per_user(server.spec):
                own = self._discovery.own.find(server.name, wanted.holder)
                found = None if own is None else own.judged.withheld_by_name(name)
        if found is None:
            return
        tool, reason = found
        if replace(wanted, access=access).admits(tool) and self._gate.permits(tool):
            raise unavailable(f"{name} cannot be used: {reason}", retryable=False)

    async def _unknown(self, name: str, wanted: Filter) -> UnknownTool:
        shown = quote_start(name, _SHOWN)
        there = self._registry.get(name) if wanted.remote else None
        if there is not None and there.local_only and self._gate.admits(there, replace(wanted, remote=False)):
            return UnknownTool(refusal_of_remote(name))
        find = " Use tool_find to search for tools." if "tool_find" in self._registry.static() else ""
        renamed = self._settings().renamed.get(name) or FORMER_NAMES.get(name)
        # A name that a rule hides is not given away by what it was called before.
        if renamed and (wanted.access is None or self._gate.tool(renamed, wanted)):
            state = await self._state(renamed, wanted)
            return UnknownTool(f'Unknown tool "{shown}": it is called "{renamed}" now{state}.{find}')
        if SEPARATOR in name and parse(name) is None:
            words = f'Unknown tool "{shown}": the name of a server\'s tool is server__tool.{find}'
            return UnknownTool(words, ToolErrorCode.INVALID_INPUT)
        if self._registry.server_tools > _COMPARED:
            await self._finder.catch_up()
        close = nearest(name[:_SHOWN], self._candidates(name, wanted))
        hint = f" Did you mean {', '.join(close)}?" if close else ""
        starting = [server for server in self._discovery.list_starting() if wanted.admits_server(server)]
        later = f" {starting_text(starting)}" if starting else ""
        return UnknownTool(f'Unknown tool "{shown}".{hint}{find}{later}')

    async def _state(self, renamed: str, wanted: Filter) -> str:
        """What there is to say of a tool that has another name now; one that leads on to a third is not followed."""
        if renamed in self._settings().renamed or renamed in FORMER_NAMES:
            return "" if self._gate.tool(renamed, wanted) else ", which is not installed here"
        try:
            await self.find(renamed, wanted)
        except UnknownTool:
            return ", which is not installed here"
        except ToolFailure as exc:
            return f", which cannot be used now: {exc}"
        return ""

    def _candidates(self, name: str, wanted: Filter) -> list[str]:
        """Names that may come close: all of them, or where there are many those that the index finds alike."""
        if self._registry.server_tools > _COMPARED:
            likely = [*self._finder.like(name, _LIKELY), *self._registry.static()]
            known = [tool for each in likely if (tool := self._registry.get(each)) is not None]
        else:
            known = self._registry.all()
        full = self._registry.full_name(name)
        return [tool.name for tool in (*known, *([full] if full else [])) if self._gate.admits(tool, wanted)]
