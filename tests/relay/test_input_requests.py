"""Rounds: a modern server's wishes for input, as questions to a client of the handshake era."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from pegboard.clients.caller import Caller
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.protocol.codes import URL_ELICITATION_REQUIRED
from pegboard.relay import input_requests as module
from pegboard.relay.input_requests import fulfil, retry_after_url_elicitation, wants_input
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.attribution import attribute
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import NoRequester
from servers.leaping import LeapingLoop

pytestmark = pytest.mark.anyio

LIMIT = 30.0
PATIENCE = 60.0
DONE = {"content": [], "resultType": "complete"}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}


def wish(state: object = "s", /, **questions: Any) -> Message:
    """A result that is none yet."""
    wished: Message = {"resultType": "input_required", "requestState": state}
    if questions:
        wished["inputRequests"] = {
            key: {"method": "elicitation/create", "params": {"message": message}} for key, message in questions.items()
        }
    return wished


class Server:
    """A modern server that answers each request with the next of what it was given."""

    def __init__(self, *results: Message) -> None:
        self._results = list(results)
        self.received: list[dict[str, Any]] = []

    async def send(self, more: dict[str, Any]) -> Message:
        self.received.append(more)
        return self._results.pop(0)


class AskedClient:
    """A handshake client that answers questions."""

    def __init__(self, answer: Callable[[Params], Any] | None = None) -> None:
        self.asked: list[tuple[str, Params]] = []
        self._answer = answer or (lambda params: {"said": params["message"].removeprefix("[toy] ")})

    def caller(self, capabilities: Mapping[str, Any] = CAPABILITIES) -> Caller:
        return Caller(Client(session="a", capabilities=capabilities), ask=self._ask)

    async def _ask(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        del on_progress
        self.asked.append((method, params))
        answer = self._answer(params)
        return await answer if asyncio.iscoroutine(answer) else answer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that wants to be asked again is asked at once."""
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.0)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.0)


@pytest.mark.parametrize(
    ("result", "wants"),
    [
        ({"resultType": "input_required"}, True),
        ({"resultType": "complete"}, False),
        ({"resultType": "something/else"}, False),
        ({"resultType": None}, False),
        ({"inputRequests": {}}, False),
        ({}, False),
    ],
)
def test_only_the_result_type_says_that_input_is_wanted(result: Message, wants: bool) -> None:
    """A result that has no type, or one that nobody knows, is a result."""
    assert wants_input(result) == wants


async def test_a_result_is_given_as_it_is() -> None:
    """Nobody is asked and nothing is sent."""
    client, server = AskedClient(), Server()
    assert await fulfil(DONE, server.send, client.caller(), "toy", PATIENCE) is DONE
    assert (client.asked, server.received) == ([], [])


async def test_answers_go_back_with_the_state_under_their_keys() -> None:
    """Each round sends the answers to its own questions and the state it came with, untouched."""
    states = [{"deep": [1, None]}, "", None]
    server = Server(wish(states[1], b="2?"), wish(states[2], c="3?"), DONE)
    client = AskedClient()
    assert await fulfil(wish(states[0], a="1?"), server.send, client.caller(), "toy", PATIENCE) is DONE
    assert server.received == [
        {"inputResponses": {"a": {"said": "1?"}}, "requestState": states[0]},
        {"inputResponses": {"b": {"said": "2?"}}, "requestState": states[1]},
        {"inputResponses": {"c": {"said": "3?"}}, "requestState": states[2]},
    ]
    assert [params for _, params in client.asked] == [
        {"message": f"[toy] {number}?", "_meta": {"pegboard/server": "toy"}} for number in (1, 2, 3)
    ]


async def test_a_wish_without_state_is_answered_without_state() -> None:
    """What was not given is not made up."""
    first = wish(a="1?")
    del first["requestState"]
    server = Server(DONE)
    await fulfil(first, server.send, AskedClient().caller(), "toy", PATIENCE)
    assert server.received == [{"inputResponses": {"a": {"said": "1?"}}}]


async def test_questions_of_one_round_are_asked_at_the_same_time() -> None:
    """A client sees all of them before it has answered the first."""
    seen = asyncio.Barrier(3)

    async def answer(params: Params) -> Message:
        await seen.wait()
        return {"said": params["message"].removeprefix("[toy] ")}

    server = Server(DONE)
    async with asyncio.timeout(LIMIT):
        await fulfil(wish(a="1?", b="2?", c="3?"), server.send, AskedClient(answer).caller(), "toy", PATIENCE)
    assert list(server.received[0]["inputResponses"].items()) == [
        ("a", {"said": "1?"}),
        ("b", {"said": "2?"}),
        ("c", {"said": "3?"}),
    ]


@pytest.mark.parametrize("nothing", [{}, None])
async def test_a_wish_that_asks_nothing_is_asked_again(nothing: Any) -> None:
    """With its state and without answers: it only wants more time."""
    first = {**wish("one"), "inputRequests": nothing}
    client, server = AskedClient(), Server(wish("two"), DONE)
    assert await fulfil(first, server.send, client.caller(), "toy", PATIENCE) is DONE
    assert server.received == [{"requestState": "one"}, {"requestState": "two"}]
    assert client.asked == []


@pytest.mark.parametrize("odd", [[], [1], "x", "", 5, True])
async def test_a_wish_of_the_wrong_shape_is_a_broken_answer_at_once(odd: Any) -> None:
    """It asks something, but nobody can say what: the server is not asked again."""
    client, server = AskedClient(), Server(DONE)
    with pytest.raises(ToolFailure) as failed:
        await fulfil({**wish(), "inputRequests": odd}, server.send, client.caller(), "toy", PATIENCE)
    assert failed.value.error.code is ToolErrorCode.EXECUTION_FAILED
    assert (client.asked, server.received) == ([], [])


async def test_a_server_may_ask_in_so_many_rounds() -> None:
    """The last of them is still answered; rounds that ask nothing do not count."""
    wishes = [wish(number, a="?") for number in range(module._MAX_ROUNDS - 1)]
    server = Server(wish(), *wishes, wish(), wish(), DONE)
    assert await fulfil(wish(a="?"), server.send, AskedClient().caller(), "toy", PATIENCE) is DONE


async def test_a_server_that_never_has_enough_is_stopped() -> None:
    """After many rounds its answer counts as broken."""
    server = Server(*(wish(number, a="?") for number in range(100)))
    with pytest.raises(ToolFailure) as failed:
        await fulfil(wish(a="?"), server.send, AskedClient().caller(), "toy", PATIENCE)
    assert failed.value.error.code is ToolErrorCode.EXECUTION_FAILED
    assert len(server.received) == module._MAX_ROUNDS


def in_leaping_time(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        runner.run(story())


class Later(Server):
    """A server that wants to be asked again until a moment has come."""

    def __init__(self, moment: float) -> None:
        super().__init__()
        self._moment = moment

    async def send(self, more: dict[str, Any]) -> Message:
        self.received.append(more)
        return DONE if asyncio.get_running_loop().time() >= self._moment else wish()


@pytest.mark.parametrize(("seconds", "in_time"), [(PATIENCE - 5, True), (PATIENCE + 5, False)])
def test_whoever_wants_more_time_has_the_calls_own_limit(
    monkeypatch: pytest.MonkeyPatch, seconds: float, in_time: bool
) -> None:
    """However often it is asked again meanwhile, and with pauses between; then the call has timed out."""
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.05)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 1.0)

    async def story() -> None:
        server = Later(asyncio.get_running_loop().time() + seconds)
        if in_time:
            assert await fulfil(wish(), server.send, Caller(), "toy", PATIENCE) is DONE
        else:
            with pytest.raises(ToolFailure, match="timed out") as failed:
                await fulfil(wish(), server.send, Caller(), "toy", PATIENCE)
            assert (failed.value.error.code, failed.value.error.retryable) == (ToolErrorCode.UNAVAILABLE, True)
        assert module._MAX_ROUNDS < len(server.received) < PATIENCE + 20

    in_leaping_time(story)


def test_a_client_that_never_answers_has_the_calls_own_limit() -> None:
    """Then its question is withdrawn, the call has timed out, and the server is sent nothing."""
    withdrawn: list[bool] = []

    async def never(_: Params) -> Message:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.append(True)
        return {}

    async def story() -> None:
        server = Server()
        with pytest.raises(ToolFailure, match="nobody answered") as failed:
            await fulfil(wish(a="?"), server.send, AskedClient(never).caller(), "toy", PATIENCE)
        assert failed.value.error.code is ToolErrorCode.UNAVAILABLE
        assert (withdrawn, server.received) == ([True], [])

    in_leaping_time(story)


def test_each_round_has_the_whole_limit_for_its_answers() -> None:
    """Whoever thinks for long, several times, is within it every time."""

    async def thinks(_: Params) -> Message:
        await asyncio.sleep(PATIENCE - 1)
        return {}

    async def story() -> None:
        server = Server(wish(a="?"), wish(a="?"), DONE)
        assert await fulfil(wish(a="?"), server.send, AskedClient(thinks).caller(), "toy", PATIENCE) is DONE

    in_leaping_time(story)


def test_the_time_for_an_answer_is_not_taken_from_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a client's long thought, a server that then wants more time has the whole limit for it."""
    monkeypatch.setattr(module, "_FIRST_PAUSE", 1.0)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 1.0)

    async def thinks(_: Params) -> Message:
        await asyncio.sleep(PATIENCE - 1)
        return {}

    async def story() -> None:
        server = Later(asyncio.get_running_loop().time() + PATIENCE + 5)
        assert await fulfil(wish(a="?"), server.send, AskedClient(thinks).caller(), "toy", PATIENCE) is DONE

    in_leaping_time(story)


async def test_the_first_refusal_is_the_outcome() -> None:
    """It names the server and the question, keeps code and data, and the other questions are withdrawn."""
    withdrawn = asyncio.Event()

    async def answer(params: Params) -> Message:
        if params["message"] == "[toy] no?":
            raise RpcError(-1, "user said no", {"x": 1})
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        return {}

    server = Server()
    with pytest.raises(RpcError, match=r"toy.*elicitation/create.*user said no") as refused:
        async with asyncio.timeout(LIMIT):
            await fulfil(wish(a="1?", b="no?"), server.send, AskedClient(answer).caller(), "toy", PATIENCE)
    assert (refused.value.code, refused.value.data) == (-1, {"x": 1})
    assert withdrawn.is_set()
    assert server.received == []


async def test_a_client_that_cannot_answer_is_not_asked() -> None:
    """What it did not declare is refused in its name."""
    client = AskedClient()
    with pytest.raises(RpcError) as refused:
        await fulfil(wish(a="?"), Server().send, client.caller({}), "toy", PATIENCE)
    assert refused.value.code == -32601
    assert client.asked == []


async def test_whoever_cannot_be_asked_at_all_is_told_what_to_do() -> None:
    """A call over REST or from Python fails as not implemented, and is not worth another try."""
    with pytest.raises(ToolFailure) as failed:
        await fulfil(wish(a="?"), Server().send, Caller(), "toy", PATIENCE)
    assert (failed.value.error.code, failed.value.error.retryable) == (ToolErrorCode.NOT_IMPLEMENTED, False)
    assert "MCP client" in failed.value.error.message


async def test_whoever_cannot_be_asked_can_still_wait() -> None:
    """A wish for nothing but time needs no client."""
    assert await fulfil(wish(), Server(DONE).send, Caller(), "toy", PATIENCE) is DONE


@pytest.mark.parametrize("question", [None, "x", {}, {"method": None}, {"method": 5, "params": {}}, []])
async def test_a_question_without_a_method_is_a_broken_answer(question: Any) -> None:
    """Nothing can be put to the client, and the call fails with a reason."""
    first = {"resultType": "input_required", "inputRequests": {"a": question}}
    with pytest.raises(ToolFailure) as failed:
        await fulfil(first, Server().send, AskedClient().caller(), "toy", PATIENCE)
    assert failed.value.error.code is ToolErrorCode.EXECUTION_FAILED


@pytest.mark.parametrize("params", [None, [], "x"])
async def test_a_question_without_usable_params_has_none(params: Any) -> None:
    """It is put all the same: `roots/list` needs none."""
    first = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", "params": params}}}
    client, server = AskedClient(lambda _: {"roots": []}), Server(DONE)
    await fulfil(first, server.send, client.caller(), "toy", PATIENCE)
    assert client.asked == [("roots/list", {"_meta": {"pegboard/server": "toy"}})]


async def test_a_client_that_goes_away_withdraws_its_questions() -> None:
    """Nothing is sent to the server, and nothing is left."""
    withdrawn = asyncio.Event()
    asked = asyncio.Event()

    async def answer(_: Params) -> Message:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        return {}

    server = Server()
    call = asyncio.create_task(fulfil(wish(a="?"), server.send, AskedClient(answer).caller(), "toy", PATIENCE))
    async with asyncio.timeout(LIMIT):
        await asked.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()
    assert withdrawn.is_set()
    assert server.received == []


@pytest.mark.parametrize("given", [{}, {"elicitationId": "mine"}])
async def test_a_page_to_visit_has_an_id_before_the_modern_era(given: dict[str, str]) -> None:
    """One is made up where the server gave none, another for each; a form has none."""
    url = {"mode": "url", "url": "https://example.com", "message": "?", **given}
    first: Message = {
        "resultType": "input_required",
        "inputRequests": {
            key: {"method": "elicitation/create", "params": params}
            for key, params in {"a": url, "b": url, "form": {"message": "?"}}.items()
        },
    }
    client = AskedClient(lambda _: {"action": "accept"})
    await fulfil(first, Server(DONE).send, client.caller({"elicitation": {"form": {}, "url": {}}}), "toy", PATIENCE)
    ids = [params.get("elicitationId") for _, params in client.asked]
    assert all(isinstance(each, str) for each in ids[:2])
    assert len(set(ids[:2])) == (1 if given else 2)
    assert ids[2] is None
    assert all({**url, **params} == params for _, params in client.asked[:2])


# Pages to visit first, of a handshake server for a modern client


PAGES = [{"elicitationId": "1", "url": "https://a", "message": "A"}, {"mode": "url", "url": "https://b"}]


class Reluctant:
    """A handshake server that refuses until its user has been to some pages."""

    def __init__(self, refusals: int, data: Any = None, code: int = URL_ELICITATION_REQUIRED) -> None:
        self.sent = 0
        self._refusals = refusals
        self.refusal = RpcError(code, "visit first", {"elicitations": PAGES} if data is None else data)

    async def send(self) -> Message:
        self.sent += 1
        if self.sent <= self._refusals:
            raise self.refusal
        return DONE


class Visitor(NoRequester):
    """A modern client that is asked to visit pages."""

    def __init__(self, *actions: str) -> None:
        self.asked_for: list[Params] = []
        self._actions = list(actions)

    async def on_request(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        assert (method, on_progress) == ("elicitation/create", None)
        self.asked_for.append(params)
        return {"action": self._actions.pop(0) if self._actions else "accept"}


async def test_pages_are_put_to_the_client_and_the_request_is_sent_again() -> None:
    """Every page is a question in url mode, with all that the server said of it."""
    server, visitor = Reluctant(1), Visitor()
    assert await retry_after_url_elicitation(server.send, visitor, "toy") is DONE
    assert visitor.asked_for == [attribute("elicitation/create", {"mode": "url", **page}, "toy") for page in PAGES]
    assert server.sent == 2


async def test_a_request_that_needs_no_pages_is_sent_once() -> None:
    """Nobody is asked anything."""
    server, visitor = Reluctant(0), Visitor()
    assert await retry_after_url_elicitation(server.send, visitor, "toy") is DONE
    assert (server.sent, visitor.asked_for) == (1, [])


@pytest.mark.parametrize("action", ["decline", "cancel", "", "ACCEPT"])
async def test_a_page_that_is_not_visited_leaves_the_refusal(action: str) -> None:
    """One of them is enough; the request is not sent again."""
    server = Reluctant(1)
    with pytest.raises(RpcError) as refused:
        await retry_after_url_elicitation(server.send, Visitor("accept", action), "toy")
    assert refused.value is server.refusal
    assert server.sent == 1


async def test_no_question_about_a_page_is_left_behind() -> None:
    """Where one of them fails in an unheard-of way, the others are withdrawn with it."""
    withdrawn: list[str] = []

    class Odd(Visitor):
        async def on_request(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
            if params["url"] == "https://b":
                raise ValueError("odd")
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.append(params["url"])
            return {}

    with pytest.raises(ExceptionGroup):
        async with asyncio.timeout(LIMIT):
            await retry_after_url_elicitation(Reluctant(1).send, Odd(), "toy")
    assert withdrawn == ["https://a"]


async def test_whoever_goes_away_withdraws_the_questions_about_pages() -> None:
    """Nothing is left, and the request is not sent again."""
    withdrawn: list[str] = []

    class Thinking(Visitor):
        async def on_request(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.append(params["url"])
            return {}

    server = Reluctant(1)
    call = asyncio.create_task(retry_after_url_elicitation(server.send, Thinking(), "toy"))
    for _ in range(5):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert (sorted(withdrawn), server.sent) == (["https://a", "https://b"], 1)


async def test_whoever_cannot_visit_pages_gets_the_refusal() -> None:
    """The server's own, not that of the question."""
    server = Reluctant(1)
    with pytest.raises(RpcError) as refused:
        await retry_after_url_elicitation(server.send, NoRequester(), "toy")
    assert refused.value is server.refusal


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, -32000),
        ({}, URL_ELICITATION_REQUIRED),
        ([], URL_ELICITATION_REQUIRED),
        ({"elicitations": []}, URL_ELICITATION_REQUIRED),
        ({"elicitations": "x"}, URL_ELICITATION_REQUIRED),
    ],
)
async def test_another_error_is_passed_on_as_it_is(data: Any, code: int) -> None:
    """Another code, or no page to visit."""
    server, visitor = Reluctant(1, data, code), Visitor()
    with pytest.raises(RpcError) as refused:
        await retry_after_url_elicitation(server.send, visitor, "toy")
    assert refused.value is server.refusal
    assert (server.sent, visitor.asked_for) == (1, [])


async def test_a_server_that_always_wants_pages_is_stopped() -> None:
    """After a few visits its refusal is the outcome."""
    server, visitor = Reluctant(100), Visitor()
    with pytest.raises(RpcError):
        await retry_after_url_elicitation(server.send, visitor, "toy")
    assert server.sent == module._MAX_VISITS + 1
    assert len(visitor.asked_for) == module._MAX_VISITS * len(PAGES)
    assert await retry_after_url_elicitation(Reluctant(module._MAX_VISITS).send, Visitor(), "toy") is DONE
