"""A plain call: bytes to bytes, until it turns out to be more than that."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pegboard.result import ToolFailure
from pegboard.servers.errors import RpcError
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Message, Params
from pegboard.servers.question_owners import QuestionOwners
from pegboard.servers.raw_call import CallCancelled, NotPlain, RawCall
from pegboard.servers.requester import NoRequester
from pegboard.servers.transports.transport import Transport
from servers.leaping import LeapingLoop

pytestmark = pytest.mark.anyio

LOG = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%b"}}'
RESULT = b'{"b":1e400, "a":18446744073709551617}'


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """All of this happens in leaping time."""
    return "asyncio", {"loop_factory": LeapingLoop}


class Wire(Transport):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.given_up: list[tuple[int, str]] = []

    async def start(self, peer: JsonRpcPeer) -> None:
        """Nothing to begin."""

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        self.sent.append(message)

    def send_raw(self, request_id: int, text: bytes, name: str | None) -> None:
        """Nothing to send."""

    def cancel(self, request_id: int, reason: str) -> None:
        self.given_up.append((request_id, reason))

    async def close(self) -> None:
        """Nothing to end."""


class Adopter(NoRequester):
    """Somebody who can hear and be asked."""

    def __init__(self) -> None:
        self.heard_of: list[str] = []

    def on_notification(self, method: str, params: Params) -> None:
        self.heard_of.append(params["data"])

    async def on_request(self, method: str, params: Params, on_progress: Callable[[Params], None] | None) -> Message:
        return {"answer to": params["message"]}


@dataclass
class Stage:
    """A server that the test plays, and one call to it."""

    link: JsonRpcPeer
    wire: Wire
    call: RawCall
    number: int
    parties: QuestionOwners
    talked: list[bool] = field(default_factory=list[bool])
    ends: list[bool] = field(default_factory=list[bool])

    def say(self, text: bytes) -> None:
        list(self.link.deliver_text(text, self.number))

    def answer(self, result: bytes = RESULT) -> None:
        self.say(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (self.number, result))


@contextlib.asynccontextmanager
async def staged(*, timeout: float = 60.0, patience: float = 1.0, hears_log: bool = True) -> AsyncGenerator[Stage]:
    """A call under way, of which nothing may be left in the end."""
    wire = Wire()
    link = JsonRpcPeer(wire, label="toy")
    parties = QuestionOwners(origins=True)
    call = RawCall("me", "me", patience=patience, hears_log=hears_log)
    presence = parties.admit_now(call, "tools/call x")
    assert presence is not None
    talked, ends = list[bool](), list[bool]()
    number = call.begin(link, parties, presence, timeout, "handshake", lambda: talked.append(True))
    call.on_end(lambda: ends.append(True))

    def heard(method: str, params: Params, origin: int | None) -> None:
        if (party := parties.listener_of(link.in_flight(origin))) is not None:
            party.on_notification(method, params)

    async def asked(method: str, params: Params, origin: int | None) -> Message:
        task = asyncio.current_task()
        assert task is not None
        owner = await parties.owner(link.in_flight(origin), task)
        assert owner is not None
        try:
            return await owner.requester.on_request(method, params, None)
        finally:
            parties.close_question(task)

    link.on_notification, link.on_request = heard, asked
    yield Stage(link, wire, call, number, parties, talked, ends)
    assert ends == [True]
    assert not link._pending
    assert not link._verbatim
    assert not parties._in_flight
    await link.close()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not link._replies


async def test_a_result_that_comes_soon_and_alone_is_the_bytes_it_was() -> None:
    """And with its end the call is over for everybody."""
    async with staged() as stage:
        stage.answer()
        assert await stage.call.result() == RESULT
        stage.call.end()
        assert not stage.talked


async def test_a_result_that_only_the_general_way_can_read_is_a_result_all_the_same() -> None:
    """Half a character is read there."""
    async with staged() as stage:
        stage.answer(rb'{"a":"\ud800"}')
        assert await stage.call.result() == {"a": "\ud800"}
        stage.call.end()


async def test_a_call_that_takes_its_time_goes_on_as_any_other() -> None:
    """Nothing is sent twice: whoever adopts it gets the answer."""
    async with staged() as stage:
        with pytest.raises(NotPlain):
            await stage.call.result()
        going_on = asyncio.create_task(stage.call.resume_as(Adopter()))
        await asyncio.sleep(0)
        stage.answer(b'{"a":1}')
        assert await going_on == {"a": 1}
        assert stage.call.is_resumed
        assert not stage.wire.sent
        assert not stage.wire.given_up


async def test_what_was_said_meanwhile_is_told_to_whoever_adopts_the_call() -> None:
    """In order, what comes later too, even if the answer is there before anybody has adopted it."""
    async with staged() as stage:
        stage.say(LOG % b"one")
        with pytest.raises(NotPlain):
            await stage.call.result()
        stage.say(LOG % b"two")
        adopter = Adopter()
        going_on = asyncio.create_task(stage.call.resume_as(adopter))
        await asyncio.sleep(0)
        stage.say(LOG % b"three")
        stage.answer()
        # The result was wanted as it is; whoever adopts it gets it read.
        assert (await going_on)["a"] == 18446744073709551617
        assert adopter.heard_of == ["one", "two", "three"]
        assert stage.talked


async def test_a_log_line_that_nobody_hears_does_not_turn_a_call() -> None:
    """Clients of the modern era ask for such lines, or get none."""
    async with staged(hears_log=False) as stage:
        stage.say(LOG % b"one")
        stage.answer()
        assert await stage.call.result() == RESULT
        stage.call.end()


async def test_a_question_is_put_to_whoever_adopts_the_call() -> None:
    """The server is answered once there is somebody who can."""
    async with staged() as stage:
        stage.say(b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}')
        with pytest.raises(NotPlain):
            await stage.call.result()
        assert not stage.wire.sent
        going_on = asyncio.create_task(stage.call.resume_as(Adopter()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert stage.wire.sent == [{"jsonrpc": "2.0", "id": "q", "result": {"answer to": "?"}}]
        stage.answer()
        await going_on


async def test_a_question_of_a_call_that_nobody_adopts_ends_with_it() -> None:
    """It does not wait for ever for somebody who will never come."""
    async with staged() as stage:
        stage.say(b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}')
        with pytest.raises(NotPlain):
            await stage.call.result()
        stage.call.cancel_upstream("cancelled by the client")
        for _ in range(10):
            await asyncio.sleep(0)
        assert not stage.link._replies


async def test_a_call_that_its_client_takes_back_is_withdrawn() -> None:
    """The server is told once, and whatever it still answers reaches nobody."""
    async with staged() as stage:
        stage.call.cancel()
        stage.call.cancel()
        with pytest.raises(CallCancelled):
            await stage.call.result()
        stage.call.cancel_upstream("cancelled by the client")
        assert stage.wire.given_up == [(stage.number, "cancelled by the client")]
        stage.answer()


async def test_a_client_that_goes_away_withdraws_its_call() -> None:
    """By itself: nobody else knows of it."""
    async with staged() as stage:
        waiting = asyncio.create_task(stage.call.result())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert stage.wire.given_up == [(stage.number, "cancelled by the client")]


async def test_a_time_limit_counts_from_the_beginning() -> None:
    """What was spent on the fast path is not given again on the full one."""
    async with staged(timeout=5.0) as stage:
        began = asyncio.get_running_loop().time()
        with pytest.raises(NotPlain):
            await stage.call.result()
        with pytest.raises(ToolFailure, match="within 5 s"):
            await stage.call.resume_as(Adopter())
        assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)
        assert stage.wire.given_up == [(stage.number, "timed out after 5 s")]


async def test_the_time_until_a_call_is_adopted_is_not_the_server_s() -> None:
    """The SDK had to be loaded, or the loop was busy: the server has what is left of the limit from then on."""
    async with staged(timeout=4) as stage:
        with pytest.raises(NotPlain):
            await stage.call.result()
        await asyncio.sleep(20)
        asyncio.get_running_loop().call_later(2.5, stage.answer)
        assert await stage.call.resume_as(Adopter())


async def test_a_link_is_silent_until_its_server_shows_that_it_works_on_a_request() -> None:
    """A question belongs to a request, adopted or not; once that is over, it shows nothing."""
    async with staged() as stage:
        assert stage.link.is_silent
        stage.call._in_flight.extend()
        assert not stage.link.is_silent
        stage.call.end()
        assert stage.link.is_silent


@pytest.mark.parametrize("lost", [True, False])
async def test_what_went_wrong_is_told_to_whoever_adopts_the_call(*, lost: bool) -> None:
    """The server's own error, and the end of the connection."""
    async with staged() as stage:
        if lost:
            stage.link.close_with("it ended")
        else:
            stage.say(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"no"}}' % stage.number)
        with pytest.raises(ToolFailure if lost else RpcError):
            await stage.call.result()
        with pytest.raises(ToolFailure if lost else RpcError):
            await stage.call.resume_as(Adopter())


async def test_an_answer_that_comes_twice_counts_once() -> None:
    """The second one is nobody's."""
    async with staged() as stage:
        stage.answer()
        stage.answer(b'{"other":1}')
        assert await stage.call.result() == RESULT
        stage.call.end()
        stage.answer()


async def test_a_call_that_nobody_adopts_is_taken_back() -> None:
    """Whoever was to go on with it may never have come."""
    async with staged() as stage:
        stage.say(LOG % b"one")
        with pytest.raises(NotPlain):
            await stage.call.result()
        stage.call.release()
        await asyncio.sleep(60)
        assert stage.call.is_over
        assert len(stage.wire.given_up) == 1
        with pytest.raises(ToolFailure, match="was cancelled"):
            await stage.call.resume_as(Adopter())
        stage.call.cancel_upstream("again")
        assert len(stage.wire.given_up) == 1


@pytest.mark.parametrize("answered", [True, False])
async def test_a_call_that_nobody_ever_waits_for_ends(answered: bool) -> None:
    """Its beginner may have been cancelled before it took its first step."""
    async with staged() as stage:
        if answered:
            stage.answer()
        await asyncio.sleep(60)
        assert stage.call.is_over
    # A future whose exception nobody took is reported when it is collected, and that would fail the test.
    del stage
    gc.collect()


async def test_a_call_that_has_just_turned_can_still_be_taken_back() -> None:
    """Whoever waited for it learns of both."""
    async with staged() as stage:
        waiting = asyncio.create_task(stage.call.result())
        await asyncio.sleep(0)
        stage.say(LOG % b"one")
        stage.call.cancel()
        with pytest.raises(NotPlain):
            await waiting
        assert stage.call.is_cancelled
        stage.call.cancel_upstream("cancelled by the client")
        assert len(stage.wire.given_up) == 1
