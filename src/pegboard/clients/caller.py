"""A caller: a client during one of its requests. It is the requester of what servers say and ask meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pegboard.clients.channel import Ask, OnProgress
from pegboard.clients.client import Client
from pegboard.clients.request_context import Answering
from pegboard.exactjson import as_object
from pegboard.protocol.codes import METHOD_NOT_FOUND
from pegboard.protocol.eras import forward_params, severity
from pegboard.servers.attribution import SERVER_KEY
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params
from pegboard.servers.raw_call import RawCall
from pegboard.servers.requester import inability

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A client, how it can be reached while its request is under way, and what is particular to this request."""

    client: Client = field(default_factory=Client)
    notify: Callable[[str, Params], None] | None = None
    ask: Ask | None = None
    on_progress: OnProgress | None = None
    # From which level on log lines are for this request.
    log_level: str | None = None
    # Its call, where that was begun on the fast path.
    started_call: RawCall | None = None
    # The id that its request has, for whoever traces.
    request_id: str | None = None
    # Its answer over HTTP, for whoever has something to do once that is written.
    answering: Answering | None = None
    # How many characters of text its result may have, where the request says that.
    cap: int | None = None
    # Of the modern era nothing says which requests come from one client: each stands for itself.
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def client_key(self) -> str:
        """The same for all requests of one client, as far as that is known."""
        if self.client.session is None and self.client.era == "handshake":
            # From Python or REST: it cannot be asked anything, so it cannot be mixed up with anybody.
            return "nobody"
        return self.client.session or f"request-{self.number}"

    @property
    def principal_key(self) -> str:
        """The same for requests that are likely to be one person's."""
        return self.client.principal_key or self.client_key

    @property
    def principal_id(self) -> str:
        """Who is behind it."""
        return self.client.principal.id

    @property
    def effective_log_level(self) -> str | None:
        """From which level on a server is to log for this caller."""
        if self.log_level is not None or self.client.era == "modern" or self.notify is None:
            return self.log_level
        # A handshake client that never set a level is told what a server would tell by itself.
        return "info"

    def on_notification(self, method: str, params: Params) -> None:
        """Something that the server said during this request."""
        if self.notify is None or (method == "notifications/message" and not self._wants(params.get("level"))):
            return
        self.notify(method, forward_params(params))

    async def on_request(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        """A question of the server; a client that cannot be asked this is not bothered with it."""
        if self.ask is None:
            raise RpcError(
                METHOD_NOT_FOUND, f"{method}: this caller cannot answer what the server asks; use an MCP client"
            )
        if refusal := inability(self.client.capabilities, method, params):
            raise refusal
        return await self.ask(method, question_for(self.client.capabilities, params), on_progress)

    def _wants(self, level: object) -> bool:
        if self.log_level is None:
            return self.client.era == "handshake"
        return severity(level) >= severity(self.log_level)


def question_for(capabilities: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """A question's params as a client with these capabilities understands them, with the name of whoever asks."""
    forwarded = forward_params(params)
    server = (as_object(params.get("_meta")) or {}).get(SERVER_KEY)
    if server is not None:
        forwarded["_meta"] = {**forwarded.get("_meta", {}), SERVER_KEY: server}
    if "tasks" not in capabilities:
        # A shared server was told of tasks; a client that knows none answers at once, which is allowed.
        forwarded.pop("task", None)
    return forwarded


# Who calls a static tool: its `call()` is given the arguments and nothing else.
current: ContextVar[Caller] = ContextVar("current_caller")


class acting_for:  # noqa: N801  used as a function
    """Runs a static tool for a caller, which the tool finds in `current`."""

    __slots__ = ("_caller", "_token")

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __enter__(self) -> None:
        self._token = current.set(self._caller)

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)
