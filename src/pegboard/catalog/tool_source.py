"""A tool source: a server as discovery sees it, and what it says of itself and of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pegboard.config import ServerSpec


class Offered(Protocol):
    """A list of tools and for how long it holds."""

    @property
    def items(self) -> list[dict[str, Any]]:
        """The tools as the server sent them."""
        ...

    @property
    def ttl(self) -> float | None:
        """The server's own time to live, in seconds."""
        ...

    @property
    def cut(self) -> str | None:
        """Why the rest of the list is left out, if it is."""
        ...


class Introduction(Protocol):
    """What a server said of itself."""

    @property
    def era(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def server_info(self) -> Mapping[str, Any]: ...
    @property
    def instructions(self) -> str | None: ...


class ToolSource(Protocol):
    """Something that lists tools: a server, as far as discovery is concerned."""

    @property
    def spec(self) -> ServerSpec: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def is_process(self) -> bool: ...
    @property
    def hello(self) -> Introduction | None: ...
    async def list_tools(self, *, for_call: bool = False, key: str | None = None) -> Offered: ...
    async def list_kind(self, method: str, field: str, *, key: str | None = None) -> Offered | None: ...
