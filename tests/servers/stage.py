"""A stage for questions on a pipe: clients that call, a server that asks, and whose question each is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pegboard.servers.errors import RpcError
from pegboard.servers.question_owners import InFlight, QuestionOwners
from pegboard.servers.requester import NoRequester

# In the time of the loop below, which costs none.
LIMIT = 3600.0


class Client(NoRequester):
    """A client with a name."""

    def __init__(self, name: str, principal: str | None = None) -> None:
        self.client_key = name
        self.principal_key = principal or name

    def __repr__(self) -> str:
        return self.client_key


class Call:
    """One request under way, until it is told to end."""

    def __init__(self, parties: QuestionOwners, client: Client, subject: str) -> None:
        self.client = client
        self.presence: InFlight | None = None
        self._end = asyncio.Event()
        self.task = asyncio.create_task(self._run(parties, subject))

    async def _run(self, parties: QuestionOwners, subject: str) -> None:
        async with parties.admit(self.client, subject) as self.presence:
            await self._end.wait()

    @property
    def here(self) -> bool:
        return self.presence is not None

    async def end(self) -> None:
        """The server has answered it."""
        assert self.presence is not None
        self.presence.answered = True
        self._end.set()
        await self.task

    async def cancel(self) -> None:
        """Its client wants no answer any more."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def answered_late(self) -> None:
        """The server answers what nobody waits for any more."""
        assert self.presence is not None
        self.presence.answered = True


class Question:
    """Something that a server asks, until it is answered."""

    def __init__(self, parties: QuestionOwners, origin: InFlight | None = None) -> None:
        self.owner: InFlight | None = None
        self.refusal: RpcError | None = None
        self._parties = parties
        self._answered = asyncio.Event()
        self.task = asyncio.create_task(self._run(origin))

    async def _run(self, origin: InFlight | None) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            self.owner = await self._parties.owner(origin, task)
        except RpcError as exc:
            self.refusal = exc
            return
        if self.owner is None:
            return
        try:
            await self._answered.wait()
        finally:
            self._parties.close_question(task)

    @property
    def waits(self) -> bool:
        return self.owner is None and not self.task.done()

    async def answer(self) -> None:
        self._answered.set()
        await self.task


class Stage:
    """A connection over a pipe, and what happens on it."""

    def __init__(self, *, origins: bool = False) -> None:
        # Whether all is dealt with that was read.
        self.drained: Callable[[], bool] = lambda: True
        self.parties = QuestionOwners(origins=origins, drained=self._is_drained)
        self.clients: dict[str, Client] = {}
        self._calls: list[Call] = []
        self._questions: list[Question] = []

    def _is_drained(self) -> bool:
        return self.drained()

    async def call(self, client: str, subject: str, principal: str | None = None) -> Call:
        """A client's call, as far as it gets at once."""
        who = self.clients.setdefault(client, Client(client, principal))
        self._calls.append(Call(self.parties, who, subject))
        await settle()
        return self._calls[-1]

    async def ask(self, origin: InFlight | None = None) -> Question:
        """A question of the server, as far as it gets at once."""
        self._questions.append(Question(self.parties, origin))
        await settle()
        return self._questions[-1]

    async def hush(self, *subjects: str) -> None:
        """Show of each of these that it asks nothing."""
        for subject in subjects:
            await (await self.call("first", subject)).end()

    async def clear(self) -> None:
        """Nobody is left."""
        for each in (*self._questions, *self._calls):
            each.task.cancel()
        await asyncio.gather(*(each.task for each in (*self._questions, *self._calls)), return_exceptions=True)


def residue(parties: QuestionOwners) -> tuple[int, int, int]:
    """Who is present, what is unplaced, and who waits."""
    assert set(parties._busy) <= set(parties._in_flight)
    assert set(parties._owners.values()) <= set(parties._in_flight)
    assert {each for own in parties._requests.values() for each in own} == set(parties._in_flight)
    assert all(parties._requests.values())
    return len(parties._in_flight), len(parties._unplaced), len(parties._waiting)


async def settle() -> None:
    """Let everything happen that can happen without time passing."""
    for _ in range(10):
        await asyncio.sleep(0)
