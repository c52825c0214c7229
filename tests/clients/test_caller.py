"""Callers: what each is told, at which level, and what it can be asked."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.clients.caller import Caller, question_for
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
    Era,
)
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import NoRequester, inability

pytestmark = pytest.mark.anyio

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
MESSAGE = "notifications/message"


class Reachable:
    """Hears, and answers what it is asked."""

    def __init__(self, **caller: Any) -> None:
        self.heard: list[tuple[str, Params]] = []
        self.asked: list[tuple[str, Params, OnProgress | None]] = []
        level = caller.pop("log_level", None)
        self.caller = Caller(
            Client(**caller), notify=lambda *said: self.heard.append(said), ask=self._ask, log_level=level
        )

    async def _ask(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        self.asked.append((method, params, on_progress))
        return {"answer": 1}

    def levels(self) -> list[object]:
        """The levels of everything it heard, of one line at each level and of some odd ones."""
        for level in (*LOG_LEVELS, "loud", None, 5):
            self.caller.on_notification(MESSAGE, {"level": level, "data": "x"})
        return [params["level"] for _, params in self.heard]


# Who it is


def test_requests_of_one_session_are_of_one_client() -> None:
    """In the modern era nothing says so: each request is somebody of its own."""
    assert Caller(Client(session="a")).client_key == Caller(Client(session="a")).client_key == "a"
    assert Caller(Client(session="a")).client_key != Caller(Client(session="b")).client_key
    strangers = {Caller(Client(era="modern")).client_key for _ in range(100)}
    assert len(strangers) == 100
    caller = Caller(Client(era="modern"))
    assert caller.client_key == caller.client_key


def test_whoever_cannot_be_asked_is_nobody() -> None:
    """Calls from Python, over REST and of Pegboard's own cannot be mixed up, so they never wait for each other."""
    assert Caller().client_key == Caller().client_key == NoRequester().client_key == "nobody"
    assert Caller().principal_key == NoRequester().principal_key == "nobody"
    assert Caller(Client(era="modern")).client_key != "nobody"


def test_requests_with_the_same_credentials_are_of_one_kin() -> None:
    """Of the modern era they are likely to be one person's; a session is only its own."""
    ada, bob = Caller(Client(era="modern", sender="ada")), Caller(Client(era="modern", sender="bob"))
    assert ada.principal_key == Caller(Client(era="modern", sender="ada")).principal_key
    assert ada.principal_key != bob.principal_key
    assert ada.client_key != Caller(Client(era="modern", sender="ada")).client_key
    assert Caller(Client(session="a", sender="ada")).principal_key == "a"
    assert Caller(Client(era="modern")).principal_key != Caller(Client(era="modern")).principal_key


# What it hears


def test_a_handshake_client_without_a_level_hears_everything() -> None:
    """Until it sets one, a server says what it would say by itself."""
    assert Reachable(session="a").levels() == [*LOG_LEVELS, "loud", None, 5]


def test_a_modern_client_without_a_level_hears_no_log() -> None:
    """There a request has to ask for it; everything else it hears all the same."""
    client = Reachable(era="modern")
    assert client.levels() == []
    client.caller.on_notification("notifications/custom", {"x": 1})
    assert client.heard == [("notifications/custom", {"x": 1})]


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_level_leaves_what_is_at_least_as_severe(era: Era, level: str) -> None:
    """In both eras alike; a level that nobody knows counts as the least."""
    odd = ["loud", None, 5] if level == "debug" else []
    assert Reachable(era=era, log_level=level).levels() == [*LOG_LEVELS[LOG_LEVELS.index(level) :], *odd]


@pytest.mark.parametrize(
    ("era", "level", "told", "wanted"),
    [
        ("handshake", None, True, "info"),
        ("handshake", "error", True, "error"),
        ("handshake", None, False, None),
        ("handshake", "debug", False, "debug"),
        ("modern", None, True, None),
        ("modern", "debug", True, "debug"),
        ("modern", None, False, None),
    ],
)
def test_what_a_server_is_told_of_the_level(era: Era, level: str | None, told: bool, wanted: str | None) -> None:
    """What the client said; for a handshake client that said nothing, what servers do by themselves."""
    caller = Caller(Client(era=era), log_level=level, notify=(lambda *_: None) if told else None)
    assert caller.effective_log_level == wanted


def test_whoever_cannot_be_told_is_not() -> None:
    """A call over REST hears nothing, and that is no fault."""
    Caller().on_notification(MESSAGE, {"level": "error"})
    NoRequester().on_notification(MESSAGE, {"level": "error"})


HOP = {
    "progressToken": 7,
    VERSION_KEY: "2026-07-28",
    CLIENT_INFO_KEY: {},
    CLIENT_CAPABILITIES_KEY: {},
    LOG_LEVEL_KEY: "debug",
    SUBSCRIPTION_KEY: 3,
    "pegboard/server": "git",
    "pegboard/prefix": "git__",
}


def test_what_belongs_to_the_servers_hop_is_not_passed_on() -> None:
    """Neither in a notice nor in a question; what else stands in `_meta` stays, as does an empty one that was given."""
    client = Reachable(session="a")
    said = {"x": 1, "_meta": {**HOP, "own": 2}}
    client.caller.on_notification("notifications/custom", said)
    client.caller.on_notification("notifications/custom", {"x": 1, "_meta": dict(HOP)})
    client.caller.on_notification("notifications/custom", {"x": 1, "_meta": {}})
    assert [params for _, params in client.heard] == [{"x": 1, "_meta": {"own": 2}}, {"x": 1}, {"x": 1, "_meta": {}}]
    assert said == {"x": 1, "_meta": {**HOP, "own": 2}}
    # A question keeps the name of the server that asks, which is written over whatever the server said.
    assert question_for({}, said) == {"x": 1, "_meta": {"own": 2, "pegboard/server": HOP["pegboard/server"]}}
    assert question_for({}, {"x": 1, "_meta": {"progressToken": 1}}) == {"x": 1}


# What it is asked


async def test_a_question_is_passed_on_with_its_progress() -> None:
    """Its answer is the client's own."""
    told: list[Params] = []
    client = Reachable(capabilities={"elicitation": {}})
    assert await client.caller.on_request("elicitation/create", {"message": "?"}, told.append) == {"answer": 1}
    method, params, on_progress = client.asked[0]
    assert (method, params) == ("elicitation/create", {"message": "?"})
    assert on_progress is not None
    on_progress({"progress": 1})
    assert told == [{"progress": 1}]


@pytest.mark.parametrize("party", [Caller(Client(capabilities={"elicitation": {}})), NoRequester()])
async def test_whoever_cannot_be_asked_refuses(party: Caller | NoRequester) -> None:
    """Whatever it declared: there is no way to it."""
    with pytest.raises(RpcError) as refused:
        await party.on_request("elicitation/create", {}, None)
    assert refused.value.code == METHOD_NOT_FOUND


async def test_a_client_is_not_bothered_with_what_it_cannot_do() -> None:
    """It is refused in its name."""
    client = Reachable(capabilities={})
    with pytest.raises(RpcError):
        await client.caller.on_request("roots/list", {}, None)
    assert client.asked == []


@pytest.mark.parametrize(
    ("capabilities", "kept"), [({}, False), ({"tasks": {}}, True), ({"tasks": {"requests": {}}, "roots": {}}, True)]
)
async def test_a_client_without_tasks_is_asked_without_one(capabilities: dict[str, Any], kept: bool) -> None:
    """A shared server was told of tasks; a client that knows none answers at once."""
    client = Reachable(capabilities={"elicitation": {}, **capabilities})
    asked = {"message": "?", "task": {"ttl": 60000}}
    await client.caller.on_request("elicitation/create", asked, None)
    assert client.asked[0][1] == (asked if kept else {"message": "?"})
    assert "task" in asked


BOTH = {"elicitation": {"form": {}, "url": {}}}


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "code"),
    [
        ({}, "elicitation/create", {}, METHOD_NOT_FOUND),
        ({}, "sampling/createMessage", {}, METHOD_NOT_FOUND),
        ({}, "roots/list", {}, METHOD_NOT_FOUND),
        ({"elicitation": None}, "elicitation/create", {}, METHOD_NOT_FOUND),
        ({"elicitation": True}, "elicitation/create", {}, METHOD_NOT_FOUND),
        ({"sampling": []}, "sampling/createMessage", {}, METHOD_NOT_FOUND),
        ({"roots": {}}, "elicitation/create", {}, METHOD_NOT_FOUND),
        ({"roots": {}}, "roots/list", {}, None),
        ({"roots": {"listChanged": True}}, "roots/list", {}, None),
        # A client that names no mode means forms.
        ({"elicitation": {}}, "elicitation/create", {}, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": "form"}, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url"}, INVALID_PARAMS),
        ({"elicitation": {"form": {}}}, "elicitation/create", {"mode": "url"}, INVALID_PARAMS),
        ({"elicitation": {"url": {}}}, "elicitation/create", {}, INVALID_PARAMS),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "form"}, INVALID_PARAMS),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "url"}, None),
        (BOTH, "elicitation/create", {"mode": "form"}, None),
        (BOTH, "elicitation/create", {"mode": "url"}, None),
        (BOTH, "elicitation/create", {"mode": "smell"}, INVALID_PARAMS),
        (BOTH, "elicitation/create", {"mode": None}, INVALID_PARAMS),
        (BOTH, "elicitation/create", {"mode": []}, INVALID_PARAMS),
        (BOTH, "elicitation/create", {"mode": {"form": 1}}, INVALID_PARAMS),
        # Tools in sampling have to be declared.
        ({"sampling": {}}, "sampling/createMessage", {"messages": []}, None),
        ({"sampling": {}}, "sampling/createMessage", {"tools": []}, INVALID_PARAMS),
        ({"sampling": {}}, "sampling/createMessage", {"toolChoice": {}}, INVALID_PARAMS),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {"tools": [], "toolChoice": {}}, None),
        # What nobody knows is the client's own affair.
        ({}, "custom/question", {}, None),
        ({}, "tasks/get", {"taskId": "t"}, None),
        ({}, "", {}, None),
    ],
)
def test_what_a_client_cannot_be_asked(
    capabilities: dict[str, Any], method: str, params: dict[str, Any], code: int | None
) -> None:
    """By what it declared: not at all, not in this mode, not with tools."""
    refusal = inability(capabilities, method, params)
    assert (refusal.code if refusal is not None else None) == code
