"""Parked calls: what a client of the modern era is asked by a server of the other, over several requests."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from pegboard.access.access import Access
from pegboard.access.principal import LOCAL, Principal
from pegboard.access.quota import Quota
from pegboard.access.rule import Rule
from pegboard.clients.caller import Caller
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint
from pegboard.listing.view import Filter
from pegboard.relay import parked as module
from pegboard.relay.parked import ParkedCalls
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import Requester

pytestmark = pytest.mark.anyio

LIMIT = 30.0
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
FORM = {"mode": "form", "message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}}
ANSWER = {"action": "accept", "content": {"name": "Ada"}}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}
CALL = {"name": "ask", "arguments": {"a": 1, "b": [1, 2.5, None, 2**70]}}

Server = Callable[[Requester, OnProgress | None], Awaitable[Message]]


class ModernClient:
    """A client of the modern era: each of its requests stands for itself."""

    def __init__(
        self,
        calls: ParkedCalls,
        server: Server,
        capabilities: Mapping[str, Any] | None = None,
        sender: str = "",
        principal: Principal = LOCAL,
    ) -> None:
        self._principal = principal
        self.heard: list[tuple[str, Params]] = []
        self.progress: list[Params] = []
        self.starts = 0
        self._calls = calls
        self._server = server
        self._capabilities = CAPABILITIES if capabilities is None else capabilities
        self._sender = sender

    async def send(self, method: str = "tools/call", params: Params = CALL, **more: Any) -> Message:
        """One request."""
        caller = Caller(
            Client(
                Endpoint(principal=self._principal),
                era="modern",
                capabilities=self._capabilities,
                sender=self._sender,
                filter=Filter(access=self._principal.access),
            ),
            log_level="debug",
            notify=lambda method, params: self.heard.append((method, params)),
            on_progress=self.progress.append,
        )
        async with asyncio.timeout(LIMIT):
            return await self._calls.call(method, {**params, **more}, caller, self._start)

    async def answer(self, asked: Message, *answers: Mapping[str, Any], **more: Any) -> Message:
        """The retry of a request, with answers to the first of the questions, or to all."""
        responses = dict(zip(asked["inputRequests"], answers, strict=False))
        return await self.send(inputResponses=responses, requestState=asked["requestState"], **more)

    async def _start(self, party: Requester, on_progress: OnProgress | None) -> Message:
        self.starts += 1
        return await self._server(party, on_progress)


async def elicit(party: Requester, message: str = "Your name?") -> Message:
    return await party.on_request("elicitation/create", {**FORM, "message": message}, None)


async def asks_once(party: Requester, _: OnProgress | None) -> Message:
    return {"content": [await elicit(party)]}


async def asks_nothing(_: Requester, __: OnProgress | None) -> Message:
    return {"content": []}


class Gated:
    """A server that asks, and does the rest when it is told to."""

    def __init__(self, outcome: Message | Exception) -> None:
        self.party: Requester | None = None
        self.gate = asyncio.Event()
        self.over = asyncio.Event()
        self._outcome = outcome

    async def __call__(self, party: Requester, _: OnProgress | None) -> Message:
        self.party = party
        question = asyncio.create_task(elicit(party))
        try:
            await self.gate.wait()
            if isinstance(self._outcome, Exception):
                raise self._outcome
            return self._outcome
        finally:
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            self.over.set()

    async def finish(self) -> None:
        """Withdraw the question, and be done."""
        self.gate.set()
        async with asyncio.timeout(LIMIT):
            await self.over.wait()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def strangers() -> set[asyncio.Task[Any]]:
    """Every task but the test's own."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that belong together are asked without a pause between them here."""
    monkeypatch.setattr(module, "_TOGETHER", 0.0)


@pytest.fixture
async def calls() -> AsyncGenerator[ParkedCalls]:
    """No call, and in the end none again."""
    before = strangers()
    calls = ParkedCalls()
    yield calls
    await calls.close()
    await settle()
    assert calls.count == 0
    assert not [task for task in strangers() - before if "Call" in repr(task.get_coro())]


# Asking and answering


async def test_a_call_that_asks_nothing_is_just_a_call(calls: ParkedCalls) -> None:
    """Its result comes with the first request, and nothing is kept."""
    client = ModernClient(calls, asks_nothing)
    assert await client.send() == {"content": []}
    assert calls.count == 0


async def test_a_question_parks_the_call_and_the_retry_ends_it(calls: ParkedCalls) -> None:
    """The server's one call lasts over both requests of the client."""
    client = ModernClient(calls, asks_once)
    asked = await client.send()
    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"].values()) == [{"method": "elicitation/create", "params": FORM}]
    assert calls.count == 1
    assert await client.answer(asked, ANSWER) == {"content": [ANSWER]}
    assert (calls.count, client.starts) == (0, 1)


async def test_a_failure_of_the_server_is_the_outcome(calls: ParkedCalls) -> None:
    """Before and after a question, its error is passed on as it is, and nothing is kept."""

    async def refuses(party: Requester, _: OnProgress | None) -> Message:
        if await elicit(party):
            raise RpcError(-32007, "no", {"x": 1})
        return {}

    async def fails(_: Requester, __: OnProgress | None) -> Message:
        raise unavailable("gone")

    client = ModernClient(calls, refuses)
    asked = await client.send()
    with pytest.raises(RpcError) as refused:
        await client.answer(asked, ANSWER)
    assert (refused.value.code, refused.value.data) == (-32007, {"x": 1})
    with pytest.raises(ToolFailure):
        await ModernClient(calls, fails).send()
    assert calls.count == 0


async def test_questions_asked_at_once_go_out_together(calls: ParkedCalls) -> None:
    """Each has a key of its own, and each answer finds its question."""

    async def asks_three(party: Requester, _: OnProgress | None) -> Message:
        return {"content": await asyncio.gather(*(elicit(party, f"{number}?") for number in range(3)))}

    client = ModernClient(calls, asks_three)
    asked = await client.send()
    assert [each["params"]["message"] for each in asked["inputRequests"].values()] == ["0?", "1?", "2?"]
    answers = [{"action": "accept", "content": {"number": number}} for number in range(3)]
    assert await client.answer(asked, *answers) == {"content": answers}


async def test_what_is_not_answered_is_asked_again(calls: ParkedCalls) -> None:
    """A retry without answers, with some of them, or with answers to nothing asks for the rest under a new token."""

    async def asks_two(party: Requester, _: OnProgress | None) -> Message:
        return {"content": await asyncio.gather(elicit(party, "1?"), elicit(party, "2?"))}

    client = ModernClient(calls, asks_two)
    first = await client.send()
    second = await client.send(requestState=first["requestState"])
    third = await client.send(requestState=second["requestState"], inputResponses={"question-99": ANSWER, "": ANSWER})
    assert first["inputRequests"] == second["inputRequests"] == third["inputRequests"]
    fourth = await client.answer(third, ANSWER)
    assert [each["params"]["message"] for each in fourth["inputRequests"].values()] == ["2?"]
    decline = {"action": "decline"}
    assert await client.answer(fourth, decline) == {"content": [ANSWER, decline]}
    assert len({each["requestState"] for each in (first, second, third, fourth)}) == 4


async def test_an_answer_cannot_be_given_twice(calls: ParkedCalls) -> None:
    """The first one counts; a later request that answers the same question again changes nothing."""

    async def asks_two(party: Requester, _: OnProgress | None) -> Message:
        return {"content": await asyncio.gather(elicit(party, "1?"), elicit(party, "2?"))}

    client = ModernClient(calls, asks_two)
    first = await client.send()
    one, two = first["inputRequests"]
    second = await client.send(requestState=first["requestState"], inputResponses={one: ANSWER})
    changed = {one: {"action": "cancel"}, two: ANSWER}
    assert await client.send(requestState=second["requestState"], inputResponses=changed) == {
        "content": [ANSWER, ANSWER]
    }


async def test_several_rounds_each_have_a_token_of_their_own(calls: ParkedCalls) -> None:
    """A server may ask as often as it likes; no key and no token comes twice."""

    async def asks_five(party: Requester, _: OnProgress | None) -> Message:
        return {"content": [await elicit(party, f"{number}?") for number in range(5)]}

    client = ModernClient(calls, asks_five)
    result = await client.send()
    tokens: set[str] = set()
    keys: set[str] = set()
    while "requestState" in result:
        tokens.add(result["requestState"])
        keys |= set(result["inputRequests"])
        assert calls.count == 1
        result = await client.answer(result, ANSWER)
    assert result == {"content": [ANSWER] * 5}
    assert (len(tokens), len(keys), client.starts) == (5, 5, 1)


async def test_a_client_is_asked_only_what_it_can_answer(calls: ParkedCalls) -> None:
    """A question that it did not declare, and one that its era does not have, are refused in its name."""
    refusals: list[RpcError] = []

    async def asks_anything(party: Requester, _: OnProgress | None) -> Message:
        for method in ("sampling/createMessage", "elicitation/create", "tasks/get", "custom/question"):
            try:
                await party.on_request(method, {}, None)
            except RpcError as exc:
                refusals.append(exc)
        return {}

    assert await ModernClient(calls, asks_anything, {}).send() == {}
    assert [exc.code for exc in refusals] == [METHOD_NOT_FOUND] * 4


async def test_a_question_is_put_as_the_client_understands_it(calls: ParkedCalls) -> None:
    """Without what belongs to the server's own hop, and without tasks for a client that knows none."""

    async def asks_with_more(party: Requester, _: OnProgress | None) -> Message:
        meta = {"progressToken": 7, "x": 1}
        return await party.on_request("elicitation/create", {**FORM, "task": {"ttl": 1}, "_meta": meta}, None)

    asked = await ModernClient(calls, asks_with_more).send()
    assert [each["params"] for each in asked["inputRequests"].values()] == [{**FORM, "_meta": {"x": 1}}]


# What is said meanwhile


async def test_what_is_said_while_parked_is_delivered_on_resume(calls: ParkedCalls) -> None:
    """In its order, before what is said afterwards; nobody hears it twice."""
    parties: list[Requester] = []

    async def talks(party: Requester, _: OnProgress | None) -> Message:
        parties.append(party)
        party.on_notification("notifications/message", {"level": "info", "data": 1})
        await elicit(party)
        party.on_notification("notifications/message", {"level": "info", "data": 4})
        return {}

    client = ModernClient(calls, talks)
    asked = await client.send()
    for number in (2, 3):
        parties[0].on_notification("notifications/message", {"level": "info", "data": number})
    assert [params["data"] for _, params in client.heard] == [1]
    await client.answer(asked, ANSWER)
    assert [params["data"] for _, params in client.heard] == [1, 2, 3, 4]


async def test_what_is_said_while_parked_is_bounded(calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that does not stop talking the newest is kept."""
    monkeypatch.setattr(module, "_MAX_BACKLOG", 5)
    server = Gated({})
    client = ModernClient(calls, server)
    asked = await client.send()
    assert server.party is not None
    for number in range(1000):
        server.party.on_notification("notifications/message", {"level": "info", "data": number})
    await server.finish()
    await client.answer(asked, ANSWER)
    assert [params["data"] for _, params in client.heard] == [995, 996, 997, 998, 999]


async def test_progress_reaches_the_request_that_is_there(calls: ParkedCalls) -> None:
    """Of the first request and of its retry alike; while nobody is there it is no news."""
    reports: list[OnProgress] = []

    async def counts(party: Requester, on_progress: OnProgress | None) -> Message:
        assert on_progress is not None
        reports.append(on_progress)
        on_progress({"progress": 1})
        await elicit(party)
        on_progress({"progress": 3})
        return {}

    client = ModernClient(calls, counts)
    asked = await client.send()
    reports[0]({"progress": 2})
    await client.answer(asked, ANSWER)
    assert client.progress == [{"progress": 1}, {"progress": 3}]


# Tokens


def tampered(token: str) -> list[Any]:
    """What is not the token, but looks like it."""
    raw = bytearray(base64.urlsafe_b64decode(token))
    bent = [base64.urlsafe_b64encode(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]).decode() for at in (0, 15, 16)]
    cut = [base64.urlsafe_b64encode(part).decode() for part in (raw[:16], raw[16:], raw[:-1], raw + b"\0", b"")]
    odd: list[Any] = ["", "x", "ä" + token[1:], "\ud800", "A" * 100_000, 0, 1.5, True, False, [], {}, [token]]
    return [*bent, *cut, *odd]


async def test_a_token_that_was_not_given_out_here_is_refused(calls: ParkedCalls) -> None:
    """Whatever is bent, cut, of another shape or from another gateway; the real one is good afterwards."""
    client, other = ModernClient(calls, asks_once), ParkedCalls()
    asked = await client.send()
    foreign = await ModernClient(other, asks_once).send()
    for token in (*tampered(asked["requestState"]), foreign["requestState"]):
        with pytest.raises(RpcError) as refused:
            await client.send(requestState=token, inputResponses={"question-1": ANSWER})
        assert refused.value.code == INVALID_PARAMS
    assert client.starts == 1
    assert await client.answer(asked, ANSWER) == {"content": [ANSWER]}
    await other.close()


async def test_a_token_is_good_once(calls: ParkedCalls) -> None:
    """After its call went on, after it ended, and for two requests that come at the same time."""

    async def asks_two(party: Requester, _: OnProgress | None) -> Message:
        return {"content": [await elicit(party), await elicit(party)]}

    client = ModernClient(calls, asks_two)
    first = await client.send()
    outcomes = await asyncio.gather(*(client.answer(first, ANSWER) for _ in range(3)), return_exceptions=True)
    second = next(outcome for outcome in outcomes if isinstance(outcome, dict))
    refused = [outcome for outcome in outcomes if isinstance(outcome, RpcError)]
    assert [exc.code for exc in refused] == [INVALID_PARAMS] * 2
    assert await client.answer(second, ANSWER) == {"content": [ANSWER, ANSWER]}
    for used in (first, second):
        with pytest.raises(RpcError, match="no longer"):
            await client.answer(used, ANSWER)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "ask", "arguments": {"a": 2, "b": [1, 2.5, None, 2**70]}}),
        ("tools/call", {"name": "ask", "arguments": {"a": 1, "b": [1, 2.5, None, 2**70 + 1]}}),
        ("tools/call", {"name": "ask"}),
        ("tools/call", {"name": "other", "arguments": CALL["arguments"]}),
        ("tools/call", {**CALL, "more": None}),
        ("prompts/get", CALL),
        ("", CALL),
    ],
)
async def test_a_token_belongs_to_one_request(calls: ParkedCalls, method: str, params: Params) -> None:
    """With another method, name or argument it is refused, and still good for its own."""
    client = ModernClient(calls, asks_once)
    asked = await client.send()
    with pytest.raises(RpcError, match="another request") as refused:
        await client.send(method, params, requestState=asked["requestState"], inputResponses={"question-1": ANSWER})
    assert refused.value.code == INVALID_PARAMS
    assert await client.answer(asked, ANSWER) == {"content": [ANSWER]}


async def test_the_order_of_keys_in_a_retry_may_differ(calls: ParkedCalls) -> None:
    """Not every client keeps it, at whatever depth; the order of a list counts."""
    client = ModernClient(calls, asks_once)
    params = {"name": "ask", "arguments": {"a": 1, "b": {"c": 2, "d": [1, 2]}}}
    reordered = {"arguments": {"b": {"d": [1, 2], "c": 2}, "a": 1}, "name": "ask"}
    asked = await client.send("tools/call", params)
    round_trip = {"requestState": asked["requestState"], "inputResponses": {"question-1": ANSWER}}
    turned = {"name": "ask", "arguments": {"a": 1, "b": {"c": 2, "d": [2, 1]}}}
    with pytest.raises(RpcError, match="another request"):
        await client.send("tools/call", turned, **round_trip)
    assert await client.send("tools/call", reordered, **round_trip) == {"content": [ANSWER]}


async def test_a_token_belongs_to_whoever_was_given_it(calls: ParkedCalls) -> None:
    """With other credentials it is refused, and still good for its own."""
    ada, bob = ModernClient(calls, asks_once, sender="ada"), ModernClient(calls, asks_once, sender="bob")
    asked = await ada.send()
    with pytest.raises(RpcError, match="another request") as refused:
        await bob.answer(asked, ANSWER)
    assert refused.value.code == INVALID_PARAMS
    assert await ada.answer(asked, ANSWER) == {"content": [ANSWER]}


async def test_the_envelope_of_a_retry_may_differ(calls: ParkedCalls) -> None:
    """A progress token, for instance, is another one in every request."""
    client = ModernClient(calls, asks_once)
    asked = await client.send(_meta={"progressToken": 1})
    assert await client.answer(asked, ANSWER, _meta={"progressToken": 2, "x": 1}) == {"content": [ANSWER]}


@pytest.mark.parametrize("responses", [[], "x", 1, True, [ANSWER], {"question-1": None}, {"question-1": [ANSWER]}])
async def test_answers_of_the_wrong_shape_change_nothing(calls: ParkedCalls, responses: Any) -> None:
    """They are refused, and the same token is good for a retry that is right."""
    client = ModernClient(calls, asks_once)
    asked = await client.send()
    with pytest.raises(RpcError) as refused:
        await client.send(requestState=asked["requestState"], inputResponses=responses)
    assert refused.value.code == INVALID_PARAMS
    assert calls.count == 1
    assert await client.answer(asked, ANSWER) == {"content": [ANSWER]}


# Ends


async def test_a_call_that_ends_while_parked_keeps_its_result_for_the_retry(calls: ParkedCalls) -> None:
    """The server withdrew its question and finished: the retry, with whatever answer, gets the result."""
    server = Gated({"content": ["done"]})
    client = ModernClient(calls, server)
    asked = await client.send()
    await server.finish()
    assert calls.count == 1
    assert await client.answer(asked, ANSWER) == {"content": ["done"]}
    assert calls.count == 0


async def test_a_result_that_nobody_fetches_is_not_kept_for_ever(
    calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while the token is as good as unknown."""
    monkeypatch.setattr(module, "_KEPT", 0.0)
    server = Gated({})
    client = ModernClient(calls, server)
    asked = await client.send()
    await server.finish()
    async with asyncio.timeout(LIMIT):
        while calls.count:
            await asyncio.sleep(0)
    assert calls._ended == {}
    with pytest.raises(RpcError, match="no longer"):
        await client.answer(asked, ANSWER)


async def test_a_result_that_is_fetched_is_not_forgotten_under_the_hand(
    calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetching it takes back the limit that was set for it."""
    monkeypatch.setattr(module, "_KEPT", 3600.0)
    server = Gated({})
    client = ModernClient(calls, server)
    asked = await client.send()
    await server.finish()
    assert len(calls._ended) == 1
    assert await client.answer(asked, ANSWER) == {}
    assert calls._ended == {}


@pytest.mark.parametrize("failure", [unavailable("timed out"), RpcError(-32000, "server says no"), ValueError("odd")])
async def test_of_a_failure_while_parked_the_reason_is_kept(calls: ParkedCalls, failure: Exception) -> None:
    """The call is gone at once; the retry is told that it no longer waits, and why."""
    server = Gated(failure)
    client = ModernClient(calls, server)
    asked = await client.send()
    await server.finish()
    assert calls.count == 0
    with pytest.raises(RpcError, match=f"no longer.*{failure}") as refused:
        await client.answer(asked, ANSWER)
    assert refused.value.code == INVALID_PARAMS


async def test_the_reasons_that_are_kept_are_bounded(calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many the oldest is forgotten: then the retry hears only that the call no longer waits."""
    monkeypatch.setattr(module, "_MAX_REASONS", 2)
    asked: list[tuple[ModernClient, Message]] = []
    for number in range(3):
        server = Gated(ValueError(f"reason {number}"))
        client = ModernClient(calls, server)
        asked.append((client, await client.send()))
        await server.finish()
    told: list[str] = []
    for client, question in asked:
        with pytest.raises(RpcError, match="no longer") as refused:
            await client.answer(question, ANSWER)
        told.append(refused.value.message)
    assert ["reason" in each for each in told] == [False, True, True]


async def test_a_call_that_fails_with_nobody_there_is_no_stray_error(calls: ParkedCalls) -> None:
    """One whose client went away may fail while it is being cancelled; nothing is reported as never looked at."""
    stray: list[Any] = []

    async def fails_late(party: Requester, _: OnProgress | None) -> Message:
        try:
            await elicit(party)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("late") from None
        return {}

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: stray.append(context))
    client = ModernClient(calls, fails_late)
    request = asyncio.create_task(client.answer(await client.send(), ANSWER))
    await settle()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await settle()
    del request
    gc.collect()
    loop.set_exception_handler(None)
    assert stray == []


async def test_another_question_while_parked_is_asked_on_resume(calls: ParkedCalls) -> None:
    """The server withdrew its first question and asked another: the retry learns of that one."""
    more = asyncio.Event()
    asking = asyncio.Event()

    async def thinks_again(party: Requester, _: OnProgress | None) -> Message:
        question = asyncio.create_task(elicit(party, "first?"))
        await more.wait()
        question.cancel()
        second = asyncio.create_task(elicit(party, "second?"))
        await asyncio.sleep(0)
        asking.set()
        return {"content": [await second]}

    client = ModernClient(calls, thinks_again)
    first = await client.send()
    more.set()
    await asking.wait()
    second = await client.answer(first, {"action": "decline"})
    assert [each["params"]["message"] for each in second["inputRequests"].values()] == ["second?"]
    assert set(first["inputRequests"]).isdisjoint(second["inputRequests"])
    assert await client.answer(second, ANSWER) == {"content": [ANSWER]}


@pytest.mark.parametrize("rounds", [0, 1])
async def test_a_client_that_goes_away_ends_the_call(calls: ParkedCalls, rounds: int) -> None:
    """While its request is there, in the first round or a later one, its leaving cancels what it asked for."""
    ended = asyncio.Event()
    working = asyncio.Event()

    async def works(party: Requester, __: OnProgress | None) -> Message:
        try:
            for _ in range(rounds):
                await elicit(party)
            working.set()
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    client = ModernClient(calls, works)
    request = asyncio.create_task(client.send())
    for _ in range(rounds):
        request = asyncio.create_task(client.answer(await request, ANSWER))
    async with asyncio.timeout(LIMIT):
        await working.wait()
        request.cancel()
        await ended.wait()
    await asyncio.gather(request, return_exceptions=True)
    assert request.cancelled()
    assert calls.count == 0


async def test_a_thousand_abandoned_calls_end_with_their_own_limit(calls: ParkedCalls) -> None:
    """Clients that never come back cost nothing once the servers have given up."""
    limit = asyncio.Event()

    async def gives_up(party: Requester, _: OnProgress | None) -> Message:
        question = asyncio.create_task(elicit(party))
        await limit.wait()
        question.cancel()
        raise unavailable("timed out")

    before = strangers()
    client = ModernClient(calls, gives_up)
    for _ in range(1000):
        await client.send()
    assert (calls.count, client.starts) == (1000, 1000)
    limit.set()
    async with asyncio.timeout(LIMIT):
        while calls.count or strangers() - before:
            await asyncio.sleep(0)
    assert calls._ended == {}


async def test_of_too_many_the_oldest_is_let_go(calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call is cancelled and its token worth nothing; the others wait on. Each round makes a call young again."""
    monkeypatch.setattr(module, "MAX_PARKED", 3)
    ended: list[int] = []

    def numbered(number: int) -> Server:
        async def asks_twice(party: Requester, _: OnProgress | None) -> Message:
            try:
                return {"content": [await elicit(party), await elicit(party)]}
            except asyncio.CancelledError:
                ended.append(number)
                raise

        return asks_twice

    clients = [ModernClient(calls, numbered(number)) for number in range(5)]
    asked = [await client.send() for client in clients[:3]]
    asked[0] = await clients[0].answer(asked[0], ANSWER)
    asked += [await client.send() for client in clients[3:]]
    await settle()
    assert (calls.count, ended) == (3, [1, 2])
    for number in (1, 2):
        with pytest.raises(RpcError, match="no longer"):
            await clients[number].answer(asked[number], ANSWER)
    assert await clients[0].answer(asked[0], ANSWER) == {"content": [ANSWER, ANSWER]}


async def test_closing_leaves_no_task(calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that wait are cancelled and have ended when it returns, and no timer of a kept result is left."""
    monkeypatch.setattr(module, "_KEPT", 3600.0)
    before = strangers()
    server = Gated({})
    await ModernClient(calls, server).send()
    await server.finish()
    for _ in range(10):
        await ModernClient(calls, asks_once).send()
    handles = list(calls._ended.values())
    assert (calls.count, len(handles)) == (11, 1)
    await calls.close()
    assert strangers() == before
    assert calls.count == 0
    assert all(handle.cancelled() for handle in handles)


async def test_closing_ends_calls_that_are_waited_for(calls: ParkedCalls) -> None:
    """Not only those that are parked: nothing goes on behind the gateway's back."""
    ended = asyncio.Event()
    working = asyncio.Event()

    async def works(_: Requester, __: OnProgress | None) -> Message:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    request = asyncio.create_task(ModernClient(calls, works).send())
    async with asyncio.timeout(LIMIT):
        await working.wait()
        await calls.close()
        assert ended.is_set()
        await asyncio.gather(request, return_exceptions=True)
    assert request.done()


async def test_nothing_is_parked_after_closing(calls: ParkedCalls) -> None:
    """A call that holds on and asks while the gateway goes down is refused, and ended."""
    working = asyncio.Event()

    async def holds_on(party: Requester, _: OnProgress | None) -> Message:
        working.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await elicit(party)
        return {}

    request = asyncio.create_task(ModernClient(calls, holds_on).send())
    async with asyncio.timeout(LIMIT):
        await working.wait()
        await calls.close()
        with pytest.raises(RpcError, match="is stopping"):
            await request
    assert calls.count == 0


async def test_a_parked_call_is_of_its_clients_kin(calls: ParkedCalls) -> None:
    """What is parked stands for the request that began it, for as long as it lasts."""
    parties: list[Requester] = []

    async def shows(party: Requester, _: OnProgress | None) -> Message:
        parties.append(party)
        return {}

    for _ in range(2):
        await ModernClient(calls, shows, sender="ada").send()
    assert parties[0].principal_key == parties[1].principal_key
    assert parties[0].client_key != parties[1].client_key


def principal_of(name: str, in_flight: int | None = None) -> Principal:
    return Principal("token", f"token:{name}", name, Access((Rule(quota=Quota(None, in_flight)),)))


async def test_nobodys_calls_go_for_anothers(calls: ParkedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many, whoever has the most gives one up."""
    monkeypatch.setattr(module, "MAX_PARKED", 4)
    modest = ModernClient(calls, asks_once, principal=principal_of("modest"))
    greedy = ModernClient(calls, asks_once, principal=principal_of("greedy"))
    own = await modest.send()
    for _ in range(8):
        await greedy.send()
    assert calls.count == 4
    assert await modest.answer(own, ANSWER) == {"content": [ANSWER]}


async def test_no_more_is_parked_than_may_be_in_flight(calls: ParkedCalls) -> None:
    """A parked call is in flight for its server: the oldest goes for the newest."""
    client = ModernClient(calls, asks_once, principal=principal_of("one", in_flight=2))
    asked = [await client.send() for _ in range(5)]
    assert calls.count == 2
    with pytest.raises(RpcError, match="no longer"):
        await client.answer(asked[0], ANSWER)
    assert await client.answer(asked[-1], ANSWER) == {"content": [ANSWER]}


async def test_what_is_parked_ends_with_its_principal(calls: ParkedCalls) -> None:
    """Those of others wait on."""
    gone, stays = (ModernClient(calls, asks_once, principal=principal_of(name)) for name in ("gone", "stays"))
    theirs, own = await gone.send(), await stays.send()
    calls.end_calls_of({"token:gone"})
    await settle()
    assert calls.count == 1
    with pytest.raises(RpcError, match="no longer"):
        await gone.answer(theirs, ANSWER)
    assert await stays.answer(own, ANSWER) == {"content": [ANSWER]}
