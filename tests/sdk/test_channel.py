"""A channel: notifications in order and all before the answer, questions with their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError

from pegboard.sdk import channel as module
from pegboard.sdk.channel import ClientChannel, progress_token
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

LIMIT = 30.0


class Outbound:
    """A client's end, which reads when its gate is open."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.options: CallOptions | None = None
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        del opts
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.sent.append((method, params))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        self.asked.append((method, params))
        self.options = opts
        if self.failure is not None:
            raise self.failure
        return {"action": "accept", "big": 2**70}

    @property
    def numbers(self) -> list[int]:
        return [params["n"] for _, params in self.sent]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def pumps() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if "_carry" in repr(task.get_coro())]


# Telling


async def test_notifications_are_sent_in_order_and_all_before_the_end() -> None:
    """Whoever tells does not wait; whoever finishes waits for all that was told."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.gate.clear()
    for number in range(500):
        channel.notify("notifications/message", {"n": number})
    finishing = asyncio.create_task(channel.finish())
    await settle()
    assert (outbound.sent, finishing.done()) == ([], False)
    outbound.gate.set()
    async with asyncio.timeout(LIMIT):
        await finishing
    assert outbound.numbers == list(range(500))
    assert pumps() == []


async def test_one_that_was_never_used_has_nothing_to_finish() -> None:
    """Most requests are answered without a word in between: no task is made for them."""
    channel = ClientChannel(Outbound())
    assert pumps() == []
    await channel.finish()
    channel.drop()


async def test_finishing_twice_is_harmless() -> None:
    """The second finds it done."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    channel.notify("a", {"n": 1})
    async with asyncio.timeout(LIMIT):
        await channel.finish()
        await channel.finish()
    assert outbound.numbers == [1]


async def test_a_client_that_does_not_read_costs_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the newest once it reads again; the one that was on its way is not taken back."""
    monkeypatch.setattr(module, "_MAX_WAITING", 5)
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.gate.clear()
    channel.notify("a", {"n": -1})
    await settle()
    for number in range(1000):
        channel.notify("a", {"n": number})
    assert channel._queue is not None
    assert channel._queue.qsize() == 5
    outbound.gate.set()
    async with asyncio.timeout(LIMIT):
        await channel.finish()
    assert outbound.numbers == [-1, 995, 996, 997, 998, 999]


async def test_a_notification_that_cannot_be_sent_costs_no_other() -> None:
    """The client's stream may be closed for a moment; the call goes on."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.failure = ConnectionError("closed")
    channel.notify("a", {"n": 1})
    await settle()
    outbound.failure = None
    channel.notify("a", {"n": 2})
    async with asyncio.timeout(LIMIT):
        await channel.finish()
    assert outbound.numbers == [2]


async def test_dropping_ends_it_at_once() -> None:
    """Nobody listens any more: what waits is not sent, what comes later is no fault, and no task is left."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.gate.clear()
    channel.notify("a", {"n": 1})
    await settle()
    assert len(pumps()) == 1
    channel.drop()
    channel.notify("a", {"n": 2})
    outbound.gate.set()
    await settle()
    assert (outbound.sent, pumps()) == ([], [])
    channel.drop()


@pytest.mark.parametrize("token", ["t", 7, 0, "", 2**70])
async def test_progress_is_sent_under_the_clients_own_token(token: str | int) -> None:
    """Whatever token the server was given is replaced; the rest stays, in its turn among the notifications."""
    outbound = Outbound()
    channel = ClientChannel(outbound, token)
    assert channel.on_progress is not None
    channel.notify("a", {"n": 1})
    channel.on_progress({"progressToken": "servers", "progress": 2**70, "message": "x", "_meta": {"y": 1}})
    channel.notify("a", {"n": 2})
    await channel.finish()
    progress = {"progressToken": token, "progress": 2**70, "message": "x", "_meta": {"y": 1}}
    assert outbound.sent == [("a", {"n": 1}), ("notifications/progress", progress), ("a", {"n": 2})]


def test_who_did_not_ask_for_progress_gets_none() -> None:
    """Without a token there is nothing that takes it."""
    assert ClientChannel(Outbound()).on_progress is None


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (None, None),
        ({}, None),
        ({"_meta": None}, None),
        ({"_meta": []}, None),
        ({"_meta": {}}, None),
        ({"_meta": {"progressToken": None}}, None),
        ({"_meta": {"progressToken": True}}, None),
        ({"_meta": {"progressToken": 1.5}}, None),
        ({"_meta": {"progressToken": ["t"]}}, None),
        ({"_meta": {"progressToken": 0}}, 0),
        ({"_meta": {"progressToken": "t"}}, "t"),
    ],
)
def test_a_progress_token_is_a_text_or_a_whole_number(params: dict[str, Any] | None, token: object) -> None:
    """Anything else counts as none."""
    assert progress_token(params) == token


# Asking


async def test_a_question_brings_the_clients_answer() -> None:
    """Its result as it is, without waiting for what is still to be told."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.gate.clear()
    channel.notify("a", {"n": 1})
    params = {"message": "?", "extra": 2**70}
    assert await channel.ask("elicitation/create", params, None) == {"action": "accept", "big": 2**70}
    assert outbound.asked == [("elicitation/create", params)]
    assert outbound.options == {}
    channel.drop()


async def test_a_clients_error_is_its_answer() -> None:
    """Code, message and data are its own."""
    outbound = Outbound()
    outbound.failure = MCPError(-1, "user said no", {"x": 1})
    with pytest.raises(RpcError) as refused:
        await ClientChannel(outbound).ask("elicitation/create", {}, None)
    assert (refused.value.code, refused.value.message, refused.value.data) == (-1, "user said no", {"x": 1})


async def test_a_client_without_a_way_back_refuses() -> None:
    """It is told as a method that it does not have."""
    outbound = Outbound()
    outbound.failure = NoBackChannelError("elicitation/create")
    with pytest.raises(RpcError, match="elicitation/create") as refused:
        await ClientChannel(outbound).ask("elicitation/create", {}, None)
    assert refused.value.code == -32601


async def test_a_clients_progress_with_a_question_is_passed_on() -> None:
    """What it did not say is not said."""
    outbound = Outbound()
    told: list[Any] = []
    await ClientChannel(outbound).ask("sampling/createMessage", {}, told.append)
    assert outbound.options is not None
    report = outbound.options.get("on_progress")
    assert report is not None
    await report(0.5, None, None)
    await report(1, 2, "half")
    assert told == [{"progress": 0.5}, {"progress": 1, "total": 2, "message": "half"}]


# Withdrawing


class Slow(Outbound):
    """A client that thinks, and has to be told when it need not any more."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()
        self.withdrawn = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            await self.told.wait()
            self.withdrawn = True
        return {}


@pytest.mark.parametrize("how", ["finish", "abandon"])
async def test_a_request_does_not_end_before_its_questions_are_withdrawn(how: str) -> None:
    """The word of it goes out on the request's own stream, which closes with the answer."""
    outbound = Slow()
    channel = ClientChannel(outbound)
    question = asyncio.create_task(channel.ask("elicitation/create", {}, None))
    await settle()
    question.cancel()
    ending = asyncio.create_task(getattr(channel, how)())
    await settle()
    assert not ending.done()
    outbound.told.set()
    async with asyncio.timeout(LIMIT):
        await ending
    assert outbound.withdrawn
    assert question.cancelled()
    assert not channel._asking


async def test_a_question_that_does_not_end_holds_up_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is worth more than the word to a client that does not listen."""
    monkeypatch.setattr(module, "_WITHDRAWING", 0.0)
    outbound = Slow()
    channel = ClientChannel(outbound)
    channel.notify("a", {"n": 1})
    question = asyncio.create_task(channel.ask("elicitation/create", {}, None))
    await settle()
    question.cancel()
    async with asyncio.timeout(LIMIT):
        await channel.finish()
    assert outbound.numbers == [1]
    outbound.told.set()
    await asyncio.gather(question, return_exceptions=True)


@pytest.mark.parametrize("how", ["finish", "abandon"])
async def test_a_question_that_goes_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """It may belong to another request of the same client by now; only what is being withdrawn is waited for."""
    monkeypatch.setattr(module, "_WITHDRAWING", 3600.0)
    outbound = Slow()
    channel = ClientChannel(outbound)
    question = asyncio.create_task(channel.ask("elicitation/create", {}, None))
    await settle()
    async with asyncio.timeout(LIMIT):
        await getattr(channel, how)()
    assert not question.done()
    outbound.told.set()
    question.cancel()
    await asyncio.gather(question, return_exceptions=True)


async def test_nothing_is_taken_after_the_end() -> None:
    """The answer is out: whatever is told afterwards has no request to belong to, and no task is made for it."""
    for told_before in (True, False):
        outbound = Outbound()
        channel = ClientChannel(outbound, 7)
        if told_before:
            channel.notify("a", {"n": 1})
        await channel.finish()
        channel.notify("a", {"n": 2})
        assert channel.on_progress is not None
        channel.on_progress({"progress": 1})
        await settle()
        assert outbound.sent == ([("a", {"n": 1})] if told_before else [])
        assert pumps() == []


async def test_abandoning_leaves_no_task() -> None:
    """What waits to be told is not sent any more."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    outbound.gate.clear()
    channel.notify("a", {"n": 1})
    await settle()
    await channel.abandon()
    await settle()
    assert (outbound.sent, pumps()) == ([], [])


async def test_a_question_that_was_answered_is_waited_for_no_more() -> None:
    """Whether by a result or by an error."""
    outbound = Outbound()
    channel = ClientChannel(outbound)
    await channel.ask("elicitation/create", {}, None)
    outbound.failure = MCPError(-1, "no")
    with pytest.raises(RpcError):
        await channel.ask("elicitation/create", {}, None)
    assert not channel._asking
