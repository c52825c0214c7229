"""A server listener: who wants to know what happens to servers, and what they say by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pegboard.servers.message import Message, Params

if TYPE_CHECKING:
    from pegboard.servers.server import Server


class ServerListener(Protocol):
    """Who wants to know what happens to a server."""

    def on_state_changed(self, server: Server) -> None:
        """The state is another one now."""
        ...

    def on_list_changed(self, server: Server, key: str | None) -> None:
        """The server said so on the connection of this key, or was away long enough for it."""
        ...

    def on_resource_updated(self, server: Server, key: str | None, params: Params) -> None:
        """The server said that a resource has changed."""
        ...

    def on_notification(self, server: Server, key: str | None, method: str, params: Params, only: str | None) -> None:
        """The server said something that belongs to no request under way; `only` is the one client it ever had."""
        ...

    async def on_request(self, server: Server, key: str | None, method: str, params: Params) -> Message:
        """The server asks something that belongs to no request under way."""
        ...
