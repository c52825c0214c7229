"""A connector: opens a connection to a server, over the transport and in the era that the server turns out to have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pegboard.config import ServerSpec
from pegboard.protocol.eras import Era
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.connection import Connection
from pegboard.servers.handshake import ServerHello, negotiate
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.limit import Limit
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.server_log import ServerLog
from pegboard.servers.transports.by_name import TRANSPORTS
from pegboard.servers.transports.transport import Transport
from pegboard.task_set import TaskSet

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

# How long other credentials are waited for where a server refuses those it was given.
_RENEWAL_LIMIT = 40.0


class Connector:
    """One connection in the making."""

    def __init__(
        self,
        spec: ServerSpec,
        reaper: OrphanReaper,
        tasks: TaskSet,
        capabilities: Mapping[str, Any],
        log: ServerLog,
        make: Callable[[JsonRpcPeer, ServerHello], Connection],
        sign: Callable[[Transport], None],
    ) -> None:
        self._spec = spec
        self._reaper = reaper
        # What is left of a try that failed is ended among these.
        self._tasks = tasks
        self._capabilities = capabilities
        self._log = log
        self._make = make
        # Gives a transport the credentials that it is to send.
        self._sign = sign
        self._on_renewal: Callable[[bool], None] = lambda _: None
        self._transport = self._make_transport(spec)

    async def connect(self, era: Era | None) -> Connection:
        """Connect within the time that the config gives a server to answer; `era` is the one known from before."""
        spec, is_process = self._spec, self._transport.is_process
        limit = spec.start_timeout if is_process else spec.connect_timeout
        try:
            async with Limit(limit) as running:
                # The time that it takes to have other credentials is not the server's.
                self._on_renewal = lambda begins: running.restart(_RENEWAL_LIMIT if begins else limit)
                return await self._try_twice(era)
        except TimeoutError:
            setting = "startTimeout" if is_process else "connectTimeout"
            reason = f'timed out: no answer within {limit:g} s (its "{setting}")'
            raise unavailable("; ".join([reason, *self._transport.hints()])) from None

    async def _try_twice(self, era: Era | None) -> Connection:
        """One try; two where the first shows that this server must be spoken to differently."""
        try:
            return await self._try(self._spec, era)
        except ToolFailure as exc:
            other = self._transport.alternative(exc, era)
            if other is None:
                raise
        spec, era = other
        self._transport = self._make_transport(spec)
        return await self._try(spec, era)

    def _make_transport(self, spec: ServerSpec) -> Transport:
        transport = TRANSPORTS[spec.transport](spec, self._reaper)
        transport.keep_log(self._log)
        self._sign(transport)
        return transport

    async def _try(self, spec: ServerSpec, era: Era | None) -> Connection:
        peer = JsonRpcPeer(self._transport, label=spec.name, redactor=self._log.redactor)
        self._transport.on_renewal(self._on_renewal)
        try:
            await self._transport.start(peer)
            connection = self._make(peer, await negotiate(peer, era, self._capabilities))
            await connection.begin()
            self._transport.on_renewal(lambda _: None)
        except BaseException:
            await asyncio.shield(self._tasks.spawn(peer.close()))
            raise
        return connection
