"""A server: connected when needed, kept while used, stopped when idle, brought back when lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from pegboard.config import ServerSpec
from pegboard.log import logger
from pegboard.protocol.eras import Era, severity
from pegboard.result import ToolErrorCode, ToolFailure, error_of, invalid, unavailable
from pegboard.servers.breaker import Breaker
from pegboard.servers.connection import Connection, Listing
from pegboard.servers.handshake import ServerHello, negotiate
from pegboard.servers.http.client import NeedsAuth, SessionExpired, Unreachable, WrongStatus
from pegboard.servers.jsonrpc import ConnectionLost, JsonRpcPeer, Message, Params, RpcError, TimedOut
from pegboard.servers.limit import Limit
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.raw_call import RawCall, RawRequest
from pegboard.servers.requester import NoRequester, Requester
from pegboard.servers.transports.sse import SseTransport
from pegboard.servers.transports.stdio import StdioTransport
from pegboard.servers.transports.streamable_http import StreamableHttpTransport

_STEADY = 30.0
_LEVEL_PATIENCE = 1.0
_SHORTEST_PAUSE = 0.1
# Characters of what went wrong, which may be in a server's own words.
_LONGEST_REASON = 16 * 1024
# So many client sessions can have a connection of their own to one server.
MOST_SESSIONS = 64
# A shared connection serves clients of every kind; which of them can be asked what is told question by question.
EVERYTHING_ASKABLE: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {"listChanged": True},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
    },
}


class ServerState(StrEnum):
    """What is known of a server right now."""

    REGISTERED = "registered"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    IDLE = "idle"
    # It could not be reached when it was last tried; what is known of it stays in the list.
    UNREACHABLE = "unreachable"
    # A live connection broke, or calls failed until the breaker opened: its tools are in no list.
    LOST = "lost"
    DISABLED = "disabled"
    NEEDS_AUTH = "needs_auth"
    INVALID = "invalid"


class ServerListener(Protocol):
    """Who wants to know what happens to a server."""

    def on_state_changed(self, server: Server) -> None:
        """The state is another one now."""
        ...

    def on_list_changed(self, server: Server) -> None:
        """The server said so, or was away long enough for it."""
        ...

    def on_resource_updated(self, server: Server, key: str | None, params: Params) -> None:
        """The server said that a resource has changed."""
        ...

    def on_notification(self, server: Server, key: str | None, method: str, params: Params, only: str | None) -> None:
        """The server said something that belongs to no request under way; `only` is the one client it ever had."""
        ...

    async def on_request(self, server: Server, key: str | None, method: str, params: Params) -> Message:
        """The server asks something that belongs to no request under way; `only` is the one client it ever had."""
        ...


@dataclass(slots=True)
class _ConnectionEvents:
    """Hands on what a connection hears, with the names of both ends."""

    server: Server
    listener: ServerListener
    key: str | None
    # What a process said so far, for when it does not get any further.
    hints: Callable[[], list[str]] = list

    def on_list_changed(self) -> None:
        self.listener.on_list_changed(self.server)

    def on_resource_updated(self, params: Params) -> None:
        self.listener.on_resource_updated(self.server, self.key, params)

    def on_notification(self, method: str, params: Params, only: str | None) -> None:
        self.listener.on_notification(self.server, self.key, method, params, only)

    async def on_request(self, method: str, params: Params) -> Message:
        return await self.listener.on_request(self.server, self.key, method, params)


@dataclass(slots=True)
class _ConnectionSlot:
    """A connection in use for one key: the shared one (`None`), or a client session's own."""

    connection: Connection
    opened: float
    active: int = 0
    last_used: float = 0.0
    timer: asyncio.TimerHandle | None = None


class Server:
    """One configured server and all connections to it."""

    def __init__(
        self, spec: ServerSpec, *, reaper: OrphanReaper, listener: ServerListener, era: Era | None = None
    ) -> None:
        self.spec = spec
        self.era: Era | None = era
        self.hello: ServerHello | None = None
        self.last_seen: float | None = None
        self.latency: float | None = None
        self.last_error: str | None = None
        self._reaper = reaper
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self.breaker = Breaker(self._loop.time)
        self._connections: dict[str | None, _ConnectionSlot] = {}
        self._opening: dict[str | None, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._supervisor: asyncio.Task[None] | None = None
        self._flaps = 0
        self._level: str | None = None
        # What each connection is to be subscribed to, in the order it was asked for.
        self._subscribed: dict[str | None, dict[str, None]] = {}
        self._closed = False
        self._state = _first_state(spec)
        self.last_error = spec.problem

    @property
    def name(self) -> str:
        """The server's name here."""
        return self.spec.name

    @property
    def state(self) -> ServerState:
        """What is known of it right now."""
        return self._state

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open."""
        return bool(self._connections)

    @property
    def next_try_in(self) -> float | None:
        """Seconds until a lost server is tried again, or until calls may try one that cannot be reached."""
        if self._state is ServerState.LOST or (self._state is ServerState.UNREACHABLE and self.breaker.is_open):
            return self.breaker.remaining()
        return None

    def key_for(self, session: str | None) -> str | None:
        """Whose connection a request of this session takes: its own, or the shared one (`None`)."""
        return session if self.spec.instance == "session" else None

    def recall(self, last_seen: float | None, last_error: str | None) -> None:
        """Take over what earlier runs knew: when it was last there, and what went wrong since."""
        self.last_seen = self.last_seen or last_seen
        if last_error is not None and self._state is ServerState.REGISTERED:
            self.last_error = last_error
            self._become(ServerState.UNREACHABLE)

    def try_now(self) -> None:
        """Somebody asks for this server explicitly: the breaker lets one try through."""
        self.breaker.half_open()

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        requester: Requester | None = None,
        subject: str | None = None,
        key: str | None = None,
        on_progress: Callable[[Params], None] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        log_level: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Message:
        """Send a request, connecting first if need be; an expired session is opened anew, once."""
        key = self.key_for(key)
        for attempt in (1, 2):
            slot = await self._connection_for(key, capabilities)
            if log_level is not None:
                await self._heed_level(slot.connection, log_level)
            try:
                return await self._send(
                    slot,
                    requester or NoRequester(),
                    subject or method,
                    method,
                    params,
                    on_progress=on_progress,
                    capabilities=capabilities,
                    log_level=log_level,
                    input_schema=input_schema,
                )
            except SessionExpired:
                # The server has not acted on it: asking again in a new session is safe.
                await self._release(key, slot)
                if attempt == 2:
                    raise
            except Unreachable as exc:
                if exc.refused:
                    slot.connection.peer.close_with(str(exc))
                raise
        raise AssertionError("unreachable")

    def start_call(self, key: str | None, call: RawCall, asked: RawRequest, log_level: str | None) -> bool:
        """Send a plain call, if a connection is open for it; false where it has to take the full path."""
        slot = self._connections.get(self.key_for(key))
        if slot is None or slot.connection.peer.lost.done() or self._must_be_told(slot.connection, log_level):
            return False
        if not slot.connection.start(call, asked, self.spec.timeout):
            return False
        slot.active += 1
        started = self._loop.time()

        def on_end() -> None:
            slot.active -= 1
            slot.last_used = self._loop.time()
            self.latency = slot.last_used - started
            self.last_seen = time.time()
            if call.is_answered:
                self.breaker.record_answer()

        call.on_end(on_end)
        return True

    async def resume_call(self, call: RawCall, requester: Requester) -> Message:
        """Go on with a call that was begun as a plain one."""
        try:
            return await call.resume_as(requester)
        except TimedOut as exc:
            self._note_timeout(exc, call.peer, call.began)
            raise self._redact_failure(exc) from None
        except ToolFailure as exc:
            raise self._redact_failure(exc) from None

    async def connect(self, key: str | None, capabilities: Mapping[str, Any] | None = None) -> ServerHello:
        """What the server says of itself, connecting first if need be."""
        return (await self._connection_for(self.key_for(key), capabilities)).connection.hello

    async def notify(self, key: str | None, method: str, params: Params | None) -> None:
        """Tell the server something, if a connection is open; nothing is opened for it."""
        slot = self._connections.get(self.key_for(key))
        if slot is not None and not slot.connection.peer.lost.done():
            await slot.connection.notify(method, params)

    async def list_kind(self, method: str, field: str) -> Listing | None:
        """Everything of another kind than tools that the server offers; `None` if it has nothing of that kind."""
        slot = await self._connection_for(None, for_call=False)
        if not slot.connection.offers(method.partition("/")[0]):
            return None
        return await self._list(slot, method, field)

    async def want_level(self, level: str) -> None:
        """Have the server log from this level on, now and whenever it is connected again."""
        self._level = level
        slot = list(self._connections.values())
        await asyncio.gather(*(each.connection.want_level(level, self.spec.timeout) for each in slot))

    async def subscribe(self, key: str | None, uri: str, capabilities: Mapping[str, Any] | None = None) -> None:
        """Hear of changes of a resource until `unsubscribe`, also after the server had to be connected again."""
        key = self.key_for(key)
        slot = await self._connection_for(key, capabilities)
        wanted = self._subscribed.setdefault(key, {})
        wanted[uri] = None
        try:
            await slot.connection.subscribe(uri, list(wanted), self.spec.timeout)
        except BaseException:
            wanted.pop(uri, None)
            raise

    async def unsubscribe(self, key: str | None, uri: str) -> None:
        """Hear no more of it."""
        key = self.key_for(key)
        wanted = self._subscribed.get(key, {})
        if wanted.pop(uri, uri) is None and (slot := self._connections.get(key)) is not None:
            await slot.connection.unsubscribe(uri, list(wanted), self.spec.timeout)

    async def list_tools(self, *, for_call: bool = False) -> Listing:
        """Every tool the server offers now; `for_call`: a call waits for it, so a failure counts for the breaker."""
        slot = await self._connection_for(None, for_call=for_call)
        if not slot.connection.offers("tools") and any(map(slot.connection.offers, ("prompts", "resources"))):
            # It has something else to offer, and said so.
            return Listing([])
        return await self._list(slot, "tools/list", "tools")

    async def _list(self, slot: _ConnectionSlot, method: str, field: str) -> Listing:
        slot.active += 1
        try:
            listing = await slot.connection.list_all(method, field)
        except RpcError as exc:
            failure = exc.refusal or unavailable(f"{self.name} answered {method} with error {exc.code}: {exc}")
            failure = self._redact_failure(failure)
            self.last_error = failure.error.message
            raise failure from None
        except ToolFailure as exc:
            failure = self._redact_failure(exc)
            self.last_error = failure.error.message
            raise failure from None
        finally:
            # A look at the list is no use: it must not keep a server from idling.
            slot.active -= 1
        self.last_seen, self.latency, self.last_error = time.time(), listing.latency, None
        return listing

    async def leave_session(self, key: str) -> None:
        """A client session ended: its own connection goes with it."""
        self._subscribed.pop(key, None)
        if opening := self._opening.pop(key, None):
            opening.cancel()
        if slot := self._connections.get(key):
            await self._release(key, slot)

    async def replace_spec(self, spec: ServerSpec) -> None:
        """Take over a changed config; only a new address needs a new connection."""
        before, after = ((_address(each), each.enabled, each.problem) for each in (self.spec, spec))
        same = before == after
        if before[0] != after[0]:
            # Another address is another server, and nobody has seen that one.
            self.hello = self.last_seen = self.latency = None
        self.spec = spec
        if same:
            return
        # First the state, then the clean-up: nobody may find a server that is neither on nor off.
        self.breaker.record_success()
        self.last_error = spec.problem
        self._become(_first_state(spec))
        await self._drop_all()
        for key in [key for key, wanted in self._subscribed.items() if wanted]:
            self._reopen(key)

    async def close(self) -> None:
        """Leave nothing behind."""
        self._closed = True
        await self._drop_all()

    def failure(self) -> ToolFailure | None:
        """Why a call cannot even be tried now, or `None`."""
        if self._closed:
            return unavailable(f"server {self.name} was stopped")
        if self._state is ServerState.DISABLED:
            return unavailable(
                f"server {self.name} is disabled: `pegboard enable {self.name}` brings it back", retryable=False
            )
        if self._state is ServerState.INVALID:
            return invalid(self.spec.problem or "its config cannot be used")
        if self.breaker.is_open:
            wait = self.breaker.remaining()
            why = self.breaker.reason or self.last_error
            words = f"server {self.name} is unavailable ({why}); next try in {wait:.0f} s"
            pause = self.breaker.retry_after()
            return ToolFailure(ToolErrorCode.UNAVAILABLE, words, retryable=True, retry_after=pause)
        return None

    def _must_be_told(self, connection: Connection, level: str | None) -> bool:
        """Whether a server says less than a request wants to hear; a modern one is told with each request."""
        if level is None or connection.hello.era == "modern":
            return False
        return connection.log_level is None or severity(level) < severity(connection.log_level)

    async def _heed_level(self, connection: Connection, level: str) -> None:
        """A request wants log lines from this level on; a server that says less has to be told."""
        if connection.log_level is None or severity(level) < severity(connection.log_level):
            # One that does not answer this must not keep calls waiting.
            await asyncio.wait({self._spawn(connection.want_level(level, self.spec.timeout))}, timeout=_LEVEL_PATIENCE)

    async def _connection_for(
        self, key: str | None, capabilities: Mapping[str, Any] | None = None, *, for_call: bool = True
    ) -> _ConnectionSlot:
        """The connection for this key: the one that is there, or a new one, however many ask for it."""
        slot = self._connections.get(key)
        if slot is not None and not slot.connection.peer.lost.done():
            return slot
        opening = self._opening.get(key)
        if opening is None:
            if failure := self.failure():
                raise failure
            if self.breaker.is_tripped and self._opening:
                # Half open: one trial at a time, whoever's connection it is.
                raise unavailable(f"server {self.name} is unavailable ({self.breaker.reason}); it is being tried")
            if key is not None:
                self._check_room()
            opening = self._loop.create_task(self._open(key, capabilities, for_call=for_call))
            self._opening[key] = opening
            opening.add_done_callback(lambda task: self._finish_opening(key, task))
        # One caller who gives up must not take the connection from the others.
        await asyncio.wait({opening})
        if opening.cancelled():
            raise unavailable(f"server {self.name} was stopped")
        opening.result()
        slot = self._connections.get(key)
        if slot is None:
            raise unavailable(f"server {self.name} went away as soon as it was connected: {self.last_error}")
        return slot

    def _check_room(self) -> None:
        """Each session has a process of its own here, and whoever opens sessions must not fill the machine."""
        if len((self._connections.keys() | self._opening.keys()) - {None}) >= MOST_SESSIONS:
            raise unavailable(
                f'server {self.name} has "instance": "session", and {MOST_SESSIONS} sessions use it already, which is'
                " the limit; try again when one of them has ended"
            )

    def _finish_opening(self, key: str | None, task: asyncio.Task[None]) -> None:
        if self._opening.get(key) is task:
            del self._opening[key]
        if not task.cancelled():
            task.exception()

    async def _open(self, key: str | None, capabilities: Mapping[str, Any] | None, *, for_call: bool) -> None:
        before = self._state
        if before is not ServerState.LOST:
            self._become(ServerState.CONNECTING)
        try:
            connection = await self._within_limit(key, capabilities)
        except asyncio.CancelledError:
            if self._state is ServerState.CONNECTING:
                self._become(ServerState.CONNECTED if self._connections else before)
            raise
        except Exception as exc:
            raise self._could_not_open(exc, for_call=for_call) from None
        if not self._is_wanted():
            await connection.close()
            raise unavailable(f"server {self.name} was stopped")
        now = self._loop.time()
        self._connections[key] = slot = _ConnectionSlot(connection, opened=now, last_used=now)
        self.hello, self.era = connection.hello, connection.hello.era
        self.last_seen, self.last_error = time.time(), None
        self.breaker.record_success()
        if self._supervisor is not None:
            # It sleeps until a time that no longer counts, and would sleep through the next loss.
            self._supervisor.cancel()
            self._supervisor = None
        connection.peer.lost.add_done_callback(lambda _: self._on_lost(key, slot))
        self._watch_idle(key, slot)
        self._become(ServerState.CONNECTED)
        logger().info("server.connected", server=self.name, era=self.era, version=connection.hello.version)
        if before is ServerState.LOST:
            self._listener.on_list_changed(self)
        await self._take_up(key, connection)

    async def _take_up(self, key: str | None, connection: Connection) -> None:
        """Tell a new connection what the one before had been told."""
        if self._level is not None:
            await connection.want_level(self._level, self.spec.timeout)
        wanted = list(self._subscribed.get(key, {}))
        for uri in wanted if connection.hello.era == "handshake" else wanted[:1]:
            try:
                await connection.subscribe(uri, wanted, self.spec.timeout)
            except (RpcError, ToolFailure) as exc:
                logger().info("server.subscription.lost", server=self.name, reason=self._redact(str(exc))[:200])

    def _could_not_open(self, exc: Exception, *, for_call: bool) -> ToolFailure:
        if isinstance(exc, RpcError) and exc.refusal is not None:
            exc = exc.refusal
        # Whoever shows it says whose it is.
        reason = self._redact(str(exc) or type(exc).__name__).removeprefix(self.name).lstrip(": ")
        self.last_error = reason
        logger().warning("server.connect.failed", server=self.name, reason=reason[:300])
        if isinstance(exc, (RpcError, ConnectionLost)):
            # It may have changed its era since it was last seen: next time it is asked.
            self.era = None
        if not self._is_wanted():
            return unavailable(f"server {self.name} was stopped")
        if isinstance(exc, NeedsAuth):
            self._become(ServerState.NEEDS_AUTH)
            return exc
        error = error_of(unavailable(reason) if isinstance(exc, RpcError) else exc)
        if error.retry_after:
            self.breaker.hold_off(error.retry_after)
        # A failed discovery never takes tools away: only calls that fail in a row open the breaker.
        if for_call:
            self.breaker.record_failure(reason)
        elif self.breaker.is_tripped:
            self.breaker.reopen(reason)
        if self._connections:
            self._become(ServerState.CONNECTED)
        elif self._state is ServerState.LOST or (for_call and self.breaker.is_tripped and self.last_seen is not None):
            self._become(ServerState.LOST)
            self._supervise()
        else:
            self._become(ServerState.UNREACHABLE)
        return ToolFailure(
            error.code,
            f"server {self.name} could not be connected: {reason}",
            retryable=error.retryable,
            retry_after=error.retry_after,
        )

    async def _within_limit(self, key: str | None, capabilities: Mapping[str, Any] | None) -> Connection:
        # A session's own process is told what its client can do; a shared one, what any client might.
        announced = EVERYTHING_ASKABLE if key is None else capabilities or {}
        is_process = self.spec.transport == "stdio"
        limit = self.spec.start_timeout if is_process else self.spec.connect_timeout
        events = _ConnectionEvents(self, self._listener, key)
        try:
            async with Limit(limit):
                return await self._reach(events, announced)
        except TimeoutError:
            setting = "startTimeout" if is_process else "connectTimeout"
            reason = f'timed out: no answer within {limit:g} s (its "{setting}")'
            raise unavailable("; ".join([reason, *events.hints()])) from None

    async def _reach(self, events: _ConnectionEvents, announced: Mapping[str, Any]) -> Connection:
        """One try; two where the first shows that this server must be spoken to differently."""
        try:
            return await self._connect(self.spec, self.era, events, announced)
        except ConnectionLost:
            # Some older servers end at a question they do not know, the one for the era included.
            if self.era is not None or self.spec.transport != "stdio":
                raise
            return await self._connect(self.spec, "handshake", events, announced)
        except WrongStatus as exc:
            if (
                not self.spec.transport_guessed
                or self.spec.transport != "http"
                or exc.status not in {400, 404, 405, 406}
            ):
                raise
            return await self._connect(replace(self.spec, transport="sse"), "handshake", events, announced)

    async def _connect(
        self, spec: ServerSpec, era: Era | None, events: _ConnectionEvents, announced: Mapping[str, Any]
    ) -> Connection:
        transport = _make_transport(spec, self._reaper)
        if isinstance(transport, StdioTransport):
            events.hints = transport.hints
        peer = JsonRpcPeer(transport, label=self.name, redactor=spec.redactor)
        try:
            await transport.start(peer)
            hello = await negotiate(peer, era, duplex=spec.transport != "http", capabilities=announced)
            connection = Connection(peer, hello, events)
            await connection.begin()
        except BaseException:
            await asyncio.shield(self._spawn(peer.close()))
            raise
        return connection

    async def _send(
        self,
        slot: _ConnectionSlot,
        requester: Requester,
        subject: str,
        method: str,
        params: Params | None,
        **options: Any,
    ) -> Message:
        started = self._loop.time()
        slot.active += 1
        try:
            answer = await slot.connection.request_for(
                requester, subject, method, params, timeout=self.spec.timeout, **options
            )
        except TimedOut as exc:
            self._note_timeout(exc, slot.connection.peer, started)
            raise self._redact_failure(exc) from None
        except ToolFailure as exc:
            raise self._redact_failure(exc) from None
        except RpcError:
            self.breaker.record_answer()
            raise
        finally:
            slot.active -= 1
            slot.last_used = self._loop.time()
        self.latency = self._loop.time() - started
        self.last_seen = time.time()
        self.breaker.record_answer()
        return answer

    def _note_timeout(self, failure: TimedOut, peer: JsonRpcPeer, since: float) -> None:
        """A server that hangs must not cost every caller the whole limit; one that shows that it works is none."""
        if not failure.silent or not peer.is_silent:
            return
        if self.breaker.record_timeout("calls are not answered in time", since):
            peer.close_with(f"{self.breaker.timeouts} calls in a row had no answer in time")

    def _watch_idle(self, key: str | None, slot: _ConnectionSlot) -> None:
        if self.spec.idle_timeout <= 0:
            return
        due = slot.last_used + self.spec.idle_timeout
        slot.timer = self._loop.call_at(due, self._idle_due, key, slot)

    def _idle_due(self, key: str | None, slot: _ConnectionSlot) -> None:
        if self._connections.get(key) is not slot:
            return
        # Whoever subscribed to something wants to hear of it: that is a use.
        active = slot.active or bool(self._subscribed.get(key))
        if active or self._loop.time() < slot.last_used + self.spec.idle_timeout:
            if active:
                slot.last_used = self._loop.time()
            self._watch_idle(key, slot)
            return
        logger().info("server.idle", server=self.name)
        self._spawn(self._release(key, slot))

    async def _release(self, key: str | None, slot: _ConnectionSlot) -> None:
        """Close a connection on purpose; that is no loss."""
        if self._connections.get(key) is slot:
            del self._connections[key]
            if not self._connections and self._state is ServerState.CONNECTED:
                self._become(ServerState.IDLE)
        if slot.timer is not None:
            slot.timer.cancel()
        await slot.connection.close()

    def _on_lost(self, key: str | None, slot: _ConnectionSlot) -> None:
        if self._connections.get(key) is not slot:
            return
        del self._connections[key]
        reason = self._redact(slot.connection.peer.lost.result())
        self._spawn(self._release(key, slot))
        if not self._is_wanted():
            return
        self.last_error = reason
        logger().warning("server.lost", server=self.name, reason=reason[:300])
        if key is not None:
            # A session's own process: the next call of that session starts another.
            if not self._connections:
                self._become(ServerState.IDLE)
            if self._subscribed.get(key):
                self._reopen(key)
            return
        lived = self._loop.time() - slot.opened
        self._flaps = 0 if lived >= _STEADY else self._flaps + 1
        self.breaker.record_loss(reason, self._flaps)
        self._become(ServerState.LOST)
        self._supervise()

    def _reopen(self, key: str | None) -> None:
        """Somebody wants to hear of what happens there, so it is not left until the next call."""
        if self._is_wanted():
            self._spawn(self._open_again(key))

    async def _open_again(self, key: str | None) -> None:
        try:
            await self._connection_for(key)
        except ToolFailure as exc:
            logger().info("server.subscription.waits", server=self.name, reason=self._redact(str(exc))[:200])

    def _supervise(self) -> None:
        if self._supervisor is None or self._supervisor.done():
            self._supervisor = self._spawn(self._bring_back())

    async def _bring_back(self) -> None:
        while self._state is ServerState.LOST and not self._closed:
            await asyncio.sleep(max(self.breaker.remaining(), _SHORTEST_PAUSE))
            if self._state is not ServerState.LOST:
                return
            try:
                await self._connection_for(None)
            except ToolFailure as exc:
                logger().debug("server.still.lost", server=self.name, reason=self._redact(str(exc))[:200])

    async def _drop_all(self) -> None:
        tasks: list[asyncio.Task[Any]] = [*self._opening.values(), *([self._supervisor] if self._supervisor else [])]
        for task in tasks:
            task.cancel()
        slot, self._connections = dict(self._connections), {}
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._release(key, each) for key, each in slot.items()))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_wanted(self) -> bool:
        """Whether this server is still to be used; it may have been stopped while something was under way."""
        return not self._closed and self.spec.enabled and not self.spec.problem

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _become(self, state: ServerState) -> None:
        if state is not self._state:
            self._state = state
            self._listener.on_state_changed(self)

    def _redact(self, text: str) -> str:
        return self.spec.redactor.clean(text, _LONGEST_REASON)

    def _redact_failure(self, failure: ToolFailure) -> ToolFailure:
        """The same failure without anything secret in its words."""
        words = self._redact(failure.error.message)
        if words != failure.error.message:
            failure.args = (words,)
            failure.error = replace(failure.error, message=words)
        return failure


def _first_state(spec: ServerSpec) -> ServerState:
    if not spec.enabled:
        return ServerState.DISABLED
    return ServerState.INVALID if spec.problem else ServerState.REGISTERED


def _address(spec: ServerSpec) -> tuple[object, ...]:
    return (
        spec.transport,
        spec.command,
        spec.args,
        dict(spec.env),
        spec.cwd,
        spec.url,
        dict(spec.headers),
        spec.instance,
    )


def _make_transport(spec: ServerSpec, reaper: OrphanReaper) -> StdioTransport | StreamableHttpTransport | SseTransport:
    if spec.transport == "stdio":
        return StdioTransport(spec, reaper)
    return StreamableHttpTransport(spec) if spec.transport == "http" else SseTransport(spec)
