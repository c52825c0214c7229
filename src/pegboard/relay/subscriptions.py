"""Subscriptions: which clients want to hear of which resources; a server sees one of each, however many want it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from pegboard.clients.caller import Caller
from pegboard.log import logger
from pegboard.result import ToolFailure
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Params
from pegboard.servers.server import Server
from pegboard.task_set import TaskSet

Listener = Callable[[Params], None]


@dataclass(slots=True, eq=False)
class _Subscribed:
    """A resource of a server, and who wants to hear of it under which name."""

    server: Server
    key: str | None
    uri: str
    listeners: dict[object, tuple[str, Listener]] = field(default_factory=dict[object, tuple[str, Listener]])


class Subscriptions:
    """All of them."""

    def __init__(self) -> None:
        self._subscribed: dict[tuple[str, str | None, str], _Subscribed] = {}
        # One at a time for each server: two changes at once could end in the wrong order.
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks = TaskSet()

    async def add(self, server: Server, caller: Caller, uri: str, name: str, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of a resource, which its client calls `name`; gives back what ends it."""
        key = server.key_for(caller.client.session, caller.principal_id)
        place = (server.name, key, uri)
        token = object()
        async with self._locks[server.name]:
            subscribed = self._subscribed.get(place)
            if subscribed is None or subscribed.server is not server:
                await server.subscribe(key, uri, caller.client.capabilities)
                subscribed = self._subscribed[place] = _Subscribed(server, key, uri)
            subscribed.listeners[token] = (name, listener)

        def release() -> None:
            if subscribed.listeners.pop(token, None) is not None and not subscribed.listeners:
                self._tasks.spawn(self._end(place, subscribed))

        return release

    def publish(self, server: Server, key: str | None, params: Params) -> None:
        """A server said that a resource has changed: it may be a part of the one that was subscribed to."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            return
        for subscribed in list(self._subscribed.values()):
            if subscribed.server is server and subscribed.key == key and _within(uri, subscribed.uri):
                for name, listener in list(subscribed.listeners.values()):
                    listener({**params, "uri": name + uri[len(subscribed.uri) :]})

    def drop(self, server: str) -> set[str]:
        """A server is gone; gives back what its resources were called by whoever subscribed to them."""
        names: set[str] = set()
        for place in [place for place in self._subscribed if place[0] == server]:
            names |= {name for name, _ in self._subscribed.pop(place).listeners.values()}
        return names

    async def close(self) -> None:
        """No more of it."""
        await self._tasks.close()

    async def _end(self, place: tuple[str, str | None, str], subscribed: _Subscribed) -> None:
        async with self._locks[subscribed.server.name]:
            if subscribed.listeners or self._subscribed.get(place) is not subscribed:
                return
            del self._subscribed[place]
            try:
                await subscribed.server.unsubscribe(subscribed.key, subscribed.uri)
            except (RpcError, ToolFailure) as exc:
                logger().debug(
                    "server.unsubscribe.failed",
                    server=subscribed.server.name,
                    reason=subscribed.server.redactor.clean(str(exc), 200),
                )


def _within(uri: str, subscribed: str) -> bool:
    return uri == subscribed or uri.startswith(subscribed.rstrip("/") + "/")
