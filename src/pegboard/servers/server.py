"""A server: connected when needed, kept while used, stopped when idle, brought back when lost."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Unpack

from pegboard.config import ServerSpec
from pegboard.log import Redactor, logger
from pegboard.protocol.eras import Era
from pegboard.result import ToolFailure, error_of, invalid, unavailable
from pegboard.servers.authorization import Authorize
from pegboard.servers.breaker import Breaker
from pegboard.servers.connection import Connection, Listing, RequestOptions
from pegboard.servers.connection_key import belongs_to, is_per_user, is_shared, key_of, principal_in, session_in
from pegboard.servers.connections import ServerConnections
from pegboard.servers.connector import EVERYTHING_ASKABLE, Connector
from pegboard.servers.credentials import ServerCredentials
from pegboard.servers.errors import LONGEST_REASON, ConnectionLost, RpcError, TimedOut, redact
from pegboard.servers.handshake import ServerHello
from pegboard.servers.http.client import SessionExpired, Unreachable
from pegboard.servers.http.refusal import AccessRefused, NeedsAuth, is_refusal, wants_sign_in
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.listener import ServerListener
from pegboard.servers.message import Message, Params
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.raw_call import RawCall, RawRequest
from pegboard.servers.requester import NoRequester, Requester
from pegboard.servers.server_log import ServerLog
from pegboard.servers.server_state import ServerState, first_error
from pegboard.servers.supervisor import Supervisor
from pegboard.servers.transports.by_name import TRANSPORTS
from pegboard.task_set import TaskSet

LONGEST_LOGGED = 700
# Behind it a reason repeats what is in the server's log already.
_SAID = "; it said: "

# What makes another server of it, if it changes.
_address = attrgetter("transport", "command", "args", "env", "cwd", "url", "headers", "instance", "oauth")


class Server:
    """One configured server and all connections to it."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        reaper: OrphanReaper,
        listener: ServerListener,
        era: Era | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        self.spec = spec
        # Whether one connection serves everybody.
        self._is_shared = is_shared(spec)
        self._credentials = ServerCredentials(authorize)
        self.era: Era | None = era
        self.hello: ServerHello | None = None
        self.last_seen: float | None = None
        self.latency: float | None = None
        self.log = ServerLog(lambda: self.redactor)
        self.last_error = first_error(spec)
        # Why it could not be connected, as it was last logged.
        self._logged_reason: str | None = None
        self._reaper, self._listener = reaper, listener
        self._loop = asyncio.get_running_loop()
        self.breaker = Breaker(self._loop.time)
        self._connections = ServerConnections(spec.name, lambda: self.spec.idle_timeout, self._close_idle)
        self._tasks = TaskSet()
        self._supervisor = Supervisor(spec.name, self._tasks, self.breaker, self._connection_for, self._redact)
        # `is_recalled`: what is known of it is of an earlier run.
        self._closed, self.is_recalled, self._state = False, False, ServerState.first(spec)

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
    def is_process(self) -> bool:
        """Whether to connect starts a process on this machine."""
        return TRANSPORTS[self.spec.transport].is_process

    @property
    def next_try_in(self) -> float | None:
        """Seconds until a lost server is tried again, or until calls may try one that cannot be reached."""
        if self._state is ServerState.LOST or (self._state is ServerState.UNREACHABLE and self.breaker.is_open):
            return self.breaker.remaining()
        return None

    @property
    def redactor(self) -> Redactor:
        """Whatever is said about this server goes through it first."""
        return self._credentials.add_to(self.spec.redactor)

    def key_for(self, session: str | None, principal_id: str) -> str | None:
        """Whose connection a request of this session and this principal takes; `None`: the shared one."""
        return None if self._is_shared else key_of(self.spec, session, principal_id)

    def recall(self, last_seen: float | None, last_error: str | None) -> None:
        """Take over what earlier runs knew: when it was last there, and what went wrong since."""
        self.last_seen = self.last_seen or last_seen
        if last_error is not None and self._state is ServerState.REGISTERED:
            self.last_error, self.is_recalled = last_error.removeprefix(f"{self.name} "), True
            self._become(ServerState.NEEDS_AUTH if is_refusal(last_error, self.name) else ServerState.UNREACHABLE)

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        requester: Requester | None = None,
        subject: str | None = None,
        session: str | None = None,
        **options: Unpack[RequestOptions],
    ) -> Message:
        """Send a request, connecting first if need be; an expired session is opened anew, once."""
        requester, subject = requester or NoRequester(), subject or method
        key = self.key_for(session, requester.principal_id)
        level = options.get("log_level")
        for attempt in (1, 2):
            connection = await self._connection_for(key, options.get("capabilities"))
            if level is not None:
                await connection.heed_level(level, self.spec.timeout)
            started = self._loop.time()
            try:
                answer = await connection.request_for(requester, subject, method, params, self.spec.timeout, **options)
            except RpcError as exc:
                self.breaker.record_answer()
                self._credentials.clean_error(exc)
                raise
            except ToolFailure as exc:
                self._take_failure(exc, connection.peer, started)
                if isinstance(exc, Unreachable) and exc.refused:
                    connection.peer.close_with(str(exc))
                if not isinstance(exc, SessionExpired):
                    raise
                # The server has not acted on it: asking again in a new session is safe.
                await self._release(connection)
                if attempt == 2:
                    raise
            else:
                self.latency, self.last_seen = self._loop.time() - started, time.time()
                self.breaker.record_answer()
                return answer
        raise AssertionError("unreachable")

    def start_call(self, session: str | None, call: RawCall, asked: RawRequest, log_level: str | None) -> bool:
        """Send a plain call, if a connection is open for it; false where it has to take the full path."""
        key = None if self._is_shared else key_of(self.spec, session, call.principal_id)
        connection = self._connections.get(key)
        if connection is None or connection.peer.lost.done():
            return False
        if log_level is not None and connection.is_quieter_than(log_level):
            return False
        if not connection.start(call, asked, self.spec.timeout):
            return False
        connection.active += 1
        started = self._loop.time()

        def on_end() -> None:
            connection.active -= 1
            connection.last_used = self._loop.time()
            self.latency = connection.last_used - started
            self.last_seen = time.time()
            if call.is_answered:
                self.breaker.record_answer()

        call.on_end(on_end)
        return True

    async def resume_call(self, call: RawCall, requester: Requester) -> Message:
        """Go on with a call that was begun as a plain one; a refusal says whether there are other credentials now."""
        try:
            return await call.resume_as(requester)
        except RpcError as exc:
            self._credentials.clean_error(exc)
            raise
        except ToolFailure as exc:
            self._take_failure(exc, call.peer, call.began)
            if isinstance(exc, AccessRefused):
                await call.peer.transport.renew(exc)
            raise

    def _take_failure(self, failure: ToolFailure, peer: JsonRpcPeer, since: float) -> None:
        redact(failure, self.redactor)
        # A server that hangs must not cost every caller the whole limit; one that shows that it works is none.
        is_hanging = isinstance(failure, TimedOut) and failure.silent and peer.is_silent
        if is_hanging and self.breaker.record_timeout("calls are not answered in time", since):
            peer.close_with(f"{self.breaker.timeouts} calls in a row had no answer in time")

    async def connect(self, key: str | None, capabilities: Mapping[str, Any] | None = None) -> ServerHello:
        """What the server says of itself, connecting first if need be."""
        return (await self._connection_for(key, capabilities)).hello

    async def notify(self, key: str | None, method: str, params: Params | None) -> None:
        """Tell the server something, if a connection is open; nothing is opened for it."""
        if (connection := self._connections.get_open(key)) is not None:
            await connection.notify(method, params)

    async def list_kind(self, method: str, field: str, *, key: str | None = None) -> Listing | None:
        """Everything of another kind than tools that the server offers, to all or to whose connection this is the key
        of; `None` if there is nothing of it."""
        connection = await self._connection_for(key, for_call=False, is_discovery=True)
        is_offered = connection.offers(method.partition("/")[0]) and (key is not None or not is_per_user(self.spec))
        return await self._list(connection, method, field) if is_offered else None

    async def want_level(self, level: str) -> None:
        """Have the server log from this level on, now and whenever it is connected again."""
        await self._connections.want_level(level, self.spec.timeout)

    async def subscribe(self, key: str | None, uri: str, capabilities: Mapping[str, Any] | None = None) -> None:
        """Hear of changes of a resource until `unsubscribe`, also after the server had to be connected again."""
        connection = await self._connection_for(key, capabilities)
        await self._connections.subscribe(connection, uri, self.spec.timeout)

    async def unsubscribe(self, key: str | None, uri: str) -> None:
        """Hear no more of it."""
        await self._connections.unsubscribe(key, uri, self.spec.timeout)

    async def list_tools(self, *, for_call: bool = False, key: str | None = None) -> Listing:
        """Every tool the server offers now; `for_call`: a call waits for it, so a failure counts for the breaker."""
        connection = await self._connection_for(key, for_call=for_call, is_discovery=True)
        return Listing([]) if connection.has_no_tools else await self._list(connection, "tools/list", "tools")

    async def _list(self, connection: Connection, method: str, field: str) -> Listing:
        try:
            listing = await connection.list_all(method, field)
        except ToolFailure as exc:
            redact(exc, self.redactor)
            self.last_error = exc.error.message
            raise
        self.last_seen, self.latency, self.last_error = time.time(), listing.latency, None
        return listing

    async def leave_session(self, session: str) -> None:
        """A client session ended: its own connection goes with it."""
        for connection in self._connections.leave(lambda key: session_in(key) == session):
            await self._release(connection)

    async def on_signed_in(self, principal_id: str = "") -> None:
        """A principal signed in, or somebody for the gateway (empty): it is connected with the new credentials at once,
        and discovered; what is under way goes on."""
        for connection in [each for key, each in self._connections.items() if belongs_to(self.spec, key, principal_id)]:
            self._connections.retire(connection, self.spec.timeout)
        # One that is being opened may have been refused already.
        await self._connections.settle(None)
        if self._is_wanted():
            subscribed = self._connections.list_subscribed()
            for key in {None, *(key for key in subscribed if belongs_to(self.spec, key, principal_id))}:
                self._supervisor.reopen(key)
            self._listener.on_list_changed(self, None)

    async def on_signed_out(self, principal_id: str = "") -> None:
        """The credentials of a principal, or of the gateway (empty), are gone, and so is what they opened."""
        # Whoever's they were, lists may have been had with them.
        gone = self._connections.leave(
            lambda key: key is None or belongs_to(self.spec, key, principal_id), forget=False
        )
        for connection in gone:
            self._connections.remove(connection)
        if self._is_wanted():
            self._note_need(wants_sign_in(self.name).removeprefix(f"{self.name} "), None, ServerState.IDLE)
        await asyncio.gather(*(connection.close() for connection in gone))

    async def replace_spec(self, spec: ServerSpec) -> None:
        """Take over a changed config; only a new address needs a new connection."""
        before, after = ((_address(each), each.enabled, each.problem) for each in (self.spec, spec))
        if before[0] != after[0]:
            # Another address is another server, and nobody has seen that one.
            self.hello = self.last_seen = self.latency = None
        self.spec, self._is_shared = spec, is_shared(spec)
        if before == after:
            return
        await self.restart()

    async def restart(self) -> None:
        """End every connection, and forget what went wrong; the next request opens a new one."""
        # First the state, then the clean-up: nobody may find a server that is neither on nor off.
        self.breaker.record_success()
        self.last_error = first_error(self.spec)
        self._become(ServerState.first(self.spec))
        await self._drop_all()
        if self._is_wanted():
            for key in self._connections.list_subscribed():
                self._supervisor.reopen(key)

    async def close(self) -> None:
        """Leave nothing behind."""
        self._closed = True
        await self._drop_all()

    def failure(self) -> ToolFailure | None:
        """Why a call cannot even be tried now, or `None`."""
        if self._closed:
            return unavailable(f"server {self.name} was stopped")
        if self._state is ServerState.DISABLED:
            return unavailable(f"server {self.name} is disabled", retryable=False)
        if self._state is ServerState.INVALID:
            return invalid(self.spec.problem or "its config cannot be used")
        return self.breaker.refusal(f"server {self.name}", self.last_error) if self.breaker.is_open else None

    async def _connection_for(
        self,
        key: str | None,
        capabilities: Mapping[str, Any] | None = None,
        *,
        for_call: bool = True,
        is_discovery: bool = False,
    ) -> Connection:
        """The connection for this key: the one that is there, or a new one, however many ask for it."""
        if (connection := self._connections.get_open(key)) is not None:
            return connection
        if key not in self._connections.opening:
            self._check_may_open(key)
            work = self._open(key, capabilities, for_call=for_call, is_discovery=is_discovery)
            self._connections.start(key, work)
        await self._connections.wait(key)
        connection = self._connections.get(key)
        if connection is None:
            raise unavailable(f"server {self.name} went away as soon as it was connected: {self.last_error}")
        return connection

    def _check_may_open(self, key: str | None) -> None:
        if failure := self.failure():
            raise failure
        if self.breaker.is_tripped and self._connections.opening:
            # Half open: one trial at a time, whoever's connection it is.
            raise unavailable(f"server {self.name} is unavailable ({self.breaker.reason}); it is being tried")
        if (unused := self._connections.make_room(key)) is not None:
            self._tasks.spawn(self._release(unused))

    async def _open(
        self, key: str | None, capabilities: Mapping[str, Any] | None, *, for_call: bool, is_discovery: bool
    ) -> None:
        before, self.is_recalled = self._state, False
        if before is not ServerState.LOST:
            self._become(ServerState.CONNECTING)
        try:
            connection = await self._connect(key, capabilities)
        except asyncio.CancelledError:
            if self._state is ServerState.CONNECTING:
                self._become(ServerState.CONNECTED if self._connections else before)
            raise
        except Exception as exc:
            raise self._could_not_open(exc, key, before, for_call=for_call, is_discovery=is_discovery) from None
        if not self._is_wanted():
            await connection.close()
            raise unavailable(f"server {self.name} was stopped")
        self._connections.put(connection, self._on_lost)
        connection.peer.transport.on_needs_auth(partial(self._on_needs_auth, connection))
        self.hello, self.era = connection.hello, connection.hello.era
        self.last_seen, self.last_error, self._logged_reason = time.time(), None, None
        self.breaker.record_success()
        self._supervisor.stop()
        self._become(ServerState.CONNECTED)
        self.log.note(f"connected, protocol {connection.hello.version}")
        logger().info("server.connected", server=self.name, era=self.era, version=connection.hello.version)
        if before is ServerState.LOST:
            self._listener.on_list_changed(self, key)
        await self._connections.brief(connection, self.spec.timeout)

    async def _connect(self, key: str | None, capabilities: Mapping[str, Any] | None) -> Connection:
        # A session's own process is told what its client can do; a shared one, what any client might.
        announced = EVERYTHING_ASKABLE if session_in(key) is None else capabilities or {}
        make = partial(Connection, server=self, key=key, listener=self._listener)
        # What this takes is not the server's time.
        sign = await self._credentials.signer(self.spec, key)
        return await Connector(self.spec, self._reaper, self._tasks, announced, self.log, make, sign).connect(self.era)

    def _on_needs_auth(self, connection: Connection, failure: NeedsAuth) -> None:
        """A live connection is of no use any more before somebody has signed in; what was sent before goes on."""
        if self._connections.retire(connection, self.spec.timeout) and self._is_wanted():
            reason = self._reason(failure)
            self.log.note(reason)
            logger().warning("server.needs_sign_in", server=self.name, reason=reason[:LONGEST_LOGGED])
            self._note_need(reason, connection.key, ServerState.IDLE)

    def _note_need(self, reason: str, key: str | None, before: ServerState) -> None:
        """Nobody is signed in, or the one whose connection it is; then the server is there for others."""
        is_others = is_per_user(self.spec) and (bool(self._connections) or principal_in(key) is not None)
        if is_others and self._connections:
            self._become(ServerState.CONNECTED)
        elif is_others and before in {ServerState.IDLE, ServerState.CONNECTED}:
            self._become(ServerState.IDLE)
        else:
            self.last_error = reason
            self._become(ServerState.NEEDS_AUTH)

    def _reason(self, exc: Exception) -> str:  # Whoever shows it says whose it is.
        return re.sub(rf"\A{self.name}[: ]\s*", "", self._redact(str(exc) or type(exc).__name__))

    def _could_not_open(
        self, exc: Exception, key: str | None, before: ServerState, *, for_call: bool, is_discovery: bool
    ) -> ToolFailure:
        if isinstance(exc, RpcError) and exc.refusal is not None:
            exc = exc.refusal
        reason = self._reason(exc)
        # A discovery tells of its failure itself; the same reason again is no news.
        is_news = not is_discovery and reason != self._logged_reason
        self._logged_reason = reason
        log = logger().warning if is_news else logger().debug
        self.log.note(f"could not be connected: {reason.partition(_SAID)[0]}")
        log("server.connect.failed", server=self.name, reason=reason[:LONGEST_LOGGED])
        if isinstance(exc, (RpcError, ConnectionLost)):
            # It may have changed its era since it was last seen: next time it is asked.
            self.era = None
        if not self._is_wanted():
            return unavailable(f"server {self.name} was stopped")
        if isinstance(exc, AccessRefused):
            self._note_need(reason, key, before)
            redact(exc, self.redactor)
            return exc
        self.last_error = reason
        error = error_of(unavailable(reason) if isinstance(exc, RpcError) else exc)
        if error.retry_after:
            self.breaker.hold_off(error.retry_after)
        self.breaker.record_failure(reason, for_call=for_call)
        if self._connections:
            self._become(ServerState.CONNECTED)
        elif self._state is ServerState.LOST or (for_call and self.breaker.is_tripped and self.last_seen is not None):
            self._become(ServerState.LOST)
            self._supervisor.start(self._is_lost)
        else:
            self._become(ServerState.UNREACHABLE)
        return ToolFailure(
            error.code,
            f"server {self.name} could not be connected: {reason}",
            retryable=error.retryable,
            retry_after=error.retry_after,
        )

    def _close_idle(self, connection: Connection) -> None:
        self.log.note("stopped: nobody used it")
        logger().info("server.idle", server=self.name)
        self._tasks.spawn(self._release(connection))

    async def _release(self, connection: Connection) -> None:
        """Close a connection on purpose; that is no loss."""
        if self._connections.remove(connection) and not self._connections and self._state is ServerState.CONNECTED:
            self._become(ServerState.IDLE)
        await connection.close()

    def _on_lost(self, connection: Connection) -> None:
        if not self._connections.remove(connection):
            return
        reason = self._redact(connection.peer.lost.result())
        self._tasks.spawn(connection.close())
        if not self._is_wanted():
            return
        self.last_error = reason
        self.log.note(f"connection lost: {reason.partition(_SAID)[0]}")
        logger().warning("server.lost", server=self.name, reason=reason[:LONGEST_LOGGED])
        if connection.key is not None:
            # A session's own process: the next call of that session starts another.
            if not self._connections:
                self._become(ServerState.IDLE)
            if self._connections.is_subscribed(connection.key):
                self._supervisor.reopen(connection.key)
            return
        self.breaker.record_loss(reason, self._loop.time() - connection.opened)
        self._become(ServerState.LOST)
        self._supervisor.start(self._is_lost)

    def _is_lost(self) -> bool:
        return self._state is ServerState.LOST and not self._closed

    async def _drop_all(self) -> None:
        self._supervisor.stop()
        await self._connections.close()
        await self._tasks.wait()

    def _is_wanted(self) -> bool:
        """Whether this server is still to be used; it may have been stopped while something was under way."""
        return not self._closed and self.spec.is_usable

    def _become(self, state: ServerState) -> None:
        if state is not self._state:
            self._state = state
            self._listener.on_state_changed(self)

    def _redact(self, text: str) -> str:
        return self.redactor.clean(text, LONGEST_REASON)
