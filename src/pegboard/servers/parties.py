"""Who is in conversation with a server right now, and whose question it is when the server asks.

Over HTTP a question comes with the request it belongs to. Over a pipe it does not, so two clients could be
mixed up there. What has never asked anything runs side by side; what asks, or has not shown yet that it does
not, is leased to one client at a time, until its question is out: whoever waits for an answer asks nothing
else. A question that still cannot be placed waits a while until it can, and is refused otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from pegboard.servers.link import RpcError
from pegboard.servers.party import Party

# How long the first use of something waits for another client's first use of something.
FIRST_USE = 5.0
# Whoever has waited this long for an answer has asked all it wanted to ask for now; those that are known to
# ask on before they have an answer are given more time for it.
SETTLED = 0.1
SETTLED_ASKING_ON = 5.0
# A question that cannot be placed within this time is refused: it must not hold up everyone else.
PLACING = 10.0
_CANNOT_TELL = -32000
_WHOSE = (
    "it cannot be told which of several clients this question belongs to; "
    'with "instance": "session" in its config each client has this server to itself'
)


@dataclass(slots=True, eq=False)
class Presence:
    """One request under way."""

    party: Party
    subject: str
    asked: bool = False
    # Gives the request its whole time limit again.
    extend: Callable[[], None] = lambda: None
    # The open questions, and since when they are open.
    questions: dict[asyncio.Task[None], float] = field(default_factory=dict[asyncio.Task[None], float])


class Parties:
    """Everyone on one connection."""

    def __init__(self, *, origins: bool) -> None:
        # Whether the wire itself tells which request a question belongs to.
        self._origins = origins
        self._present: dict[Presence, None] = {}
        # Those of them without an open question, and how many requests each client has: there may be many present.
        self._silent: dict[Presence, None] = {}
        self._requests: Counter[str] = Counter()
        self._quiet: set[str] = set()
        self._asking: set[str] = set()
        # What has asked a second question before the first was answered.
        self._asking_on: set[str] = set()
        self._unplaced = 0
        self._waiting: list[asyncio.Future[None]] = []

    @contextlib.asynccontextmanager
    async def admitted(self, party: Party, subject: str) -> AsyncGenerator[Presence]:
        """Be present, once that mixes up nobody."""
        await self._turn(party.identity, subject)
        presence = Presence(party, subject)
        self._present[presence] = self._silent[presence] = None
        self._requests[party.identity] += 1
        try:
            yield presence
            if not presence.asked and subject not in self._asking:
                self._quiet.add(subject)
        finally:
            del self._present[presence]
            self._silent.pop(presence, None)
            self._requests[party.identity] -= 1
            if not self._requests[party.identity]:
                del self._requests[party.identity]
            for question in presence.questions:
                # One that is being withdrawn already must not be disturbed while it tells its client so.
                if not question.cancelling():
                    question.cancel()
            self._wake()

    async def owner(self, origin: Presence | None, question: asyncio.Task[None]) -> Presence | None:
        """Whose question this is; `None` if nobody is present. Raises `RpcError` where it cannot be told."""
        presence = origin or await self._placed()
        if presence is not None:
            presence.asked = True
            if presence.questions:
                self._asking_on.add(presence.subject)
            presence.questions[question] = _now()
            self._silent.pop(presence, None)
            self._quiet.discard(presence.subject)
            self._asking.add(presence.subject)
        self._wake()
        return presence

    def answered(self, presence: Presence, question: asyncio.Task[None]) -> None:
        """A question is open no longer."""
        presence.questions.pop(question, None)
        if not presence.questions and presence in self._present:
            self._silent[presence] = None
        self._wake()

    def hearers(self, origin: Presence | None) -> list[Party]:
        """Who is to be told what the server says: the one it belongs to, or else everyone who is present."""
        if origin is not None:
            return [origin.party]
        return list({presence.party.identity: presence.party for presence in self._present}.values())

    async def _turn(self, identity: str, subject: str) -> None:
        started = _now()
        while (wait := self._obstacle(identity, subject, started)) is not None:
            await self._change(wait)

    def _obstacle(self, identity: str, subject: str, started: float) -> float | None:
        """How long at most to wait for a change before it is worth another look; `None` to go on."""
        if self._requests[identity] == len(self._present):
            return None
        if self._unplaced and not self._requests[identity]:
            # A question waits until only one client is left: nobody may join meanwhile.
            return SETTLED
        if self._origins or subject in self._quiet:
            return None
        # Whoever has its question out is no obstacle: the next one can be placed as soon as that has settled.
        loud = [each for each in self._silent if each.subject not in self._quiet and each.party.identity != identity]
        if any(each.subject in self._asking or subject in self._asking for each in loud):
            return SETTLED
        patience = started + FIRST_USE - _now()
        return patience if loud and patience > 0 else None

    def _settled(self, presence: Presence) -> bool:
        """Whether this one waits for an answer, and does nothing else."""
        if not presence.questions:
            return False
        silence = _now() - max(presence.questions.values())
        return silence >= (SETTLED_ASKING_ON if presence.subject in self._asking_on else SETTLED)

    async def _placed(self) -> Presence | None:
        deadline = _now() + PLACING
        self._unplaced += 1
        try:
            while True:
                candidates = [presence for presence in self._present if not self._settled(presence)]
                identities = {presence.party.identity for presence in candidates or self._present}
                if len(identities) <= 1:
                    return self._likeliest(candidates or list(self._present))
                silent = {presence.party.identity for presence in self._silent}
                # Where all of them may be waiting for an answer, nobody would ever be left alone.
                if (len(silent) > 1 and self._unplaced >= len(silent)) or _now() > deadline:
                    raise RpcError(_CANNOT_TELL, _WHOSE)
                await self._change(SETTLED)
        finally:
            self._unplaced -= 1
            self._wake()

    def _likeliest(self, candidates: list[Presence]) -> Presence | None:
        """Of one client's requests, the one most likely to have asked: known to ask, else not known to be quiet."""
        rank: Callable[[Presence], tuple[bool, bool]] = lambda presence: (  # noqa: E731
            presence.subject in self._asking,
            presence.subject not in self._quiet,
        )
        return max(reversed(candidates), key=rank, default=None)

    async def _change(self, limit: float) -> None:
        """Wait until somebody came, left or asked, or until the time is over."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        try:
            await asyncio.wait({change}, timeout=limit)
        finally:
            if change in self._waiting:
                self._waiting.remove(change)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)


def _now() -> float:
    return asyncio.get_running_loop().time()
