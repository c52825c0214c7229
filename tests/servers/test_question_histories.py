"""Whose question it is, in every order of things: no question is ever put to another client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.servers import question_owners as module
from pegboard.servers.errors import RpcError
from servers.leaping import LeapingLoop
from servers.stage import LIMIT, Client, Stage, residue

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "work"]),
        # Seconds that the server works, and that the client thinks.
        st.sampled_from([0.0, 0.0, 0.05, 0.1, 1.0, 3.0, 12.0]),
        st.sampled_from([0.0, 0.05, 0.1, 0.5, 2.5, 20.0]),
    ),
    max_size=4,
)
CALLS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from([0.0, 0.0, 0.1, 1.0, 6.0, 20.0]),
        # After how many seconds the client gives up, and for how many more the server goes on.
        st.none() | st.tuples(st.sampled_from([0.0, 0.07, 0.5, 2.0, 11.0]), st.sampled_from([0.0, 0.01, 0.4, 2.9])),
        STEPS,
    ),
    min_size=1,
    max_size=8,
)
Steps = list[tuple[str, float, float]]
Plan = list[tuple[str, str, float, tuple[float, float] | None, Steps]]


@dataclass
class History:
    """A server that does many calls at once, and where its questions went."""

    stage: Stage
    placed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    asked: int = 0
    refused: int = 0
    nobodys: int = 0
    dropped: int = 0

    async def run(self, plan: Plan) -> None:
        async with asyncio.TaskGroup() as group:
            for client, subject, start, gives_up, steps in plan:
                group.create_task(self._call(group, client, subject, start, gives_up, steps))

    async def _call(
        self,
        group: asyncio.TaskGroup,
        client: str,
        subject: str,
        start: float,
        gives_up: tuple[float, float] | None,
        steps: Steps,
    ) -> None:
        """The server does not hear at once that a call was given up, and may be done before it does."""
        await asyncio.sleep(start)
        who = self.stage.clients.setdefault(client, Client(client))
        async with self.stage.parties.admit(who, subject) as presence:
            work = group.create_task(self._work(group, client, steps))
            await asyncio.wait({work}, timeout=gives_up[0] if gives_up is not None else None)
            presence.answered = work.done()
        if gives_up is not None and not work.done():
            await asyncio.wait({work}, timeout=gives_up[1])
            presence.answered = work.done()
            work.cancel()

    async def _work(self, group: asyncio.TaskGroup, client: str, steps: Steps) -> None:
        """One question at a time: the next comes after the answer, and the call's own answer after that."""
        for what, works, thinks in steps:
            await asyncio.sleep(works)
            if what == "ask":
                self.asked += 1
                question = group.create_task(self._ask(client, thinks))
                await asyncio.wait({question})

    async def _ask(self, client: str, thinks: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            owner = await self.stage.parties.owner(None, task)
        except RpcError:
            self.refused += 1
            return
        if owner is None:
            self.nobodys += 1
            return
        self.placed.append((client, owner.requester.client_key))
        try:
            await asyncio.sleep(thinks)
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        finally:
            self.stage.parties.close_question(task)


def told(plan: Plan) -> History:
    """What became of it all, in leaping time: none of them waits for ever, and nothing is left."""

    async def story() -> History:
        history = History(Stage())
        async with asyncio.timeout(LIMIT):
            await history.run(plan)
        assert residue(history.stage.parties) == (0, 0, 0)
        assert not history.stage.parties._owners
        await asyncio.sleep(module.ABANDONED_GRACE + 1)
        assert not history.stage.parties._abandoned
        return history

    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(story())


@settings(max_examples=400, deadline=None)
@given(CALLS)
def test_a_question_is_never_put_to_another_client(plan: Plan) -> None:
    """In every order of calls, questions, answers and ends, with calls that are given up while the server goes on."""
    history = told(plan)
    assert [asked for asked, _ in history.placed] == [answered for _, answered in history.placed]
    assert len(history.placed) + history.refused + history.nobodys == history.asked


@settings(max_examples=300, deadline=None)
@given(CALLS)
def test_where_every_call_is_waited_for_no_question_goes_astray(plan: Plan) -> None:
    """Each reaches its own client or is refused, and none is lost; of a single client, none is refused."""
    history = told([(client, subject, start, None, steps) for client, subject, start, _, steps in plan])
    assert [asked for asked, _ in history.placed] == [answered for _, answered in history.placed]
    assert len(history.placed) + history.refused == history.asked
    assert (history.dropped, history.nobodys) == (0, 0)
    if len({client for client, *_ in plan}) == 1:
        assert history.refused == 0
