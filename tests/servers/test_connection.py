"""A connection: what a server says and asks on it, and whom that reaches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from pegboard.protocol.codes import METHOD_NOT_FOUND, REQUEST_CANCELLED
from pegboard.protocol.eras import Era
from pegboard.result import ToolFailure
from pegboard.servers import question_owners as question_owners_module
from pegboard.servers.connection import Connection
from pegboard.servers.errors import RpcError
from pegboard.servers.handshake import ServerHello
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Message, Params
from pegboard.servers.question_owners import QuestionOwners
from pegboard.servers.requester import NoRequester
from pegboard.servers.server import Server
from pegboard.servers.transports.transport import Transport
from servers.leaping import LeapingLoop

pytestmark = pytest.mark.anyio

ASK = "elicitation/create"
SAY = "notifications/message"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """All of this happens in leaping time."""
    return "asyncio", {"loop_factory": LeapingLoop}


class Wire(Transport):
    """Keeps what is sent; what goes by as bytes is not told here."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.given_up: list[int] = []

    async def start(self, peer: JsonRpcPeer) -> None:
        """Nothing to begin."""

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        self.sent.append(message)

    def cancel(self, request_id: int, reason: str) -> None:
        self.given_up.append(request_id)

    async def close(self) -> None:
        """Nothing to end."""


class Ear:
    """What the server says and asks by itself."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str | None]] = []
        self.asked_for: list[str] = []

    def on_state_changed(self, server: Server) -> None:
        """Not here."""

    def on_list_changed(self, server: Server, key: str | None) -> None:
        """Not here."""

    def on_resource_updated(self, server: Server, key: str | None, params: Params) -> None:
        """Not here."""

    def on_notification(self, server: Server, key: str | None, method: str, params: Params, only: str | None) -> None:
        self.heard.append((params["data"], only))

    async def on_request(self, server: Server, key: str | None, method: str, params: Params) -> Message:
        self.asked_for.append(params["message"])
        return {"by": "listener"}


class Client(NoRequester):
    """A client that thinks about what it is asked until it is told to answer."""

    def __init__(self, name: str) -> None:
        self.client_key = self.principal_key = name
        self.asked_for: list[str] = []
        self.heard_of: list[str] = []
        self.answer = asyncio.Event()

    def on_notification(self, method: str, params: Params) -> None:
        self.heard_of.append(params["data"])

    async def on_request(self, method: str, params: Params, on_progress: object) -> Message:
        self.asked_for.append(params["message"])
        await self.answer.wait()
        return {"by": self.client_key}


class Stage:
    """A server at the other end of a pipe, played by the test."""

    def __init__(self, era: Era = "handshake", *, origins: bool = False) -> None:
        self.wire, self.ear = Wire(), Ear()
        self.link = JsonRpcPeer(self.wire, label="toy")
        server = cast("Server", object())
        self.connection = Connection(self.link, ServerHello(era, "2025-11-25"), server, None, self.ear)
        if origins:
            self.connection._question_owners = QuestionOwners(origins=True, streams=True)
        self.tasks: list[asyncio.Task[Message]] = []

    async def call(
        self, client: Client, subject: str = "x", timeout: float = 60.0
    ) -> tuple[int, asyncio.Task[Message]]:
        """A client's call: the id that the server sees, and what becomes of it."""
        work = self.connection.request_for(client, subject, "tools/call", {}, timeout=timeout)
        self.tasks.append(asyncio.create_task(work))
        await settle()
        return self.link._last_id, self.tasks[-1]

    async def hush(self, subject: str = "x") -> None:
        """Show that this asks nothing."""
        number, task = await self.call(Client("first"), subject)
        self.answer(number)
        await task

    def answer(self, number: int, **result: Any) -> None:
        self.link.deliver({"jsonrpc": "2.0", "id": number, "result": result})

    async def ask(self, number: object, message: str = "?", origin: int | None = None) -> None:
        self.link.deliver({"jsonrpc": "2.0", "id": number, "method": ASK, "params": {"message": message}}, origin)
        await settle()

    def say(self, data: str, origin: int | None = None) -> None:
        self.link.deliver({"jsonrpc": "2.0", "method": SAY, "params": {"data": data}}, origin)

    def reply(self, number: object) -> Message | None:
        """What the server was answered."""
        return next((each for each in self.wire.sent if each.get("id") == number and "method" not in each), None)

    def refusal(self, number: object) -> int | None:
        return ((self.reply(number) or {}).get("error") or {}).get("code")


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def opened(era: Era = "handshake", *, origins: bool = False) -> AsyncGenerator[Stage]:
    stage = Stage(era, origins=origins)
    yield stage
    for task in stage.tasks:
        task.cancel()
    await asyncio.gather(*stage.tasks, return_exceptions=True)
    await stage.connection.close()
    await settle()
    assert not stage.link._replies


@pytest.fixture
async def stage() -> AsyncGenerator[Stage]:
    """A pipe, and in the end no question is left."""
    async with opened() as stage:
        yield stage


# Whom a question reaches


async def test_a_question_and_its_answer_pass_through(stage: Stage) -> None:
    """To the client of the call, and back under the server's own id."""
    a = Client("a")
    number, task = await stage.call(a)
    await stage.ask("q1", "who?")
    a.answer.set()
    await settle()
    assert (a.asked_for, stage.reply("q1")) == (["[toy] who?"], {"jsonrpc": "2.0", "id": "q1", "result": {"by": "a"}})
    stage.answer(number, ok=1)
    assert await task == {"ok": 1}


async def test_a_question_of_a_call_that_timed_out_reaches_nobody_else(stage: Stage) -> None:
    """It waited because two clients were there; that one of them has given up does not make it the other's."""
    await stage.hush()
    a, b = Client("a"), Client("b")
    _, timed_out = await stage.call(a, timeout=1)
    await stage.call(b)
    await stage.ask("q1", "a's secret")
    with pytest.raises(ToolFailure):
        await timed_out
    await asyncio.sleep(question_owners_module.PLACING + 1)
    assert (a.asked_for, b.asked_for) == ([], [])
    assert stage.refusal("q1") == -32000


@pytest.mark.parametrize("how", ["result", "error"])
async def test_a_late_answer_frees_the_others(stage: Stage, how: str) -> None:
    """The server has answered what was given up, so that its question can only be the other client's."""
    await stage.hush()
    a, b = Client("a"), Client("b")
    number, given_up = await stage.call(a)
    await stage.call(b)
    await stage.ask("q1", "b's")
    given_up.cancel()
    await settle()
    assert stage.wire.given_up == [number]
    assert b.asked_for == []
    stage.link.deliver({"jsonrpc": "2.0", "id": number, how: {"code": -1, "message": "no"}})
    await asyncio.sleep(question_owners_module.SETTLED * 2)
    assert b.asked_for == ["[toy] b's"]


async def test_an_error_is_an_answer_too(stage: Stage) -> None:
    """A call that the server refused asks nothing any more, and has shown that it does not ask."""
    number, task = await stage.call(Client("a"))
    stage.link.deliver({"jsonrpc": "2.0", "id": number, "error": {"code": -1, "message": "no"}})
    with pytest.raises(RpcError):
        await task
    b, c = Client("b"), Client("c")
    await stage.call(b)
    await stage.call(c)
    assert stage.connection._question_owners._quiet == {"x"}
    assert len([each for each in stage.wire.sent if each["method"] == "tools/call"]) == 3


async def test_a_question_of_a_call_that_is_over_is_answered(stage: Stage) -> None:
    """The server may wait for it: it is told that nobody will answer."""
    _, task = await stage.call(Client("a"))
    await stage.ask("q1")
    task.cancel()
    await settle()
    assert stage.refusal("q1") == REQUEST_CANCELLED


async def test_a_question_that_the_server_takes_back_is_answered(stage: Stage) -> None:
    """In the same way, and the call goes on."""
    _, task = await stage.call(Client("a"))
    await stage.ask("q1")
    stage.link.deliver({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q1"}})
    await settle()
    assert stage.refusal("q1") == REQUEST_CANCELLED
    assert not task.done()


async def test_a_question_of_a_lost_server_is_not_answered(stage: Stage) -> None:
    """There is nobody to answer."""
    await stage.call(Client("a"))
    await stage.ask("q1")
    await stage.connection.close()
    await settle()
    assert stage.reply("q1") is None


async def test_a_second_question_with_the_id_of_an_open_one_is_not_asked() -> None:
    """Whatever were answered would be taken for the first one's answer; and so many tasks could not be counted."""
    async with opened() as stage:
        a = Client("a")
        await stage.call(a)
        before = asyncio.all_tasks()
        for _ in range(300):
            await stage.ask("q1")
        questions = asyncio.all_tasks() - before
        assert len(questions) == 1
        assert not stage.link.lost.done()
        await stage.connection.close()
        await settle()
        assert all(task.done() for task in questions)


async def test_a_server_with_too_many_open_questions_is_lost() -> None:
    """Each of them is a task here, and a question to somebody."""
    async with opened() as stage:
        await stage.call(Client("a"))
        for number in range(201):
            await stage.ask(f"q{number}")
        assert not stage.link.lost.done(), "one for its call, and 200 more"
        await stage.ask("q201")
        assert stage.link.lost.result() == "it asked more than 201 questions at once"


# Messages that are refused before they are read

MANY = ",".join(["[]"] * 40_000)


async def deliver(stage: Stage, text: str) -> None:
    """Let a text come in, step by step."""
    for _ in stage.link.deliver_text(text.encode()):
        await asyncio.sleep(0)


@pytest.mark.parametrize("members", [f'"data":[{MANY}]', f'"data":"{"x" * 1_100_000}"'])
async def test_a_notification_with_too_much_is_dropped(stage: Stage, members: str) -> None:
    """Too many values, or too many bytes: nobody hears it, and the connection goes on."""
    a = Client("a")
    _, task = await stage.call(a)
    with capture_logs() as logs:
        await deliver(stage, f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{{members}}}}}')
    assert a.heard_of == []
    assert [log["event"] for log in logs] == ["server.message.unreadable"]
    assert not task.done()


async def test_a_question_with_too_many_values_is_refused(stage: Stage) -> None:
    """The server is told; a large picture in a few values is no reason."""
    await stage.call(Client("a"))
    await deliver(stage, f'{{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{{"x":[{MANY}]}}}}')
    await settle()
    reply = stage.reply("q1")
    assert reply is not None
    assert reply["error"]["code"] == -32600
    assert "30,000 values" in reply["error"]["message"]


@pytest.mark.parametrize(
    "error", [f'{{"code":1,"message":"x","data":[{MANY}]}}', f'{{"code":1,"message":"{"x" * 1_100_000}"}}']
)
async def test_an_error_with_too_much_fails_its_call(stage: Stage, error: str) -> None:
    """The call hears of it, in our words."""
    _, task = await stage.call(Client("a"))
    await deliver(stage, f'{{"jsonrpc":"2.0","id":1,"error":{error}}}')
    with pytest.raises(ToolFailure, match="an error that cannot be read"):
        await task


async def test_a_long_answer_to_nobody_is_not_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id shows that nobody waits for it."""
    _, task = await stage.call(Client("a"))
    monkeypatch.setattr("pegboard.exactjson.parse_in_steps", lambda text: pytest.fail("it was read"))
    await deliver(stage, f'{{"jsonrpc":"2.0","id":99,"result":{{"x":[{MANY}]}}}}')
    assert not task.done()


async def test_a_long_answer_that_somebody_waits_for_is_read(stage: Stage) -> None:
    """Results may have as many values as a message may."""
    _, task = await stage.call(Client("a"))
    await deliver(stage, f'{{"jsonrpc":"2.0","id":1,"result":{{"x":[{MANY}]}}}}')
    assert len((await task)["x"]) == 40_000


async def test_what_is_given_up_is_remembered_within_bounds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never answers late costs a bounded amount."""
    monkeypatch.setattr(stage.link._abandoned, "capacity", 3)
    for _ in range(5):
        _, task = await stage.call(Client("a"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(stage.link._abandoned) == 3


# What belongs to no request


async def test_a_question_with_nobody_there_is_put_to_the_listener(stage: Stage) -> None:
    """Whoever used the connection before: it belongs to no request of theirs."""
    await stage.ask("q1")
    number, task = await stage.call(Client("a"))
    stage.answer(number)
    await task
    await stage.ask("q2")
    assert stage.ear.asked_for == ["?", "?"]
    assert stage.reply("q2") == {"jsonrpc": "2.0", "id": "q2", "result": {"by": "listener"}}


async def test_a_question_that_names_what_is_over_is_refused() -> None:
    """Over HTTP it came with a request: nobody else's is meant, and no guest's either."""
    async with opened(origins=True) as stage:
        a, b = Client("a"), Client("b")
        number, task = await stage.call(a)
        await stage.call(b)
        task.cancel()
        await settle()
        await stage.ask("q1", "a's secret", number)
        stage.say("a's line", number)
        assert (stage.refusal("q1"), b.asked_for, b.heard_of) == (METHOD_NOT_FOUND, [], [])
        assert (stage.ear.asked_for, stage.ear.heard) == ([], [])


async def test_a_line_reaches_the_only_client_or_nobody(stage: Stage) -> None:
    """One client's line must not reach another, also when it comes late; who alone could be meant is told beside it."""
    a, b = Client("a"), Client("b")
    stage.say("own")
    number, task = await stage.call(a)
    stage.say("a's")
    stage.answer(number)
    await task
    stage.say("a's, late")
    second, other = await stage.call(b)
    stage.say("whose?")
    stage.answer(second)
    await other
    stage.say("late")
    assert (a.heard_of, b.heard_of) == (["a's"], [])
    assert stage.ear.heard == [("own", None), ("a's, late", "a"), ("whose?", None), ("late", None)]


async def test_a_line_behind_the_result_of_its_request_reaches_nobody_else() -> None:
    """Right behind it, it is heard by the client whose request it came with; after that by nobody."""
    async with opened(origins=True) as stage:
        a, b = Client("a"), Client("b")
        number, task = await stage.call(a)
        await stage.call(b)
        stage.answer(number)
        stage.say("right behind", number)
        await task
        with capture_logs() as logs:
            stage.say("late", number)
        assert (a.heard_of, b.heard_of, stage.ear.heard) == (["right behind"], [], [])
        assert [entry["event"] for entry in logs] == ["server.said.unattributed"]


async def test_a_late_line_is_told_with_the_only_client_that_there_ever_was() -> None:
    """As long as there was just one; over HTTP a line that names no request belongs to none, whoever is present."""
    async with opened(origins=True) as stage:
        a, b = Client("a"), Client("b")
        stage.say("before")
        number, task = await stage.call(a)
        stage.say("about a")
        stage.answer(number)
        await task
        stage.say("late")
        await stage.call(b)
        stage.say("about a again")
        assert (a.heard_of, b.heard_of) == ([], [])
        assert stage.ear.heard == [("before", None), ("about a", "a"), ("late", "a"), ("about a again", None)]


async def test_a_modern_server_keeps_nobody_waiting() -> None:
    """It asks nothing by itself, so that first uses of several clients run side by side."""
    async with opened("modern") as stage:
        for name in "abc":
            await stage.call(Client(name), subject=name)
        assert len(stage.wire.sent) == 3


async def test_a_server_that_refuses_a_log_level_is_no_trouble(stage: Stage) -> None:
    """It is noted, with the level, and nothing else happens."""
    stage.connection.hello = ServerHello("handshake", "2025-11-25", capabilities={"logging": {}})
    with capture_logs() as logs:
        telling = asyncio.create_task(stage.connection.want_level("debug", 5))
        await settle()
        stage.link.deliver({"jsonrpc": "2.0", "id": stage.link._last_id, "error": {"code": -1, "message": "no"}})
        await telling
    assert [(entry["event"], entry["wanted"], entry["reason"]) for entry in logs] == [
        ("server.level.refused", "debug", "no")
    ]
