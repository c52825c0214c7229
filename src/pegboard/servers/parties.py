"""Who is in conversation with a server right now, and whose question it is when the server asks.

Over HTTP a question comes with the request it belongs to. Over a pipe it does not, so two clients could be
mixed up there. What has never asked anything runs side by side; what asks, or has not shown yet that it does
not, is leased to one client at a time. A question that still cannot be placed waits until it can, and is
refused where that will never be: it is never put to the wrong client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from pegboard.servers.link import RpcError
from pegboard.servers.party import Party

# How long the first use of something waits for another client's first use of something.
FIRST_USE = 5.0
_CANNOT_TELL = -32000


@dataclass(slots=True, eq=False)
class Presence:
    """One request under way."""

    party: Party
    subject: str
    asked: bool = False
    # Gives the request its whole time limit again.
    extend: Callable[[], None] = lambda: None
    questions: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])


class Parties:
    """Everyone on one connection."""

    def __init__(self, *, origins: bool) -> None:
        # Whether the wire itself tells which request a question belongs to.
        self._origins = origins
        self._present: dict[Presence, None] = {}
        self._quiet: set[str] = set()
        self._asking: set[str] = set()
        self._unplaced = 0
        self._waiting: list[asyncio.Future[None]] = []

    @contextlib.asynccontextmanager
    async def admitted(self, party: Party, subject: str) -> AsyncGenerator[Presence]:
        """Be present, once that mixes up nobody."""
        await self._turn(party.identity, subject)
        presence = Presence(party, subject)
        self._present[presence] = None
        try:
            yield presence
            if not presence.asked and subject not in self._asking:
                self._quiet.add(subject)
        finally:
            del self._present[presence]
            for question in presence.questions:
                question.cancel()
            self._wake()

    async def owner(self, origin: Presence | None) -> Presence | None:
        """Whose question this is; `None` if nobody is present. Raises `RpcError` where it cannot be told."""
        presence = origin or await self._placed()
        if presence is not None:
            presence.asked = True
            self._quiet.discard(presence.subject)
            self._asking.add(presence.subject)
        return presence

    def hearers(self, origin: Presence | None) -> list[Party]:
        """Who is to be told what the server says: the one it belongs to, or else everyone who is present."""
        if origin is not None:
            return [origin.party]
        return list({presence.party.identity: presence.party for presence in self._present}.values())

    async def _turn(self, identity: str, subject: str) -> None:
        first = asyncio.get_running_loop().time()
        while True:
            patience = first + FIRST_USE - asyncio.get_running_loop().time()
            wait = self._obstacle(identity, subject, patient=patience > 0)
            if wait is None:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience if wait == "first use" else None):
                    await self._change()

    def _obstacle(self, identity: str, subject: str, *, patient: bool) -> str | None:
        others = [presence for presence in self._present if presence.party.identity != identity]
        if not others:
            return None
        if self._unplaced and len(others) == len(self._present):
            # A question waits until only one client is left: nobody may join meanwhile.
            return "question"
        if self._origins or subject in self._quiet:
            return None
        loud = [presence for presence in others if presence.subject not in self._quiet]
        if any(presence.asked or presence.subject in self._asking or subject in self._asking for presence in loud):
            return "question"
        return "first use" if loud and patient else None

    async def _placed(self) -> Presence | None:
        self._unplaced += 1
        try:
            while len(identities := {presence.party.identity for presence in self._present}) > 1:
                if self._unplaced >= len(identities):
                    # Everyone may be waiting for an answer: nobody would ever be left alone.
                    raise RpcError(_CANNOT_TELL, "it cannot be told which client this question belongs to")
                await self._change()
            return self._likeliest()
        finally:
            self._unplaced -= 1
            self._wake()

    def _likeliest(self) -> Presence | None:
        """Of one client's requests, the one most likely to have asked: known to ask, else not known to be quiet."""
        rank: Callable[[Presence], tuple[bool, bool]] = lambda presence: (  # noqa: E731
            presence.subject in self._asking,
            presence.subject not in self._quiet,
        )
        return max(reversed(list(self._present)), key=rank, default=None)

    async def _change(self) -> None:
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        try:
            await change
        finally:
            if change in self._waiting:
                self._waiting.remove(change)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)
