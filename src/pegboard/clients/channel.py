"""A channel: the way to a client, for notifications and questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

# How many seconds the last answers to a client that leaves may take.
LAST_ANSWERS = 2.0
OnProgress = Callable[[Mapping[str, Any]], None]
Ask = Callable[[str, Mapping[str, Any], "OnProgress | None"], Awaitable[dict[str, Any]]]


class Channel(Protocol):
    """Reaches a client while one of its requests is under way, or as long as its session lasts."""

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification in its turn."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None) -> dict[str, Any]:
        """Put a question to the client; its result, or `RpcError`."""
        ...
