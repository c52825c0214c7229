"""What a transport is: it moves messages to and from one server, and says what is particular about doing so.

Whatever differs between transports stands here, so that nobody else has to know which ones there are. The defaults are
those of a pipe: one stream each way, on which no message says which request it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from pegboard.config import ServerSpec
from pegboard.protocol.eras import Era
from pegboard.result import ToolFailure
from pegboard.servers.authorization import Authorization
from pegboard.servers.http.refusal import AccessRefused, NeedsAuth
from pegboard.servers.message import Message
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.server_log import ServerLog

if TYPE_CHECKING:
    from pegboard.servers.jsonrpc import JsonRpcPeer


class Transport(Protocol):
    """Moves messages to and from one server."""

    # Whether to connect starts a process on this machine.
    is_process: ClassVar[bool] = False
    # Whether all messages share one stream each way: then none says which request it belongs to, and a question that
    # the server does not answer keeps nobody from asking another.
    is_duplex: ClassVar[bool] = True
    # Whether a request of the modern era names its method and its tool in headers beside the body.
    takes_headers: ClassVar[bool] = False
    # Whether nothing breaks when the server goes away, so that it has to be asked now and then.
    needs_heartbeat: ClassVar[bool] = False

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper) -> None:
        """Nothing is begun yet; a process is to be watched by the reaper."""
        ...

    async def start(self, peer: JsonRpcPeer) -> None:
        """Begin; messages go to `peer.deliver`, the end of it all to `peer.close_with`."""
        ...

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        """Send one message; over HTTP, a request's answer has been delivered when this returns."""
        ...

    def cancel(self, request_id: int, reason: str) -> None:
        """Tell the server, without waiting, that nobody waits for this answer any more."""
        ...

    async def close(self) -> None:
        """End the conversation and leave nothing behind."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a request that is ready to go can be put on the transport at once."""
        return False

    def send_raw(self, request_id: int, text: bytes, name: str | None) -> None:
        """Send a request that is ready to go; `name` is the tool's own, where the era wants it said beside the body."""
        raise AssertionError("a transport that is never ready is never asked")

    @property
    def is_drained(self) -> bool:
        """Whether every message that has begun to arrive is delivered; asked where none says what it belongs to."""
        return True

    def on_negotiated(self, era: Era, version: str) -> None:
        """The handshake is over, with this outcome."""

    def sign_by(self, authorization: Authorization, on_sent: Callable[[str], None]) -> None:
        """Have every request carry what a sign-in gives; `on_sent` is told what that is. Only over HTTP."""
        del authorization, on_sent

    async def renew(self, refused: AccessRefused) -> bool:
        """Whether a request whose credentials were refused is worth sending once more, with others."""
        del refused
        return False

    def on_needs_auth(self, told: Callable[[NeedsAuth], None]) -> None:
        """Who has to know that the server takes no requests any more before somebody has signed in."""
        del told

    def on_renewal(self, told: Callable[[bool], None]) -> None:
        """Who has to know that other credentials are being fetched (true), and that this is over (false)."""
        del told

    def keep_log(self, log: ServerLog) -> None:
        """Write down what the server says beside its messages, if it can say such."""
        del log

    def listen(self, on_gap: Callable[[], None]) -> None:
        """Open the stream of what a server of the handshake era says by itself, if it takes one of its own.

        `on_gap` is told when something may have been missed.
        """

    def alternative(self, failure: ToolFailure, era: Era | None) -> tuple[ServerSpec, Era] | None:
        """How else to try a server that could not be reached so, and in which era; `None` if there is no other way."""
        del failure, era
        return None

    def hints(self) -> list[str]:
        """What else is known that may say why a server does not work."""
        return []
