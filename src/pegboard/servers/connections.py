"""The connections of a server by key: the shared one (`None`), or each client session's or principal's own.

A connection is opened once, however many ask for it (single flight), and closed when nobody has used it for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pegboard.log import logger
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.connection import Connection
from pegboard.servers.connection_key import session_in
from pegboard.servers.errors import RpcError
from pegboard.servers.limit import Limit
from pegboard.task_set import TaskSet

# So many client sessions, or principals, can have a connection of their own to one server.
MOST_SESSIONS = 64


class ServerConnections(dict[str | None, Connection]):
    """Those that are open, those that are being opened, and what each was told that its successor has to be told."""

    def __init__(self, server: str, idle_timeout: Callable[[], float], on_idle: Callable[[Connection], None]) -> None:
        super().__init__()
        self._server = server
        self._idle_timeout = idle_timeout
        self._on_idle = on_idle
        self._loop = asyncio.get_running_loop()
        # Those that are used no more, until what is under way on them is over.
        self._retired = TaskSet()
        self.opening: dict[str | None, asyncio.Task[None]] = {}
        self.level: str | None = None
        # What each connection is to be subscribed to, in the order it was asked for.
        self._subscribed: dict[str | None, dict[str, None]] = {}

    def get_open(self, key: str | None) -> Connection | None:
        """The connection for a key, if it is open."""
        connection = self.get(key)
        return connection if connection is not None and connection.is_open else None

    def put(self, connection: Connection, on_lost: Callable[[Connection], None]) -> None:
        """A connection is open from now on, until it is lost or removed."""
        self[connection.key] = connection
        connection.peer.lost.add_done_callback(lambda _: on_lost(connection))
        self._watch_idle(connection)

    def remove(self, connection: Connection) -> bool:
        """A connection is to be used no more; whether it was in use until now."""
        if self.get(connection.key) is not connection:
            return False
        del self[connection.key]
        return True

    def retire(self, connection: Connection, patience: float) -> bool:
        """A connection is to be used no more, and closed once what is under way on it is over; whether it was in use
        until now."""
        if not self.remove(connection):
            return False

        self._retired.spawn(_close_unused(connection, patience))
        return True

    def start(self, key: str | None, opening: Coroutine[Any, Any, None]) -> None:
        """Begin to open a connection for a key."""
        task = self.opening[key] = self._loop.create_task(opening)
        task.add_done_callback(lambda _: self._finish(key, task))

    async def wait(self, key: str | None) -> None:
        """Wait until the connection is there that is being opened; raises what came in between."""
        opening = self.opening[key]
        # One caller who gives up must not take the connection from the others.
        await asyncio.wait({opening})
        if opening.cancelled():
            raise unavailable(f"server {self._server} was stopped")
        opening.result()

    async def settle(self, key: str | None) -> None:
        """Wait until none is being opened for a key, whatever comes of it."""
        if (opening := self.opening.get(key)) is not None:
            await asyncio.wait({opening})

    def make_room(self, key: str | None) -> Connection | None:
        """Each session has a process of its own here, and whoever opens sessions must not fill the machine; of
        principals, the one who has not used it for longest has to make room. Gives the connection that does."""
        if key is None or len((self.keys() | self.opening.keys()) - {None}) < MOST_SESSIONS:
            return None
        if session_in(key) is None:
            unused = [each for each in self.values() if each.key is not None and self._is_unused(each)]
            if unused:
                return min(unused, key=lambda each: each.last_used)
            raise unavailable(
                f"server {self._server} is used by {MOST_SESSIONS} people at once, which is the limit; try again later"
            )
        raise unavailable(
            f'server {self._server} has "instance": "session", and {MOST_SESSIONS} sessions use it already, which'
            " is the limit; try again when one of them has ended"
        )

    def _is_unused(self, connection: Connection) -> bool:
        return not connection.active and not self.is_subscribed(connection.key)

    def leave(self, is_left: Callable[[str | None], bool], *, forget: bool = True) -> list[Connection]:
        """A client session has ended, or somebody has signed out; the connections that they leave. `forget`: also what
        they had subscribed to."""
        for key in [key for key in self._subscribed if forget and is_left(key)]:
            del self._subscribed[key]
        for key in [key for key in self.opening if is_left(key)]:
            self.opening.pop(key).cancel()
        return [connection for key, connection in self.items() if is_left(key)]

    async def close(self) -> None:
        """Close those that are open, and open none of the others."""
        opening, connections = list(self.opening.values()), list(self.values())
        for task in opening:
            task.cancel()
        self.clear()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.gather(self._retired.close(), *(connection.close() for connection in connections))

    async def want_level(self, level: str, timeout: float) -> None:
        """Have the server log from this level on, on every connection."""
        self.level = level
        await asyncio.gather(*(connection.want_level(level, timeout) for connection in list(self.values())))

    def is_subscribed(self, key: str | None) -> bool:
        """Whether somebody wants to hear of changes of resources there."""
        return bool(self._subscribed.get(key))

    def list_subscribed(self) -> list[str | None]:
        """The keys of which somebody wants to hear of changes."""
        return [key for key, wanted in self._subscribed.items() if wanted]

    async def subscribe(self, connection: Connection, uri: str, timeout: float) -> None:
        """Hear of changes of a resource until `unsubscribe`."""
        wanted = self._subscribed.setdefault(connection.key, {})
        wanted[uri] = None
        try:
            await connection.subscribe(uri, list(wanted), timeout)
        except BaseException:
            wanted.pop(uri, None)
            raise

    async def unsubscribe(self, key: str | None, uri: str, timeout: float) -> None:
        """Hear no more of it."""
        wanted = self._subscribed.get(key, {})
        if wanted.pop(uri, uri) is None and (connection := self.get(key)) is not None:
            await connection.unsubscribe(uri, list(wanted), timeout)

    async def brief(self, connection: Connection, timeout: float) -> None:
        """Tell a new connection what the one before had been told."""
        if self.level is not None:
            await connection.want_level(self.level, timeout)
        wanted, peer = list(self._subscribed.get(connection.key, {})), connection.peer
        # A modern server is told of all resources at once.
        for uri in wanted if connection.hello.era == "handshake" else wanted[:1]:
            try:
                await connection.subscribe(uri, wanted, timeout)
            except (RpcError, ToolFailure) as exc:
                logger().info("server.subscription.lost", server=self._server, reason=peer.excerpt(exc))

    def _finish(self, key: str | None, task: asyncio.Task[None]) -> None:
        if self.opening.get(key) is task:
            del self.opening[key]
        if not task.cancelled():
            task.exception()

    def _watch_idle(self, connection: Connection) -> None:
        limit = self._idle_timeout()
        if limit > 0:
            connection.idle_timer = self._loop.call_at(connection.last_used + limit, self._check_idle, connection)

    def _check_idle(self, connection: Connection) -> None:
        if self.get(connection.key) is not connection:
            return
        # Whoever subscribed to something wants to hear of it: that is a use.
        is_used = not self._is_unused(connection)
        if is_used:
            connection.last_used = self._loop.time()
        if is_used or self._loop.time() < connection.last_used + self._idle_timeout():
            self._watch_idle(connection)
        else:
            self._on_idle(connection)


async def _close_unused(connection: Connection, patience: float) -> None:
    try:
        async with Limit(patience):
            await connection.wait_unused()
    except TimeoutError:
        pass
    finally:
        await connection.close()
