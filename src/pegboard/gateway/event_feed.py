"""The event feed: tells whoever looks on what has changed, as small facts with numbers.

While somebody looks on, what the gateway knows of itself is compared a few times a second, so that a burst of changes
is one fact for each thing that changed. While nobody does, nothing is compared and nothing is kept. A fact says what is
another now, not how it is: whoever wants to know reads that from REST, which has one rule for who may see what.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pegboard.access.principal import Principal
from pegboard.audit.ended_call import EndedCall
from pegboard.auth.token import StaticToken
from pegboard.board import Board
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.rest.rows import needs_login
from pegboard.listing.view import Filter
from pegboard.result import unavailable
from pegboard.tool import RegisteredTool

# Seconds between two looks: a burst of changes is one fact of each kind.
LOOK_EVERY = 0.25
# Facts that are kept for whoever comes back after a moment.
KEPT = 2000
# Calls that are told of one by one at each look; of the others, how many there were.
MOST_CALLS = 100
MOST_ONLOOKERS = 256
# Of one principal, so that none takes all the places.
MOST_OF_PRINCIPAL = 32


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that has changed. Nothing secret is in it, and no arguments."""

    number: int
    kind: str
    data: Mapping[str, Any]
    # For whoever may know of this server, or of one of these tools.
    server: str | None = None
    tools: Sequence[RegisteredTool] = ()
    # For whoever has this namespace.
    namespace: str | None = None
    # For admins, and for this principal.
    principal: str | None = None
    # For admins alone.
    is_internal: bool = False

    def is_for(self, principal: Principal, wanted: Filter) -> bool:
        """Whether somebody may know of it."""
        is_known = self.server is None or wanted.admits_server(self.server)
        is_known = is_known and (not self.tools or any(wanted.admits(tool) for tool in self.tools))
        if self.namespace is not None and wanted.access is not None:
            is_known = is_known and wanted.access.admits_namespace(self.namespace)
        is_theirs = principal.admin or (self.principal in {None, principal.id} and not self.is_internal)
        return is_known and is_theirs


class EventFeed:
    """What changes at a gateway, for as long as somebody looks on."""

    def __init__(
        self,
        board: Board,
        config: ConfigFile,
        sessions: Callable[[], int],
        tokens: Callable[[], Sequence[StaticToken]],
    ) -> None:
        self._board = board
        self._config = config
        self._sessions = sessions
        self._tokens = tokens
        # Of those who look on now: places of another time mean nothing.
        self.key = b""
        self._facts: deque[Fact] = deque(maxlen=KEPT)
        self._last = 0
        # By principal.
        self._onlookers = Counter[str]()
        self._looking: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()
        self._calls: list[EndedCall] = []
        self._untold_calls = 0
        self._seen: dict[tuple[str, str], object] = {}
        self._is_over = False

    @property
    def last(self) -> int:
        """The number of the last fact."""
        return self._last

    def check_room(self, principal: str) -> None:
        """Refuse one onlooker too many."""
        if self._onlookers.total() >= MOST_ONLOOKERS or self._onlookers[principal] >= MOST_OF_PRINCIPAL:
            raise unavailable("too many look on already")

    @asynccontextmanager
    async def watch(self, principal: str) -> AsyncGenerator[None]:
        """Somebody looks on."""
        self._onlookers[principal] += 1
        if self._looking is None:
            self.key, self._last = secrets.token_bytes(), 0
            self._seen = self._observe()
            self._board.calls.on_end = self._note_call
            self._looking = asyncio.get_running_loop().create_task(self._look_on())
        try:
            yield
        finally:
            self._onlookers[principal] -= 1
            self._onlookers += Counter()
            if not self._onlookers:
                self._board.calls.on_end = None
                self._looking.cancel()
                self._looking = None
                self._facts.clear()
                self._calls.clear()
                self._seen = {}

    def close(self) -> None:
        """Everybody's stream ends."""
        self._is_over = True
        self.wake()

    async def wait_after(self, number: int, patience: float) -> bool:
        """Wait for a fact behind this number, so many seconds at most; False if there will be none."""
        if self._last <= number and not self._is_over:
            try:
                async with asyncio.timeout(patience):
                    await self._has_news.wait()
            except TimeoutError:
                pass
        return not self._is_over

    def since(self, number: int) -> list[Fact] | None:
        """The facts behind this number; `None` where some of them are kept no longer."""
        missing = self._last - number
        if missing > len(self._facts) or missing < 0:
            return None
        return list(islice(self._facts, len(self._facts) - missing, None))

    def look(self) -> None:
        """See what has changed since the last look, and tell it."""
        before = self._last
        self._compare()
        self._tell_calls()
        if self._last != before:
            self.wake()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    def wake(self) -> None:
        """Have everybody look whether there is something for them."""
        # Whoever waits has this event; the next ones wait for another.
        self._has_news.set()
        self._has_news = asyncio.Event()

    def _compare(self) -> None:
        now, before = self._observe(), self._seen
        self._seen = now
        if now == before:
            return
        for key in before.keys() | now.keys():
            if before.get(key) != now.get(key):
                self._tell_change(*key, is_there=key in now)

    def _observe(self) -> dict[tuple[str, str], object]:
        """Everything that a fact is told of when it is another."""
        board = self._board
        seen: dict[tuple[str, str], object] = {
            ("config", ""): (board.settings, self._config.problem),
            ("tools", ""): board.registry.generation,
            ("sessions", ""): self._sessions(),
            ("tokens", ""): self._tokens(),
            ("storage", ""): (board.storage.problem, board.audit.problem),
            ("logins", ""): tuple(sorted(board.metrics.oauth_grants.items())),
            ("calls", "parked"): board.relay.parked.count,
        }
        for name, server in board.servers.items():
            error, known = server.last_error, board.registry.server(name)
            # Who signs in for themselves, or out, finds it in another state than before.
            signed_in = board.discovery.own.count_changes(name)
            seen["server", name] = (server.state, server.spec, error, server.era, known, needs_login(server), signed_in)
            seen["log", name] = server.log.last_number
            seen["changes", name] = board.pins.mark(server.spec)
        return seen | board.toolsets.last_changes()

    def _tell_change(self, kind: str, name: str, *, is_there: bool) -> None:
        if kind == "changes":
            count = self._board.decisions.count(name).get("waits", 0)
            self._add(kind, {"server": name, "count": count}, server=name, is_internal=True)
        elif kind == "log":
            self._add(kind, {"name": name}, server=name, is_internal=True)
        elif self._board.toolsets.has_namespaces(kind):
            self._tell_toolset(kind, name)
        elif kind != "server":
            self._add(kind, {}, is_internal=kind != "tools")
        elif is_there:
            self._add(kind, {"name": name, "state": self._board.servers[name].state.value}, server=name)
        else:
            self._add(kind, {"name": name, "state": "removed"}, server=name)

    def _note_call(self, call: EndedCall) -> None:
        if len(self._calls) < MOST_CALLS:
            self._calls.append(call)
        else:
            self._untold_calls += 1

    def _tell_calls(self) -> None:
        calls, self._calls = self._calls, []
        untold, self._untold_calls = self._untold_calls, 0
        for call in calls:
            self._add("call", call.to_dict(), server=call.server or None, principal=call.principal_id)
        if untold:
            self._add("calls", {"more": untold}, is_internal=True)
        own = {call.tool: self._board.registry.get(call.tool) for call in calls if not call.server}
        changed = {tool.toolset: None for tool in own.values() if tool is not None and not tool.claims_read_only}
        for toolset in changed:
            if toolset is not None and not self._board.toolsets.has_namespaces(toolset):
                self._tell_toolset(toolset, None)

    def _tell_toolset(self, toolset: str, namespace: str | None) -> None:
        # Whoever may only read wants to know it as well.
        tools = [tool for tool in self._board.registry.static().values() if tool.toolset == toolset]
        if tools:
            self._add(toolset, {}, tools=tools, namespace=namespace)

    def _add(self, kind: str, data: Mapping[str, Any], **whom: Any) -> None:
        """A fact more; `whom` says who may know of it."""
        self._last += 1
        self._facts.append(Fact(self._last, kind, data, **whom))
