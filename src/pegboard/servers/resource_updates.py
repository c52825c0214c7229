"""Resource updates of a modern server: one `subscriptions/listen` stream for all resources that are subscribed to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pegboard.log import logger
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.errors import RpcError
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Params
from pegboard.servers.question_owners import InFlight
from pegboard.servers.requester import NoRequester
from pegboard.task_set import TaskSet

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
# A stream that ended is opened anew after a pause; the pause grows as long as streams live for less than this.
STREAM_WORTH_TELLING = 0.5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0


class ResourceUpdates:
    """The stream of updates on one connection."""

    def __init__(
        self,
        peer: JsonRpcPeer,
        tasks: TaskSet,
        request: Callable[..., Awaitable[Any]],
        on_update: Callable[[Params], None],
    ) -> None:
        self._peer = peer
        self._tasks = tasks
        self._request = request
        self._on_update = on_update
        self._stream: asyncio.Task[None] | None = None

    async def follow(self, uris: Sequence[str], timeout: float) -> None:
        """A stream for these resources in place of the one before, which ends once the new one stands."""
        before = self._stream
        self._stream = await self._open(list(uris), timeout) if uris else None
        if before is not None:
            before.cancel()

    async def _open(self, uris: list[str], timeout: float) -> asyncio.Task[None]:
        acknowledged = _Acknowledged()
        stream = self._tasks.spawn(self._keep(uris, acknowledged))
        waiting = asyncio.get_running_loop().create_task(acknowledged.event.wait())
        try:
            await asyncio.wait({waiting, stream}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not acknowledged.event.is_set():
                stream.cancel()
        if acknowledged.event.is_set():
            return stream
        if stream.done() and not stream.cancelled() and (exc := stream.exception()) is not None:
            raise exc
        raise unavailable(f"{self._peer.label} timed out: it did not confirm a subscription within {timeout:g} s")

    async def _keep(self, uris: list[str], acknowledged: _Acknowledged) -> None:
        wanted = {"notifications": {"resourceSubscriptions": uris}}
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        in_flight = InFlight(acknowledged, "subscriptions/listen")
        while not self._peer.lost.done():
            opened = loop.time()
            try:
                await self._request("subscriptions/listen", wanted, timeout=None, in_flight=in_flight)
            except (RpcError, ToolFailure) as exc:
                if not acknowledged.event.is_set():
                    raise
                logger().debug("server.updates.ended", server=self._peer.label, reason=self._peer.excerpt(exc))
            pause = FIRST_PAUSE if loop.time() - opened > STREAM_WORTH_TELLING else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause)
            # What changed meanwhile cannot be had again: whoever wants it has to look, once the stream stands.
            acknowledged.then = lambda: [self._on_update({"uri": uri}) for uri in uris]


class _Acknowledged(NoRequester):
    """Waits for the first frame of a stream of updates."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.then: Callable[[], object] = lambda: None

    def on_notification(self, method: str, params: Params) -> None:
        """The stream stands."""
        del params
        if method == ACKNOWLEDGED:
            self.event.set()
            self.then()
