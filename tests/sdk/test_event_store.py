"""A session's memory: what it keeps, what it forgets, and that nobody reads what is not theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from mcp.server.streamable_http import EventMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse

from pegboard.sdk.event_store import AFTERLIFE, EventBuffer, SessionEventStore

pytestmark = pytest.mark.anyio
LIMIT = 30.0
PLENTY = 1_000_000


class Clock:
    """A time that goes only where it is sent."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def note(text: object) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params={"message": text})


def answer(request_id: int | str, text: Any = "done") -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result={"text": text})


def said(message: JSONRPCMessage) -> Any:
    """What a message says."""
    if isinstance(message, JSONRPCResponse):
        return message.result["text"]
    if isinstance(message, JSONRPCError):
        return message.error.message
    return (message.params or {})["message"]


class Reading:
    """A connection that reads on from an event."""

    def __init__(self, replay: SessionEventStore, event_id: str) -> None:
        self.heard: list[Any] = []
        self.ids: list[str | None] = []
        self._news = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.task = asyncio.create_task(replay.replay_events_after(event_id, self._take))

    async def _take(self, event: EventMessage) -> None:
        await self.gate.wait()
        self.heard.append(said(event.message))
        self.ids.append(event.event_id)
        self._news.set()

    async def over(self) -> list[Any]:
        """All of it, once it has ended by itself."""
        async with asyncio.timeout(LIMIT):
            assert await self.task is None
        return self.heard

    async def until(self, heard: Sequence[Any]) -> None:
        async with asyncio.timeout(LIMIT):
            while self.heard != list(heard):
                self._news.clear()
                await self._news.wait()


async def begun(replay: SessionEventStore, event_id: str) -> Reading:
    """A reading that waits for more."""
    reading = Reading(replay, event_id)
    await asyncio.sleep(0)
    assert not reading.task.done()
    return reading


async def test_what_came_after_an_event_is_read_in_order_and_ends_with_the_answer() -> None:
    """The past is replayed, then the stream is over: its answer was the last thing it had to say."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = await replay.store_event("1", None)
    first = await replay.store_event("1", note("a"))
    await replay.store_event("1", note("b"))
    last = await replay.store_event("1", answer(1))
    assert await Reading(replay, start).over() == ["a", "b", "done"]
    again = Reading(replay, first)
    assert await again.over() == ["b", "done"]
    assert again.ids[-1] == last
    assert replay.is_answer(last)
    assert await Reading(replay, last).over() == []


async def test_past_and_future_meet_without_a_gap() -> None:
    """What is said while the past is still being sent is neither lost nor said twice."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = await replay.store_event("1", None)
    await replay.store_event("1", note("past"))
    reading = Reading(replay, start)
    reading.gate.clear()
    await asyncio.sleep(0)
    await replay.store_event("1", note("meanwhile"))
    reading.gate.set()
    await reading.until(["past", "meanwhile"])
    await replay.store_event("1", note("later"))
    await replay.store_event("1", answer(1))
    assert await reading.over() == ["past", "meanwhile", "later", "done"]


async def test_a_stream_says_only_what_is_its_own() -> None:
    """Streams of one session, and of two sessions that count their requests alike, do not mix."""
    total = EventBuffer(max_bytes=PLENTY)
    mine, theirs = SessionEventStore(total), SessionEventStore(total)
    starts = {name: await mine.store_event(name, None) for name in ("1", "2")}
    foreign = await theirs.store_event("1", None)
    await theirs.store_event("1", note("theirs"))
    await theirs.store_event("1", answer(1, "theirs"))
    for name in ("1", "2"):
        await mine.store_event(name, note(f"mine {name}"))
    for name in ("2", "1"):
        await mine.store_event(name, answer(name, f"done {name}"))
    assert await Reading(mine, starts["1"]).over() == ["mine 1", "done 1"]
    assert await Reading(mine, starts["2"]).over() == ["mine 2", "done 2"]
    assert not mine.knows(foreign)
    assert await Reading(mine, foreign).over() == []
    assert await Reading(mine, "").over() == []


@pytest.mark.parametrize("primed", [True, False])
async def test_a_request_id_used_again_is_another_stream(primed: bool) -> None:
    """Reading on in the old stream tells nothing of the new one, and leaves it alone."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    old = await replay.store_event("1", note("old"))
    await replay.store_event("1", answer(1, "old answer"))
    if primed:
        await replay.store_event("1", None)
    new = await replay.store_event("1", note("new"))
    assert replay.running(old) is None
    assert replay.running(new) == "1"
    assert await Reading(replay, old).over() == ["old answer"]


async def test_an_error_without_an_id_does_not_end_the_standing_stream() -> None:
    """Only the answer to its own request ends a stream; a complaint about unreadable input answers none."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = replay.mark("standing")
    reading = await begun(replay, start)
    error = {"code": -32700, "message": "what?"}
    await replay.store_event("standing", JSONRPCError.model_validate({"jsonrpc": "2.0", "id": None, "error": error}))
    await replay.store_event("standing", note("news"))
    await reading.until(["what?", "news"])
    assert replay.running(start) == "standing"
    replay.close()
    await reading.over()


async def test_the_newest_reader_is_the_one_that_lives() -> None:
    """A second reader of a stream ends the first, and each message goes to one of them."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = await replay.store_event("1", None)
    first = await begun(replay, start)
    await replay.store_event("1", note("a"))
    await first.until(["a"])
    second = await begun(replay, start)
    assert await first.over() == ["a"]
    await replay.store_event("1", note("b"))
    await replay.store_event("1", answer(1))
    assert await second.over() == ["a", "b", "done"]
    assert first.heard == ["a"]


async def test_too_many_events_push_out_the_oldest() -> None:
    """Behind a forgotten event nothing is replayed, behind a kept one everything."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY), max_events=3)
    ids = [await replay.store_event("1", note(number)) for number in range(5)]
    assert [replay.knows(event_id) for event_id in ids] == [False, False, True, True, True]
    assert await Reading(replay, ids[1]).over() == []
    reading = await begun(replay, ids[2])
    await reading.until([3, 4])
    replay.close()
    await reading.over()


async def test_too_many_bytes_push_out_the_oldest() -> None:
    """A session keeps no more bytes than it may, whatever the events are like."""
    total = EventBuffer(max_bytes=PLENTY)
    replay = SessionEventStore(total, max_bytes=50_000)
    ids = [await replay.store_event("1", note("x" * 20_000)) for _ in range(4)]
    assert [replay.knows(event_id) for event_id in ids] == [False, False, True, True]
    assert 40_000 < total.bytes <= 50_000


async def test_a_message_larger_than_the_whole_memory_is_passed_on_but_not_kept() -> None:
    """It costs its own stream the past, which has a gap now, and no other stream anything."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY), max_bytes=50_000)
    other = await replay.store_event("2", note("other"))
    start = await replay.store_event("1", None)
    reading = await begun(replay, start)
    huge = await replay.store_event("1", answer(1, "x" * 60_000))
    assert [len(text) for text in await reading.over()] == [60_000]
    assert [replay.knows(event_id) for event_id in (other, start, huge)] == [True, False, False]
    assert replay.hand_out(huge) is None


async def test_calls_that_are_over_are_forgotten_before_calls_that_run() -> None:
    """However many short calls there are meanwhile, a long one can still be read on from its beginning."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY), max_events=10)
    start = await replay.store_event("long", None)
    waiting = await replay.store_event("not fetched", answer("not fetched"))
    for number in range(50):
        await replay.store_event(str(number), None)
        assert replay.hand_out(await replay.store_event(str(number), answer(number)))
    await replay.store_event("long", answer("long"))
    assert await Reading(replay, start).over() == ["done"]
    assert replay.knows(waiting)


async def test_a_delivered_answer_is_not_kept_for_ever() -> None:
    """Some time after its answer went out a stream is forgotten; one whose answer nobody fetched is not."""
    clock = Clock()
    total = EventBuffer(max_bytes=PLENTY, clock=clock)
    one, other = SessionEventStore(total, clock=clock), SessionEventStore(total, clock=clock)
    start = await one.store_event("1", None)
    delivered = await one.store_event("1", answer(1))
    unfetched = await one.store_event("2", answer(2))
    assert one.hand_out(delivered) == answer(1).model_dump_json(by_alias=True, exclude_unset=True)
    clock.now = AFTERLIFE
    await other.store_event("1", note("x"))
    assert one.knows(start)
    clock.now = AFTERLIFE + 1
    # Whoever says something next, in whichever session, clears it away.
    await other.store_event("1", note("x"))
    assert [one.knows(event_id) for event_id in (start, delivered, unfetched)] == [False, False, True]


async def test_all_sessions_together_keep_no_more_than_they_may() -> None:
    """The oldest goes, whoever it belongs to, and the sums stay right."""
    total = EventBuffer(max_bytes=100_000)
    sessions = [SessionEventStore(total, max_bytes=100_000) for _ in range(5)]
    ids = [await session.store_event("1", note("x" * 30_000)) for session in sessions]
    kept = [session.knows(event_id) for session, event_id in zip(sessions, ids, strict=True)]
    assert kept == [False, False, True, True, True]
    assert 90_000 < total.bytes <= 100_000
    for session in sessions:
        session.close()
    assert (total.bytes, len(total.events)) == (0, 0)


async def test_an_ended_session_leaves_nothing_behind() -> None:
    """Its readers are let go, its events too, and what is still said is not kept."""
    total = EventBuffer(max_bytes=PLENTY)
    replay, other = SessionEventStore(total), SessionEventStore(total)
    start = await replay.store_event("1", None)
    replay.hand_out(await replay.store_event("2", answer(2)))
    stays = await other.store_event("1", note("x"))
    reading = await begun(replay, start)
    replay.close()
    assert await reading.over() == []
    await replay.store_event("1", note("too late"))
    assert list(total.events) == [stays]
    other.close()
    assert total.bytes == 0


async def test_a_reader_that_does_not_read_is_let_go_without_a_gap() -> None:
    """It gets the beginning of what it missed and can come again for the rest; nobody waits for it."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY), max_events=4)
    start = replay.mark("1")
    reading = await begun(replay, start)
    reading.gate.clear()
    await replay.store_event("1", note(0))
    await asyncio.sleep(0)
    for number in range(1, 8):
        await replay.store_event("1", note(number))
    reading.gate.set()
    heard = await reading.over()
    assert heard == list(range(len(heard)))
    assert 0 < len(heard) < 8


async def test_a_reader_that_was_cut_off_leaves_the_stream_free() -> None:
    """When a client goes away while it reads, the stream goes on and waits for it."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = await replay.store_event("1", None)
    reading = await begun(replay, start)
    reading.task.cancel()
    await asyncio.gather(reading.task, return_exceptions=True)
    await replay.store_event("1", answer(1))
    assert await Reading(replay, start).over() == ["done"]


async def test_an_answer_that_cannot_be_written_becomes_an_error() -> None:
    """An exception here would end the SDK's router and every stream of the session."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = await replay.store_event("1", None)
    await replay.store_event("1", answer(1, object()))
    assert await Reading(replay, start).over() == ["the message cannot be written as JSON"]


async def test_half_of_a_surrogate_pair_is_read_again_as_it_was_said() -> None:
    """In an error's message and in whatever else was kept."""
    replay = SessionEventStore(EventBuffer(max_bytes=PLENTY))
    start = replay.mark("1")
    await replay.store_event("1", note("cut \ud83d"))
    error = ErrorData(code=1, message="cut \ud83d", data="\ud83d")
    await replay.store_event("1", JSONRPCError(jsonrpc="2.0", id=1, error=error))
    assert await Reading(replay, start).over() == ["cut \ud83d", "cut \ud83d"]
