"""A supervisor: opens connections again in the background, of a lost server as often as its circuit breaker allows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pegboard.log import logger
from pegboard.result import ToolFailure
from pegboard.servers.breaker import Breaker
from pegboard.task_set import TaskSet

_SHORTEST_PAUSE = 0.1


class Supervisor:
    """Connects to one server where nobody waits for it."""

    def __init__(
        self,
        server: str,
        tasks: TaskSet,
        breaker: Breaker,
        connect: Callable[[str | None], Awaitable[object]],
        redact: Callable[[str], str],
    ) -> None:
        self._server = server
        self._tasks = tasks
        self._breaker = breaker
        self._connect = connect
        self._redact = redact
        self._task: asyncio.Task[None] | None = None

    def start(self, is_lost: Callable[[], bool]) -> None:
        """Try the server for as long as it is lost."""
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._bring_back(is_lost))

    def stop(self) -> None:
        """Try it no more: whoever sleeps until a time that counts no longer would sleep through the next loss."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def reopen(self, key: str | None) -> None:
        """Somebody wants to hear of what happens there, so it is not left until the next call."""
        self._tasks.spawn(self._try(key, "server.subscription.waits", logger().info))

    async def _bring_back(self, is_lost: Callable[[], bool]) -> None:
        while is_lost():
            await asyncio.sleep(max(self._breaker.remaining(), _SHORTEST_PAUSE))
            if is_lost():
                await self._try(None, "server.still.lost", logger().debug)

    async def _try(self, key: str | None, event: str, log: Callable[..., None]) -> None:
        try:
            await self._connect(key)
        except ToolFailure as exc:
            log(event, server=self._server, reason=self._redact(str(exc))[:200])
