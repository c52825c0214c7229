"""Whose question it is: on a pipe nothing says it, so the order of things has to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from pegboard.servers import question_owners as module
from servers.leaping import LeapingLoop
from servers.stage import LIMIT, Client, Question, Stage, residue, settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """All of this happens in leaping time."""
    return "asyncio", {"loop_factory": LeapingLoop}


@pytest.fixture
async def stage() -> AsyncGenerator[Stage]:
    """A pipe to one server; in the end nothing of it is left."""
    stage = Stage()
    async with asyncio.timeout(LIMIT):
        yield stage
    await stage.clear()
    assert residue(stage.parties) == (0, 0, 0)


# Who may come in


async def test_two_clients_with_unknown_subjects_take_turns(stage: Stage) -> None:
    """Of a first use nobody knows yet whether it asks: the other client's waits until it is over."""
    first = await stage.call("a", "x")
    second = await stage.call("b", "y")
    assert (first.here, second.here) == (True, False)
    await first.end()
    await settle()
    assert second.here


async def test_a_first_use_does_not_wait_for_ever(stage: Stage) -> None:
    """A long call of one client delays another's first use by a few seconds, not by its own length."""
    await stage.call("a", "x")
    second = await stage.call("b", "y")
    await asyncio.sleep(module.FIRST_USE - 0.1)
    assert not second.here
    await asyncio.sleep(0.2)
    assert second.here


async def test_what_asks_waits_as_long_as_it_takes(stage: Stage) -> None:
    """What is known to ask is leased to one client at a time, however long that is."""
    first = await stage.call("a", "asks")
    await (await stage.ask()).answer()
    second = await stage.call("b", "asks")
    await asyncio.sleep(module.FIRST_USE * 10)
    assert not second.here
    await first.end()
    await settle()
    assert second.here


async def test_a_first_use_beside_one_that_asks_waits_for_it(stage: Stage) -> None:
    """Patience ends only where nobody is known to ask: here the next question could be either's."""
    first = await stage.call("a", "asks")
    await (await stage.ask()).answer()
    second = await stage.call("b", "new")
    await asyncio.sleep(module.FIRST_USE * 10)
    assert not second.here
    await first.end()
    await settle()
    assert second.here


async def test_quiet_subjects_run_side_by_side(stage: Stage) -> None:
    """What has shown that it does not ask runs for all clients at once, even beside one that asks."""
    await stage.hush("quiet", "silent")
    calls = [await stage.call(client, "quiet") for client in "abc"]
    calls.append(await stage.call("d", "silent"))
    calls.append(await stage.call("e", "unknown"))
    assert all(call.here for call in calls)


async def test_a_call_that_fails_or_is_cancelled_proves_nothing(stage: Stage) -> None:
    """Only a call that was answered shows that its subject does not ask."""
    await (await stage.call("a", "x")).cancel()
    with contextlib.suppress(LookupError):
        async with stage.parties.admit(Client("a"), "x"):
            raise LookupError
    await stage.call("a", "x")
    second = await stage.call("b", "x")
    assert not second.here


async def test_what_was_quiet_until_it_asked_is_quiet_no_longer(stage: Stage) -> None:
    """A subject that asks once takes turns from then on, and a later silent call does not change that."""
    await stage.hush("x")
    first = await stage.call("a", "x")
    await (await stage.ask()).answer()
    await first.end()
    await (await stage.call("a", "x")).end()
    third = await stage.call("a", "x")
    fourth = await stage.call("b", "x")
    assert (third.here, fourth.here) == (True, False)


async def test_whoever_has_its_question_out_is_no_obstacle(stage: Stage) -> None:
    """A client that thinks about its answer does not keep the others out, once it has asked all it wanted to ask."""
    await stage.call("a", "asks")
    question = await stage.ask()
    second = await stage.call("b", "asks")
    assert not second.here
    await asyncio.sleep(module.SETTLED * 2)
    assert second.here
    assert question.owner is not None


async def test_a_second_question_at_once_finds_nobody_else(stage: Stage) -> None:
    """Until it has had the time to come, no other client is let in for whom it could be taken."""
    first = await stage.call("a", "eager")
    await stage.ask()
    second = await stage.call("b", "new")
    await asyncio.sleep(module.SETTLED / 2)
    assert (await stage.ask()).owner is first.presence
    assert not second.here
    await asyncio.sleep(module.SETTLED_ASKING_ON * 2)
    assert second.here


async def test_what_is_not_read_yet_is_no_silence(stage: Stage) -> None:
    """While this process is busy, the second question stays in the pipe for longer than it may take to come."""
    first = await stage.call("a", "eager")
    await stage.ask()
    second = await stage.call("b", "new")
    stage.drained = lambda: False
    await asyncio.sleep(module.SETTLED * 20)
    assert not second.here
    assert (await stage.ask()).owner is first.presence
    stage.drained = lambda: True
    await asyncio.sleep(module.SETTLED_ASKING_ON * 2)
    assert second.here


@pytest.mark.parametrize("known", ["unknown", "asking"])
async def test_a_clients_own_call_never_waits_for_itself(stage: Stage, known: str) -> None:
    """A client that calls again while its own call is under way, perhaps because of it, is let in at once."""
    await stage.call("a", "x")
    if known == "asking":
        await (await stage.ask()).answer()
    assert (await stage.call("a", "x")).here
    assert (await stage.call("a", "y")).here


async def test_where_the_wire_tells_the_origin_nobody_waits() -> None:
    """Over HTTP a question says which request it belongs to, so that all run side by side."""
    stage = Stage(origins=True)
    calls = [await stage.call(client, "x") for client in "abc"]
    assert all(call.here for call in calls)
    await stage.clear()


async def test_a_waiter_that_is_cancelled_leaves_nothing_behind(stage: Stage) -> None:
    """A client that gives up while it waits for its turn was never there, and the next one is not held up."""
    first = await stage.call("a", "x")
    waiters = [await stage.call("b", "y"), await stage.call("c", "z")]
    await waiters[0].cancel()
    assert residue(stage.parties) == (1, 0, 1)
    await first.end()
    await settle()
    assert waiters[1].here


@pytest.mark.parametrize("known", [True, False])
async def test_another_client_waits_while_a_given_up_call_may_still_ask(stage: Stage, known: bool) -> None:
    """A question that came in this time could be of either, and would have to be refused."""
    first = await stage.call("a", "x")
    if known:
        await stage.ask()
    await first.cancel()
    second = await stage.call("b", "x")
    assert not second.here
    await asyncio.sleep(module.ABANDONED_GRACE * 1.1)
    assert second.here
    assert (await stage.ask()).owner is second.presence


@pytest.mark.parametrize("why", ["its own", "answered", "quiet"])
async def test_a_given_up_call_is_no_obstacle_where_it_mixes_up_nobody(stage: Stage, why: str) -> None:
    """For the same client, once it is answered after all, and for what never asks, nothing has to wait."""
    await stage.hush("quiet")
    first = await stage.call("a", "x")
    await stage.ask()
    await first.cancel()
    if why == "answered":
        first.answered_late()
    second = await stage.call("a" if why == "its own" else "b", "quiet" if why == "quiet" else "x")
    assert second.here


# Whose question it is


async def test_a_question_with_one_client_present_is_placed(stage: Stage) -> None:
    """Alone on the connection, it can be nobody else's."""
    call = await stage.call("a", "x")
    question = await stage.ask()
    assert question.owner is call.presence


async def test_a_question_with_nobody_present_is_nobodys(stage: Stage) -> None:
    """What a server asks by itself is for its listener to judge."""
    question = await stage.ask()
    assert question.task.done()
    assert (question.owner, question.refusal) == (None, None)


@pytest.mark.parametrize("origins", [True, False])
async def test_with_an_origin_it_is_placed_at_once(origins: bool) -> None:
    """Whatever else runs, waits or is unplaced: who is named is who is asked."""
    stage = Stage(origins=origins)
    await stage.hush("x")
    calls = [await stage.call(client, "x") for client in "abc"]
    unplaced = await stage.ask()
    for call in calls:
        question = await stage.ask(call.presence)
        assert question.owner is call.presence
    assert unplaced.waits
    await stage.clear()


async def test_with_two_clients_it_waits_until_one_is_answered(stage: Stage) -> None:
    """From then on the server asks nothing for it: it can only be the other's."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    question = await stage.ask()
    await asyncio.sleep(module.SETTLED * 10)
    assert question.waits
    await first.end()
    await settle()
    assert question.owner is second.presence


async def test_leaving_without_an_answer_rules_out_nobody(stage: Stage) -> None:
    """A server may not have heard yet that a call was given up: its question must not reach the other client."""
    await stage.hush("x")
    first, _ = await stage.call("a", "x"), await stage.call("b", "x")
    question = await stage.ask()
    await first.cancel()
    await asyncio.sleep(module.PLACING - 1)
    assert question.waits
    await asyncio.sleep(1 + module.SETTLED * 2)
    assert question.refusal is not None
    assert question.refusal.code == -32000


async def test_an_answer_that_comes_too_late_rules_out_all_the_same(stage: Stage) -> None:
    """Nobody waits for it any more, but it shows that the server asks nothing else for that call."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    question = await stage.ask()
    await first.cancel()
    await settle()
    assert question.waits
    first.answered_late()
    await asyncio.sleep(module.SETTLED * 2)
    assert question.owner is second.presence


async def test_with_two_clients_it_is_not_of_the_one_that_has_settled(stage: Stage) -> None:
    """Whoever waits for its own answer asks nothing else; after a while it is out of the question."""
    first = await stage.call("a", "x")
    asked = await stage.ask()
    second = await stage.call("b", "x")
    await asyncio.sleep(module.SETTLED * 2)
    question = await stage.ask()
    assert asked.owner is first.presence
    assert question.owner is second.presence


async def test_what_settles_later_may_have_asked_before(stage: Stage) -> None:
    """A question that came right behind another one may be of the same call; that no third one comes proves nothing."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "new")
    await stage.ask(first.presence)
    question = await stage.ask()
    await asyncio.sleep(module.SETTLED * 3)
    assert question.waits
    await second.end()
    await settle()
    assert question.owner is first.presence


@pytest.mark.parametrize("look", [1, 2, 3, 4])
async def test_what_is_read_when_the_time_is_up_came_before(stage: Stage, look: int) -> None:
    """After a stall the time is up before the bytes are read that came meanwhile: they have a few turns of the loop."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "new")
    looks, questions = 0, list[Question]()

    def drained() -> bool:
        nonlocal looks
        looks += 1
        if looks == look:
            questions.append(Question(stage.parties))
        return True

    stage.drained = drained
    await stage.ask(first.presence)
    await asyncio.sleep(module.SETTLED * 2)
    assert [question.waits for question in questions] == [True]
    await second.end()
    await settle()
    assert questions[0].owner is first.presence


async def test_an_answer_ends_being_settled(stage: Stage) -> None:
    """Once it has its answer, a call can ask again: from then on the next question may be its own."""
    await stage.call("a", "x")
    asked = await stage.ask()
    second = await stage.call("b", "x")
    await asyncio.sleep(module.SETTLED * 2)
    await asked.answer()
    question = await stage.ask()
    await asyncio.sleep(module.SETTLED * 10)
    assert question.waits
    await second.end()
    await settle()
    assert question.owner is not None
    assert question.owner.requester is stage.clients["a"]


async def test_who_asks_on_before_its_answer_is_given_more_time(stage: Stage) -> None:
    """A subject that has asked twice at once settles later, so that its second question finds the right client."""
    await stage.call("a", "eager")
    await stage.ask()
    await stage.ask()
    second = await stage.call("b", "eager")
    await asyncio.sleep(module.SETTLED_ASKING_ON / 2)
    assert not second.here
    await asyncio.sleep(module.SETTLED_ASKING_ON)
    assert (await stage.ask()).owner is second.presence


async def test_what_is_found_to_ask_on_settles_anew(stage: Stage) -> None:
    """One call of a kind has asked twice at once: another of that kind, which had settled, may do so too."""
    await stage.hush("quiet")
    first, other = await stage.call("a", "eager"), await stage.call("b", "quiet")
    await stage.ask(first.presence)
    await asyncio.sleep(module.SETTLED * 2)
    second = await stage.call("c", "eager")
    for _ in range(2):
        await stage.ask(second.presence)
    question = await stage.ask()
    await other.end()
    await asyncio.sleep(module.SETTLED * 2)
    assert question.waits


async def test_what_does_something_else_stays_settled_when_another_asks_on(stage: Stage) -> None:
    """A call of another kind that waits for its answer has asked all it wanted: the next question is not its own."""
    asking = await stage.call("a", "calm")
    await stage.ask(asking.presence)
    await asyncio.sleep(module.SETTLED * 2)
    eager = await stage.call("b", "eager")
    for _ in range(2):
        await stage.ask(eager.presence)
    assert (await stage.ask()).owner is eager.presence


async def test_of_two_silent_clients_two_questions_cannot_both_wait(stage: Stage) -> None:
    """The newest is refused; the other is placed once its rival has left."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    older = await stage.ask()
    newer = await stage.ask()
    assert older.waits
    assert newer.refusal is not None
    assert newer.refusal.code == -32000
    await second.end()
    await settle()
    assert older.owner is first.presence


async def test_of_three_silent_clients_the_third_question_is_refused(stage: Stage) -> None:
    """As long as one of them may still be at work, the questions of the others can wait."""
    await stage.hush("x")
    calls = [await stage.call(client, "x") for client in "abc"]
    questions = [await stage.ask() for _ in calls]
    assert [question.waits for question in questions] == [True, True, False]
    assert questions[2].refusal is not None
    await calls[2].end()
    await settle()
    assert [question.refusal is not None for question in questions].count(True) == 2


async def test_a_question_belongs_to_what_was_under_way_when_it_came(stage: Stage) -> None:
    """Who joins while it waits is let in, and is never taken for the one that asks."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    question = await stage.ask()
    third, again = await stage.call("c", "x"), await stage.call("a", "x")
    assert third.here
    assert again.here
    await second.end()
    await settle()
    assert question.owner is first.presence


async def test_a_newcomer_does_not_inherit_a_question(stage: Stage) -> None:
    """Of those that were there one was given up and one answered: it was the first one's, and nobody else's."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    question = await stage.ask()
    third = await stage.call("c", "x")
    await first.cancel()
    await second.end()
    await settle()
    assert third.here
    assert question.owner is None
    assert question.refusal is not None


async def test_a_question_that_cannot_be_placed_in_time_is_refused(stage: Stage) -> None:
    """The refusal says how each client could have the server to itself."""
    await stage.hush("x")
    await stage.call("a", "x")
    await stage.call("b", "x")
    question = await stage.ask()
    await asyncio.sleep(module.PLACING - 0.1)
    assert question.waits
    await asyncio.sleep(module.SETTLED + 0.2)
    assert question.refusal is not None
    assert question.refusal.code == -32000
    assert '"instance": "session"' in question.refusal.message


async def test_a_question_that_is_withdrawn_unplaced_counts_no_more(stage: Stage) -> None:
    """Cancelled while it waits, it is no reason to refuse the next one."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    withdrawn = await stage.ask()
    withdrawn.task.cancel()
    await settle()
    assert len(stage.parties._unplaced) == 0
    question = await stage.ask()
    assert question.waits
    await first.end()
    await settle()
    assert question.owner is second.presence


async def test_a_calls_open_questions_are_cancelled_with_it(stage: Stage) -> None:
    """However a call ends, nobody is left thinking about an answer that has no use."""
    for how in ("end", "cancel"):
        call = await stage.call("a", "x")
        questions = [await stage.ask(), await stage.ask()]
        await getattr(call, how)()
        await settle()
        assert all(question.task.cancelled() for question in questions)


async def test_of_one_clients_calls_the_one_that_asks_is_the_likeliest(stage: Stage) -> None:
    """Known to ask goes before unknown, unknown before quiet, and of equals the newest."""
    await stage.hush("quiet")
    asks = await stage.call("a", "asks")
    await (await stage.ask()).answer()
    calls = {subject: await stage.call("a", subject) for subject in ("quiet", "old", "new")}
    question = await stage.ask()
    assert question.owner is asks.presence
    await question.answer()
    await asks.end()
    question = await stage.ask()
    assert question.owner is calls["new"].presence
    await question.answer()
    for subject in ("new", "old"):
        await calls[subject].end()
    assert (await stage.ask()).owner is calls["quiet"].presence


async def test_one_that_waits_is_ruled_out_only_where_another_may_ask(stage: Stage) -> None:
    """Beside what is known to be quiet, the next question is the first one's again, however long it waits."""
    await stage.hush("quiet")
    first = await stage.call("a", "asks")
    await stage.ask()
    second = await stage.call("b", "quiet")
    await asyncio.sleep(module.SETTLED * 2)
    question = await stage.ask()
    await asyncio.sleep(module.SETTLED * 10)
    assert question.waits
    await second.end()
    await settle()
    assert question.owner is first.presence


# What is left open


async def test_a_question_outlives_an_answered_call_if_it_was_its_siblings(stage: Stage) -> None:
    """Of two calls of one client it was taken for the wrong one's: with that one answered, it is the other's."""
    asks, slow = await stage.call("a", "asks"), await stage.call("a", "slow")
    question = await stage.ask()
    assert question.owner is slow.presence
    await slow.end()
    await settle()
    assert not question.task.done()
    assert stage.parties._owners[question.task] is asks.presence
    await asks.end()
    await settle()
    assert question.task.cancelled()


async def test_a_question_is_not_inherited_by_another_client(stage: Stage) -> None:
    """Its own call was answered, and nobody else of its client is there: it is open no longer."""
    await stage.hush("quiet")
    first, second = await stage.call("a", "asks"), await stage.call("b", "quiet")
    question = await stage.ask(first.presence)
    await first.end()
    await settle()
    assert question.task.cancelled()
    assert second.presence is not None
    assert not second.presence.questions


async def test_a_question_of_a_call_that_was_given_up_is_withdrawn(stage: Stage) -> None:
    """Even with another call of its client there: nobody wants its outcome any more."""
    await stage.call("a", "asks")
    slow = await stage.call("a", "slow")
    question = await stage.ask()
    assert question.owner is slow.presence
    await slow.cancel()
    await settle()
    assert question.task.cancelled()


async def test_where_the_wire_tells_the_origin_nothing_is_inherited() -> None:
    """There is no doubt whose the question was."""
    stage = Stage(origins=True)
    await stage.call("a", "x")
    call = await stage.call("a", "y")
    question = await stage.ask(call.presence)
    await call.end()
    await settle()
    assert question.task.cancelled()
    await stage.clear()


async def test_a_question_that_is_being_withdrawn_is_not_disturbed(stage: Stage) -> None:
    """It has to tell its client; a second cancellation would cut that short."""
    call = await stage.call("a", "x")
    told = asyncio.Event()

    async def ask() -> None:
        task = asyncio.current_task()
        assert task is not None
        await stage.parties.owner(None, task)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            told.set()
            stage.parties.close_question(task)

    question = asyncio.create_task(ask())
    await settle()
    question.cancel()
    await settle()
    await call.end()
    await asyncio.gather(question, return_exceptions=True)
    assert told.is_set()


async def test_whatever_could_wait_for_an_answer_has_its_time_again(stage: Stage) -> None:
    """All requests of the client that is asked, as it may be any of them that waits; nobody else's."""
    await stage.hush("x")
    calls = [await stage.call(client, "x") for client in "aab"]
    extended: list[int] = []
    for number, call in enumerate(calls):
        assert call.presence is not None
        call.presence.extend = lambda number=number: extended.append(number)
    question = await stage.ask(calls[0].presence)
    stage.parties.extend(question.task)
    assert extended == [0, 1]
    await question.answer()
    stage.parties.extend(question.task)
    assert extended == [0, 1]


# What was given up


async def test_a_call_that_was_given_up_may_still_ask(stage: Stage) -> None:
    """For a while its question could come, so that the other client's is not taken for granted."""
    await stage.hush("y")
    await (await stage.call("a", "x")).cancel()
    await stage.call("b", "y")
    question = await stage.ask()
    await asyncio.sleep(module.PLACING + module.SETTLED * 2)
    assert question.owner is None
    assert question.refusal is not None
    assert '"instance": "session"' in question.refusal.message


async def test_a_call_that_was_given_up_is_forgotten_after_a_while(stage: Stage) -> None:
    """A server that goes on for longer is beyond help; the others must be able to be asked."""
    await (await stage.call("a", "x")).cancel()
    second = await stage.call("b", "y")
    await asyncio.sleep(module.ABANDONED_GRACE + 0.1)
    assert not stage.parties._abandoned
    assert (await stage.ask()).owner is second.presence


async def test_a_given_up_call_that_is_answered_late_asks_nothing(stage: Stage) -> None:
    """Nobody has to wait until it is forgotten."""
    await stage.hush("y")
    first = await stage.call("a", "x")
    await first.cancel()
    second = await stage.call("b", "y")
    first.answered_late()
    assert (await stage.ask()).owner is second.presence


async def test_a_question_of_nothing_but_given_up_calls_is_refused(stage: Stage) -> None:
    """Its client is gone, and it is not what a server asks by itself either."""
    await (await stage.call("a", "x")).cancel()
    question = await stage.ask()
    assert question.owner is None
    assert question.refusal is not None
    assert "given up" in question.refusal.message


async def test_a_stray_question_of_the_same_person_harms_nobody(stage: Stage) -> None:
    """Where the given-up call is of the same principal as somebody present, its question can be put to that one."""
    await stage.hush("quiet")
    await (await stage.call("request-1", "x", principal="ada")).cancel()
    second = await stage.call("request-2", "y", principal="ada")
    assert (await stage.ask()).owner is second.presence
    third = await stage.call("request-3", "quiet", principal="bob")
    await asyncio.sleep(module.SETTLED * 2)
    await third.cancel()
    assert (await stage.ask()).waits


async def test_an_answered_call_haunts_nobody(stage: Stage) -> None:
    """Its answer was the last of it."""
    await (await stage.call("a", "x")).end()
    second = await stage.call("b", "y")
    assert not stage.parties._abandoned
    assert (await stage.ask()).owner is second.presence


async def test_where_the_wire_tells_the_origin_nothing_haunts() -> None:
    """A question of what is over names it."""
    stage = Stage(origins=True)
    await (await stage.call("a", "x")).cancel()
    assert not stage.parties._abandoned
    await stage.clear()


@pytest.mark.parametrize("answered", [True, False])
async def test_a_call_given_up_after_its_question_may_still_ask(stage: Stage, answered: bool) -> None:
    """The server may go on, with the answer or the refusal that it got, before it hears that the call was given up."""
    first = await stage.call("a", "asks")
    question = await stage.ask()
    second = await stage.call("b", "asks")
    await asyncio.sleep(module.SETTLED * 2)
    assert second.here
    if answered:
        await question.answer()
    await first.cancel()
    assert (await stage.ask()).waits
    first.answered_late()
    await asyncio.sleep(module.SETTLED * 2)
    assert (await stage.ask()).owner is second.presence


async def test_a_quiet_call_that_was_given_up_may_still_ask(stage: Stage) -> None:
    """That it never asked before does not make its first question another client's."""
    await stage.hush("x")
    await (await stage.call("a", "x")).cancel()
    second = await stage.call("b", "x")
    assert (await stage.ask()).owner is not second.presence


async def test_a_given_up_calls_question_does_not_settle_its_sibling(stage: Stage) -> None:
    """It was taken for the sibling's, which goes on all the same: what that asks next is not another client's."""
    first, second = await stage.call("a", "x"), await stage.call("a", "y")
    assert (await stage.ask()).owner is second.presence
    await first.cancel()
    other = await stage.call("b", "z")
    await asyncio.sleep(module.ABANDONED_GRACE + 1)
    assert other.here
    assert (await stage.ask()).owner is not other.presence


async def test_a_given_up_call_is_not_forgotten_for_a_sibling_that_is_answered(stage: Stage) -> None:
    """As long as the sibling was there it could be taken for its question; afterwards it is nobody's else."""
    await stage.hush("quiet")
    first, given_up = await stage.call("a", "x"), await stage.call("a", "y")
    other = await stage.call("b", "quiet")
    await given_up.cancel()
    question = await stage.ask()
    await first.end()
    await settle()
    assert question.owner is not other.presence


async def test_what_may_have_asked_is_not_taken_for_quiet(stage: Stage) -> None:
    """Of two calls of one client it cannot be told which one asked: neither has shown that it does not."""
    asks, slow = await stage.call("a", "asks"), await stage.call("a", "slow")
    question = await stage.ask()
    assert question.owner is slow.presence
    await slow.end()
    await question.answer()
    await asks.end()
    assert "asks" not in stage.parties._quiet


async def test_a_newcomers_question_does_not_cost_an_older_one_its_place(stage: Stage) -> None:
    """The older one waits for those that were there before; that more of them wait now is no reason to refuse it."""
    await stage.hush("x")
    first, second = await stage.call("a", "x"), await stage.call("b", "x")
    older = await stage.ask()
    await stage.call("c", "x")
    await stage.ask()
    await asyncio.sleep(module.SETTLED * 3)
    await first.end()
    await settle()
    assert older.owner is second.presence


# Who hears


async def test_what_is_said_is_heard_by_the_one_it_belongs_to(stage: Stage) -> None:
    """With an origin by that one alone; without one by the only client that there ever was."""
    calls = [await stage.call("a", "x") for _ in range(2)]
    assert stage.parties.listener_of(None) is stage.clients["a"]
    for call in calls:
        await call.end()
    assert stage.parties.listener_of(None) is None
    other = await stage.call("b", "x")
    assert stage.parties.listener_of(other.presence) is stage.clients["b"]
    assert stage.parties.listener_of(None) is None
    await other.end()
    await stage.call("a", "x")
    assert stage.parties.listener_of(None) is None


async def test_requests_of_one_person_are_one_clients(stage: Stage) -> None:
    """Where each request stands for itself, whose they are tells; of two at once nobody knows which one is meant."""
    await (await stage.call("request-1", "x", principal="ada")).end()
    await stage.call("request-2", "x", principal="ada")
    assert stage.parties.listener_of(None) is stage.clients["request-2"]
    third = await stage.call("request-3", "x", principal="ada")
    assert stage.parties.listener_of(None) is None
    await third.end()
    assert stage.parties.listener_of(None) is stage.clients["request-2"]
    await (await stage.call("request-4", "x", principal="bob")).end()
    assert stage.parties.listener_of(None) is None


async def test_who_ever_used_the_connection_is_known(stage: Stage) -> None:
    """What a server says late is heard by the only client it ever had, and by nobody once there were two."""
    assert stage.parties.only is None
    for _ in range(2):
        await (await stage.call("a", "x")).end()
        assert stage.parties.only == "a"
    await (await stage.call("b", "x")).end()
    assert stage.parties.only is None
    await (await stage.call("a", "x")).end()
    assert stage.parties.only is None
