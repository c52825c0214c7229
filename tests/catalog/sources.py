"""Sources of tools that do as they are told: what discovery sees of a server, without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from pegboard.catalog.discovery import Discovery
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import ResourceCatalog
from pegboard.config import ServerSpec
from pegboard.storage import Storage


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Offer:
    """A list of tools, as a server answers it."""

    items: list[dict[str, Any]]
    ttl: float | None = None
    cut: str | None = None


@dataclass
class Hello:
    """What a server says of itself."""

    era: str = "handshake"
    version: str = "2025-11-25"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"tools": {"listChanged": True}})
    server_info: Mapping[str, Any] = field(default_factory=lambda: {"name": "fake", "version": "1"})
    instructions: str | None = None


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A definition as a server sends it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


class Source:
    """A `ToolSource` that offers `tools`, or raises `error`, as soon as its gate is open."""

    def __init__(self, name: str, *tools: str, **spec: Any) -> None:
        self.spec = ServerSpec(name=name, given_name=name, command=f"run-{name}", **spec)
        self.tools = [tool(own) for own in tools]
        self.ttl: float | None = None
        self.error: Exception | None = None
        self.is_connected = False
        self.is_process = self.spec.transport == "stdio"
        self.hello: Hello | None = Hello()
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.on_ask: Callable[[], object] = lambda: None
        self.others: dict[str, list[Any] | Exception] = {}
        self.others_gate = asyncio.Event()
        self.others_gate.set()

    async def list_kind(self, method: str, field: str, *, key: str | None = None) -> Offer | None:
        """What it has besides tools, as soon as the gate of the others is open."""
        await self.others_gate.wait()
        if isinstance(items := self.others.get(field), Exception):
            raise items
        return None if items is None else Offer(list(items))

    async def list_tools(self, *, for_call: bool = False, key: str | None = None) -> Offer:
        del for_call
        self.asked += 1
        self.on_ask()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Offer([dict(item) for item in self.tools], self.ttl)

    def change(self, **spec: Any) -> None:
        """The config of this server is another one now."""
        self.spec = replace(self.spec, **spec)


class House:
    """A registry, its discovery, and the sources it knows."""

    def __init__(self, storage: Storage, *sources: Source, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.storage = storage
        self.sources = {source.spec.name: source for source in sources}
        self.registry = ToolRegistry(clock=self.clock)
        self.library = ResourceCatalog(order=lambda: self.sources)
        self.refused: set[str] = set()
        self.discovery = Discovery(
            self.registry,
            storage.catalog,
            lambda: self.sources,
            may_try=lambda name: name not in self.refused,
            clock=self.clock,
            library=self.library,
        )

    def names(self) -> list[str]:
        return [entry.name for entry in self.registry.all()]

    async def settle(self) -> None:
        """Wait until nobody is being asked."""
        with anyio.fail_after(30):
            while running := [*self.discovery._running.values(), *self.discovery._asking]:
                await asyncio.wait(running)
                await asyncio.sleep(0)


Build = Callable[..., House]
