"""The short way of one client at the other end of a byte stream, line by line."""

from __future__ import annotations

from collections.abc import Awaitable

from pegboard.front.known import Door, Known, KnownClients
from pegboard.front.plainway import PlainWay, taken_back
from pegboard.protocol import envelope
from pegboard.protocol.envelope import Request
from pegboard.protocol.eras import VERSION_KEY
from pegboard.protocol.gateway import Address, Client
from pegboard.servers.plaincall import GivenUp, PlainCall

_MODERN = VERSION_KEY.encode()


class LineWay:
    """Answers the plain requests of one client."""

    def __init__(self, clients: KnownClients, way: PlainWay, address: Address) -> None:
        self._clients = clients
        self._way = way
        self._door = Door(address, private=True)
        self._greeted: Client | None = None

    def welcome(self, client: Client) -> None:
        """The client's handshake is complete."""
        self._greeted = client

    def begin(self, text: bytes) -> tuple[bytes, Awaitable[bytes | PlainCall | None]] | None:
        """A request's id, and what comes of it; `None` if a line has to take the full way."""
        request = envelope.request(text)
        known = self._known(request, text) if request is not None else None
        begun = self._way.begin(known, request) if request is not None and known is not None else None
        return (bytes(request.id), _unless_given_up(begun)) if request is not None and begun is not None else None

    def takes_back(self, text: bytes) -> bool:
        """Whether a line takes back a call that is on the short way."""
        conversation = self._door if self._greeted is None else self._greeted.session
        called = taken_back(text)
        return called is not None and self._way.give_up(conversation, called)

    def _known(self, request: Request, text: bytes) -> Known | None:
        if self._greeted is not None:
            # Whoever has greeted us in one era speaks the other only by mistake, or to find out.
            return self._clients.of_session(self._greeted) if _MODERN not in text else None
        params = envelope.members(request.params) if isinstance(request.params, envelope.Raw) else None
        meta = (params or {}).get("_meta")
        return self._clients.of_request(self._door, meta) if meta is not None else None


async def _unless_given_up(begun: Awaitable[bytes | PlainCall | None]) -> bytes | PlainCall | None:
    """What comes of a request; over a pipe, what was taken back is not answered."""
    try:
        return await begun
    except GivenUp:
        return b""
