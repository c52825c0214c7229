"""A requester: whoever a request is made for. It hears what the server says meanwhile, and answers what it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pegboard.exactjson import as_object
from pegboard.protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params


class Requester(Protocol):
    """One client, as far as a server's conversation concerns it."""

    @property
    def client_key(self) -> str:
        """The same for all requests of one client; questions of two identities must never be mixed up."""
        ...

    @property
    def principal_key(self) -> str:
        """The same for requests that are likely to be one person's: a stray question of theirs harms nobody."""
        ...

    @property
    def principal_id(self) -> str:
        """Who is behind it: those who wait for the same server take turns by it."""
        ...

    def on_notification(self, method: str, params: Params) -> None:
        """The server said something that belongs to this request."""
        ...

    async def on_request(self, method: str, params: Params, on_progress: Callable[[Params], None] | None) -> Message:
        """The server asks; the answer, or `RpcError`."""
        ...


class NoRequester:
    """A request without a client that could be told or asked anything: from Python, REST, or Pegboard itself."""

    # None of them can be asked anything, so none of them can be mixed up.
    client_key = principal_key = "nobody"
    principal_id = ""

    def on_notification(self, method: str, params: Params) -> None:
        """Nobody listens."""

    async def on_request(self, method: str, params: Params, on_progress: Callable[[Params], None] | None) -> Message:
        """Nobody can answer."""
        del params, on_progress
        raise RpcError(METHOD_NOT_FOUND, f"{method}: this call was made without a client that could be asked")


def inability(capabilities: Mapping[str, Any], method: str, params: Params) -> RpcError | None:
    """Why a client with these capabilities cannot be asked this, or `None`; methods nobody knows are its own affair."""
    needed = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
    capability = needed.get(method)
    if capability is None:
        return None
    declared = as_object(capabilities.get(capability))
    if declared is None:
        return RpcError(METHOD_NOT_FOUND, f"the client does not support {capability} ({method})")
    if capability == "elicitation":
        # A client that names no mode means forms; that is how it was before there were others.
        modes = declared or {"form": {}}
        mode = params.get("mode", "form")
        if not isinstance(mode, str) or mode not in modes:
            return RpcError(INVALID_PARAMS, f"the client does not support elicitation in {mode} mode")
    if capability == "sampling" and ("tools" in params or "toolChoice" in params) and "tools" not in declared:
        return RpcError(INVALID_PARAMS, "the client does not support tools in sampling")
    return None
