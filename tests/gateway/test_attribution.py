"""What a server says and asks outside of any call, and who is told which server asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from harness import Entry, eventually, every_server, http_client, open_gateway
from pegboard.servers.attribution import attribute
from servers.late import QUESTIONS
from servers.toy import FEATURES

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
LINE, OTHER = "notifications/message", "notifications/late"


def late(tmp_path: Path, **entry: Any) -> dict[str, Entry]:
    """A server that goes on talking."""
    script = Path(__file__).parent.parent / "servers" / "late.py"
    args = ["-I", "-S", str(script), str(tmp_path / "replies.json")]
    return {"late": {"command": sys.executable, "args": args, **entry}}


def client(url: str, version: str = "2025-11-25") -> Any:
    """A client that answers everything."""
    answers = {method: (lambda _: {"action": "decline"}) for method in QUESTIONS}
    return http_client(url, version, capabilities=ABLE, answers=answers)


async def replies(tmp_path: Path, when: str) -> Mapping[str, Any]:
    """What the server was answered, once it was answered everything."""

    def found() -> dict[str, Any]:
        file = tmp_path / "replies.json"
        given = json.loads(file.read_text()) if file.exists() else {}
        return {key.removeprefix(f"{when} "): value for key, value in given.items() if key.startswith(when)}

    await eventually(lambda: len(found()) == len(QUESTIONS))
    return found()


async def test_what_a_shared_server_says_late_goes_to_nobody(tmp_path: Path) -> None:
    """It may be about any client's call that is over: neither the others hear it, nor the one that called."""
    async with open_gateway(tmp_path, late(tmp_path)) as gateway:
        async with client(gateway.mcp) as a, client(gateway.mcp) as b:
            await a.call("late__nothing")
            await b.call("late__nothing")
            await a.call("late__talk_later", {"secret": "a's own"})
            # What it says comes before the answers to its next questions.
            await a.call("late__ask_later")
            await replies(tmp_path, "later")
            assert [*a.said(LINE), *a.said(OTHER), *b.said(LINE), *b.said(OTHER)] == []


async def test_the_only_client_of_a_server_hears_what_it_says_late(tmp_path: Path) -> None:
    """Whoever is there besides, and never used it, does not."""
    async with open_gateway(tmp_path, late(tmp_path)) as gateway:
        async with client(gateway.mcp) as a, client(gateway.mcp) as b:
            await a.call("late__talk_later", {"own": 1})
            assert [line["data"] for line in await a.until_heard(LINE)] == [{"late": {"own": 1}}]
            assert list(await a.until_heard(OTHER)) == [{"about": {"own": 1}}]
            assert [*b.said(LINE), *b.said(OTHER)] == []


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_late_line_does_not_reach_whoever_calls_next(tmp_path: Path, version: str) -> None:
    """It comes while only another client has a call under way; of one call or the other, nobody can tell."""
    async with open_gateway(tmp_path, late(tmp_path)) as gateway:
        async with client(gateway.mcp) as a, client(gateway.mcp, version) as b:
            await a.call("late__keep", {"secret": "a's own"})
            with capture_logs() as logs:
                await b.call("late__tell")
            assert [*a.said(LINE), *a.said(OTHER), *b.said(LINE), *b.said(OTHER)] == []
            unattributed = [entry["method"] for entry in logs if entry["event"] == "server.said.unattributed"]
            assert unattributed == [LINE, OTHER]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_client_alone_hears_all_that_is_said_during_its_calls(tmp_path: Path, version: str) -> None:
    """Whoever else is connected, as long as nobody else has used the server; in both eras."""
    async with open_gateway(tmp_path, late(tmp_path)) as gateway:
        async with client(gateway.mcp, version) as a, client(gateway.mcp):
            a.log_level = "info" if version == "2026-07-28" else None
            await a.call("late__keep", {"own": 1})
            await a.call("late__tell")
            assert [line["data"] for line in await a.until_heard(LINE)] == [{"late": {"own": 1}}]
            assert list(await a.until_heard(OTHER)) == [{"about": {"own": 1}}]


async def test_a_session_hears_and_answers_its_own_server_at_any_time(tmp_path: Path) -> None:
    """With a process for each session there is no doubt whose it is."""
    async with open_gateway(tmp_path, late(tmp_path, instance="session")) as gateway:
        async with client(gateway.mcp) as a, client(gateway.mcp) as b:
            await b.call("late__nothing")
            await a.call("late__talk_later", {"own": 1})
            await a.until_heard(OTHER)
            await a.call("late__keep", {"own": 2})
            await a.call("late__tell")
            await a.until(lambda: a.said(OTHER)[1:] == [{"about": {"own": 2}}])
            await a.call("late__ask_later")
            assert await replies(tmp_path, "later") == {key: {"action": "decline"} for key in QUESTIONS}
            assert [*b.said(LINE), *b.said(OTHER), *b.questions] == []


async def test_a_client_that_called_nothing_is_asked_nothing(tmp_path: Path) -> None:
    """Neither by a server that was only listed, nor by one whose call is over; even if it is the only client."""
    async with open_gateway(tmp_path, late(tmp_path)) as gateway, client(gateway.mcp) as raw:
        await raw.until_in("tools", "late__nothing")
        listed = await replies(tmp_path, "listed")
        assert {error["code"] for error in listed.values()} == {-32601}
        await raw.call("late__ask_later")
        later = await replies(tmp_path, "later")
        assert {error["code"] for error in later.values()} == {-32601}
        assert raw.questions == []


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("kind", ["stdio_handshake", "stdio_modern", "http_handshake", "http_modern"])
async def test_a_question_says_which_server_asks(tmp_path: Path, kind: str, version: str) -> None:
    """In its first words where a person reads them, and in `_meta` for every kind; in both eras on both sides."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway, client(gateway.mcp, version) as raw:
            for tool in ("ask_form", "ask_url", "ask_model"):
                await raw.call_through(f"{kind}__{tool}", {"who": "[pegboard] you"})
            (_, form), (_, url), (method, model) = raw.questions
            assert form["message"] == f"[{kind}] Is it [pegboard] you? 😀"
            assert url["message"] == f"[{kind}] Go there, [pegboard] you"
            assert (method, "message" in model) == ("sampling/createMessage", False)
            for params in (form, url, model):
                assert params["_meta"]["pegboard/server"] == kind
            assert form["_meta"]["toy/key"] == [None]


def test_no_member_hides_who_asks() -> None:
    """A client that reads names without regard to case reads ours, not the server's own."""
    params = {"message": "yes?", "Message": "no", "messages": 1, "_META": {}, "_meta": {"Pegboard/server": "x", "a": 1}}
    asked = attribute("elicitation/create", params, "toy")
    assert asked == {"message": "[toy] yes?", "messages": 1, "_meta": {"a": 1, "pegboard/server": "toy"}}
