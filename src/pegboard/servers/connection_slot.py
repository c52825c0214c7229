"""A connection slot: a connection in use for one key, with an account of how the server answers on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Unpack

from pegboard.servers.breaker import Breaker
from pegboard.servers.connection import Connection, Listing, RequestOptions
from pegboard.servers.errors import RpcError, TimedOut
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import Requester


@dataclass(slots=True, eq=False)
class ConnectionSlot:
    """A connection in use."""

    key: str | None
    connection: Connection
    breaker: Breaker
    opened: float
    last_used: float
    # How many requests are under way.
    active: int = 0
    timer: asyncio.TimerHandle | None = None

    @property
    def is_live(self) -> bool:
        """Whether requests can go over it."""
        return not self.connection.peer.lost.done()

    async def request(
        self,
        requester: Requester,
        subject: str,
        method: str,
        params: Params | None,
        timeout: float,
        **options: Unpack[RequestOptions],
    ) -> Message:
        """Send a request on a client's behalf."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        self.active += 1
        try:
            answer = await self.connection.request_for(requester, subject, method, params, timeout, **options)
        except TimedOut as exc:
            record_timeout(self.breaker, exc, self.connection.peer, started)
            raise
        except RpcError:
            self.breaker.record_answer()
            raise
        finally:
            self.active -= 1
            self.last_used = loop.time()
        self.breaker.record_answer()
        return answer

    async def list_all(self, method: str, field: str) -> Listing:
        """Everything of one kind that the server offers; a look at a list is no use that keeps it from idling."""
        self.active += 1
        try:
            return await self.connection.list_all(method, field)
        finally:
            self.active -= 1

    async def close(self) -> None:
        """End the connection."""
        if self.timer is not None:
            self.timer.cancel()
        await self.connection.close()


def record_timeout(breaker: Breaker, failure: TimedOut, peer: JsonRpcPeer, since: float) -> None:
    """A server that hangs must not cost every caller the whole limit; one that shows that it works is none."""
    if not failure.silent or not peer.is_silent:
        return
    if breaker.record_timeout("calls are not answered in time", since):
        peer.close_with(f"{breaker.timeouts} calls in a row had no answer in time")
