"""Question owners: who has requests under way at a server, and whose question it is when the server asks.

Over HTTP a question comes with the request it belongs to. Over a pipe it does not, so two clients could be
mixed up there. What has never asked anything runs side by side; what asks, or has not shown yet that it does
not, is leased to one client at a time, until its question is out. A question belongs to one of the requests
that were under way when it came: one after the other they are ruled out by the server's answer to them, or
because they had been waiting for an answer themselves when it came. What cannot be placed in time is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from pegboard.lru_dict import LruDict
from pegboard.protocol.codes import SERVER_ERROR
from pegboard.servers.errors import RpcError
from pegboard.servers.fair_queue import FairQueue
from pegboard.servers.requester import Requester

# How long the first use of something waits for another client's first use of something.
FIRST_USE = 5.0
# Whoever has waited this long for an answer has asked all it wanted to ask for now; those that are known to
# ask on before they have an answer are given more time for it.
SETTLED = 0.1
SETTLED_ASKING_ON = 5.0
# A question that cannot be placed within this time is refused.
PLACING = 10.0
# A server may go on with a request that was given up, and ask: so long it counts as one that could have asked.
ABANDONED_GRACE = 3.0
# How often in a row all must be dealt with that was read before a server counts as silent, and how far apart.
_LOOKS = 3
_SHORTEST_LOOK = 0.001
_LONGEST_LOOK = 0.1
_MAX_SUBJECTS = 20_000
_MAX_PRINCIPALS = 1024
_WHOSE = (
    "it is not known which of several clients this question belongs to; "
    'with "instance": "session" in the config of this server each client session has a process of its own'
)
_GIVEN_UP = "the request that this question belongs to was given up"


@dataclass(slots=True, eq=False)
class InFlight:
    """One request under way."""

    requester: Requester
    subject: str
    asked: bool = False
    # Whether the server has answered the request: from then on it asks nothing for it.
    answered: bool = False
    left: bool = False
    # Whether it waits for an answer, and has had the time to ask whatever else it wanted to ask.
    settled: bool = False
    # Whether it was sent once already, and refused because of its credentials.
    is_repetition: bool = False
    # How often it began to settle: each question and each answer to one makes it begin anew.
    beginnings: int = 0
    # Gives the request its whole time limit again.
    extend: Callable[[], None] = lambda: None
    # The open questions, and whether it is certain that they are this request's own.
    questions: dict[asyncio.Task[None], bool] = field(default_factory=dict[asyncio.Task[None], bool])


@dataclass(slots=True, eq=False)
class _Unplaced:
    """A question of which it cannot be told yet whose it is, and the clients that it may be of."""

    clients: frozenset[str] = frozenset()


class QuestionOwners:
    """Everyone on one connection."""

    def __init__(self, *, origins: bool, streams: bool = False, drained: Callable[[], bool] = lambda: True) -> None:
        # Whether the transport itself tells which request a question belongs to, and what is said.
        self._origins = origins
        self._streams = streams
        # Whether all is dealt with that was read from the server.
        self._is_drained = drained
        self._in_flight: dict[InFlight, None] = {}
        # Those of them that may ask any moment, and each client's own: there may be many present.
        self._busy: dict[InFlight, None] = {}
        self._requests: dict[str, dict[InFlight, None]] = {}
        # The only client that ever used this connection, as long as there is just one.
        self.only: str | None = None
        # Whose requests it carried last, and whether they were always the same one's.
        self._last_principal: str | None = None
        self._several = False
        # Requests that were given up without an answer a moment ago.
        self._abandoned: dict[InFlight, None] = {}
        self._owners: dict[asyncio.Task[None], InFlight] = {}
        self._quiet: set[str] = set()
        self._asking: set[str] = set()
        # What has asked a second question before the first was answered.
        self._asking_on: set[str] = set()
        self._unplaced: dict[_Unplaced, None] = {}
        # Who waits for a change, and for whom; questions wait for nobody's turn.
        self._waiting: dict[asyncio.Future[None], str | None] = {}
        # When each principal last had its turn, as far as somebody else had to wait for it.
        self._turns: LruDict[str, int] = LruDict(_MAX_PRINCIPALS)
        self._last_turn = 0

    @contextlib.asynccontextmanager
    async def admit(self, requester: Requester, subject: str) -> AsyncGenerator[InFlight]:
        """Be present, once that mixes up nobody."""
        await self._turn(requester, subject)
        in_flight = self._enter(requester, subject)
        try:
            yield in_flight
        finally:
            self.leave(in_flight)

    def admit_now(self, requester: Requester, subject: str) -> InFlight | None:
        """Be present at once, until `leave`; `None` where somebody would have to wait first."""
        if not self._is_free(requester, subject) and self._obstacle(requester, subject, _now()) is not None:
            return None
        return self._enter(requester, subject)

    def _enter(self, requester: Requester, subject: str) -> InFlight:
        in_flight = InFlight(requester, subject)
        self._several = self._several or self._last_principal not in {None, requester.principal_key}
        self._last_principal = requester.principal_key
        self.only = None if self._several else requester.client_key
        self._in_flight[in_flight] = self._busy[in_flight] = None
        self._requests.setdefault(requester.client_key, {})[in_flight] = None
        return in_flight

    async def owner(self, origin: InFlight | None, question: asyncio.Task[None]) -> InFlight | None:
        """Whose question this is; `None` if nobody is present. Raises `RpcError` where it cannot be told."""
        in_flight = origin or await self._place()
        if in_flight is not None:
            in_flight.asked = True
            if in_flight.questions:
                self._asks_on(in_flight.subject)
            self._quiet.discard(in_flight.subject)
            self._asking.add(in_flight.subject)
            self._book(question, in_flight, certain=origin is not None or self._is_certain(in_flight))
        self._wake()
        return in_flight

    def _asks_on(self, subject: str) -> None:
        """Whatever does the same is given more time, even where it has settled."""
        if subject not in self._asking_on:
            self._asking_on.add(subject)
            for each in self._in_flight:
                if each.subject == subject and each.questions:
                    self._begin_to_settle(each)

    def _is_certain(self, in_flight: InFlight) -> bool:
        """Whether a question that was placed is this request's, and not another one's of the same client."""
        identity = in_flight.requester.client_key
        rivals = [
            *self._requests[identity],
            *(each for each in self._abandoned if each.requester.client_key == identity),
        ]
        for each in rivals:
            each.asked = True
        return len(rivals) == 1

    def extend(self, question: asyncio.Task[None]) -> None:
        """Give whatever waits for the answer its whole time limit again; of parallel requests, all that it could be."""
        if (owner := self._owners.get(question)) is not None:
            for in_flight in self._requests.get(owner.requester.client_key, ()):
                in_flight.extend()

    def close_question(self, question: asyncio.Task[None]) -> None:
        """A question is open no longer."""
        in_flight = self._owners.pop(question, None)
        if in_flight is not None:
            in_flight.questions.pop(question, None)
            self._begin_to_settle(in_flight)
        self._wake()

    def listener_of(self, origin: InFlight | None) -> Requester | None:
        """Who is to be told what the server says: the one it belongs to, or the only one it can belong to."""
        if origin is not None:
            return origin.requester
        # It may be late: a line about a call that is over must not reach whoever else has one under way.
        if self._several or self._streams or len(self._requests) != 1:
            return None
        return next(iter(self._in_flight)).requester

    def leave(self, in_flight: InFlight) -> None:
        """A request is over."""
        in_flight.left, in_flight.settled = True, False
        identity, subject = in_flight.requester.client_key, in_flight.subject
        del self._in_flight[in_flight]
        self._busy.pop(in_flight, None)
        del self._requests[identity][in_flight]
        if not self._requests[identity]:
            del self._requests[identity]
        if (
            in_flight.answered
            and not in_flight.asked
            and subject not in self._asking
            and len(self._quiet) < _MAX_SUBJECTS
        ):
            self._quiet.add(subject)
        if not in_flight.answered and not self._origins:
            self._keep_abandoned(in_flight)
        self._settle_questions(in_flight)
        self._wake()

    def _keep_abandoned(self, in_flight: InFlight) -> None:
        self._abandoned[in_flight] = None
        self._after(ABANDONED_GRACE, partial(self._forget_abandoned, in_flight))

    def _forget_abandoned(self, in_flight: InFlight) -> None:
        self._abandoned.pop(in_flight, None)
        self._wake()

    def _settle_questions(self, in_flight: InFlight) -> None:
        """What is left open of a request that is over was another one's of the same client, or is open no longer."""
        sibling = next(iter(self._requests.get(in_flight.requester.client_key, ())), None)
        for question in list(in_flight.questions):
            if in_flight.answered and sibling is not None and not self._origins:
                del in_flight.questions[question]
                self._book(question, sibling, certain=False)
            # One that is being withdrawn already must not be disturbed while it tells its client so.
            elif not question.cancelling():
                question.cancel()

    def _book(self, question: asyncio.Task[None], in_flight: InFlight, *, certain: bool) -> None:
        in_flight.questions[question] = certain
        self._owners[question] = in_flight
        self._begin_to_settle(in_flight)

    def _begin_to_settle(self, in_flight: InFlight) -> None:
        """From now on it may ask, until it has waited for an answer for a while."""
        if in_flight not in self._in_flight:
            return
        in_flight.settled = False
        in_flight.beginnings += 1
        self._busy[in_flight] = None
        if in_flight.questions:
            limit = SETTLED_ASKING_ON if in_flight.subject in self._asking_on else SETTLED
            self._after(limit, partial(self._settle, in_flight, in_flight.beginnings))

    def _settle(self, in_flight: InFlight, beginning: int) -> None:
        if not in_flight.left and in_flight.beginnings == beginning:
            del self._busy[in_flight]
            in_flight.settled = all(in_flight.questions.values())
            self._wake()

    def _after(self, limit: float, then: Callable[[], object]) -> None:
        """Do this after a while, once all is dealt with that the server had sent by then.

        While this process is busy, time goes by and what the server says stays in the pipe: that is not silence.
        """
        asyncio.get_running_loop().call_later(limit, self._when_drained, then, _LOOKS, _SHORTEST_LOOK)

    def _when_drained(self, then: Callable[[], object], looks: int, pause: float) -> None:
        # Before each look the loop reads what there is to read.
        drained, loop = self._is_drained(), asyncio.get_running_loop()
        if drained and not looks:
            # Behind the question that may have come in this very turn.
            loop.call_soon(then)
        elif drained:
            loop.call_later(_SHORTEST_LOOK, self._when_drained, then, looks - 1, _SHORTEST_LOOK)
        else:
            loop.call_later(pause, self._when_drained, then, _LOOKS, min(pause * 2, _LONGEST_LOOK))

    async def _turn(self, requester: Requester, subject: str) -> None:
        started = _now()
        while (wait := self._obstacle(requester, subject, started)) is not None:
            await self._change(wait, requester.principal_id)
        if self._waiting:
            self._last_turn += 1
            self._turns[requester.principal_id] = self._last_turn

    def _obstacle(self, requester: Requester, subject: str, started: float) -> float | None:
        """How long at most to wait for a change before it is worth another look; `None` to go on."""
        if self._is_free(requester, subject):
            return None
        # Whoever has settled is no obstacle: the next question is not its own.
        others = [each for each in self._busy if each.requester.client_key != requester.client_key]
        # A question that came while one of these could still ask would have to be refused.
        others += [
            each
            for each in self._abandoned
            if not each.answered and each.requester.principal_key != requester.principal_key
        ]
        loud = [each for each in others if each.subject not in self._quiet]
        if any(each.subject in self._asking or subject in self._asking for each in loud):
            return PLACING
        patience = started + FIRST_USE - _now()
        return patience if (loud or self._keeps_others(requester)) and patience > 0 else None

    def _is_free(self, requester: Requester, subject: str) -> bool:
        """Whether nothing that is known of a request could have it mixed up with another client's."""
        if self._origins or subject in self._quiet:
            return True
        if self._abandoned or self._keeps_others(requester):
            return False
        return len(self._requests.get(requester.client_key, ())) == len(self._in_flight)

    def _keeps_others(self, requester: Requester) -> bool:
        """Whether another principal waits while this one's client is here already: with one request after the other it
        could keep the server for ever."""
        if not self._waiting or requester.client_key not in self._requests:
            return False
        return any(each not in {None, requester.principal_id} for each in self._waiting.values())

    async def _place(self) -> InFlight | None:
        # It can only belong to what was under way when it came.
        candidates = [*self._in_flight, *self._abandoned]
        if not candidates:
            return None
        # What settles later may have asked this just before.
        settled = {each for each in candidates if each.settled}
        deadline = _now() + PLACING
        waiting = _Unplaced()
        self._unplaced[waiting] = None
        try:
            while True:
                candidates = [each for each in candidates if not each.answered]
                likely = self._without_settled(candidates, settled)
                waiting.clients = frozenset(each.requester.client_key for each in likely)
                if len(_rivals(likely)) <= 1:
                    return self._likeliest(likely)
                if self._unplaceable(waiting, likely) or _now() > deadline:
                    raise RpcError(SERVER_ERROR, _WHOSE)
                await self._change(SETTLED)
        finally:
            del self._unplaced[waiting]
            self._wake()

    def _without_settled(self, candidates: list[InFlight], settled: set[InFlight]) -> list[InFlight]:
        """Those that did not wait for an answer themselves, if it is plausible that one of them asks."""
        others = [each for each in candidates if each not in settled]
        return others if any(each.subject not in self._quiet for each in others) else candidates

    def _unplaceable(self, question: _Unplaced, candidates: list[InFlight]) -> bool:
        """Whether waiting is of no use: each of the clients may be waiting for an answer, since as many ask."""
        silent = {each.requester.client_key for each in candidates if not each.questions and not each.left}
        asking = sum(1 for other in self._unplaced if other.clients <= question.clients)
        return len(silent) > 1 and asking >= len(silent)

    def _likeliest(self, candidates: list[InFlight]) -> InFlight:
        """Of one client's requests, the one most likely to have asked: known to ask, else not known to be quiet."""
        present = [each for each in candidates if not each.left]
        if not present:
            raise RpcError(SERVER_ERROR, _GIVEN_UP)
        return max(reversed(present), key=lambda each: (each.subject in self._asking, each.subject not in self._quiet))

    async def _change(self, limit: float, principal: str | None = None) -> None:
        """Wait until somebody came, left or asked, or until the time is over."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[change] = principal
        try:
            await asyncio.wait({change}, timeout=limit)
        finally:
            self._waiting.pop(change, None)

    def _wake(self) -> None:
        if not self._waiting:
            return
        # Until each has looked, it still waits: nobody is to come before it only because all are looking.
        for change in self._in_turns():
            if not change.done():
                change.set_result(None)

    def _in_turns(self) -> Iterable[asyncio.Future[None]]:
        """Those who wait: principals take turns, beginning with the one whose last turn is longest ago."""
        waiting = self._waiting
        if len(set(waiting.values())) <= 1:
            return list(waiting)
        queue: FairQueue[asyncio.Future[None]] = FairQueue()
        # Stable: who has had no turn yet comes in the order of waiting.
        for change in sorted(waiting, key=lambda each: self._turns.get(waiting[each] or "", 0)):
            queue.put(waiting[change] or "", change)
        return [queue.get() for _ in waiting]


def _rivals(candidates: list[InFlight]) -> set[str]:
    """The clients that it may be of; an abandoned request counts only if nobody else of its principal is here."""
    here = {each.requester.principal_key for each in candidates if not each.left}
    return {
        each.requester.client_key for each in candidates if not each.left or each.requester.principal_key not in here
    }


def _now() -> float:
    return asyncio.get_running_loop().time()
