"""The chat tools over a real gateway, in both eras, and the folder that a client works in."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import structlog.testing

from chats.makers import OLD, START, Home, log, session, whole
from chats.test_claude_code import DIALOG
from harness import http_client, open_gateway
from pegboard.clients.caller import Caller, current
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint
from pegboard.servers.errors import RpcError
from pegboard.storage import Database
from pegboard.toolsets.chats.chats import Chats, NotThere
from pegboard.toolsets.chats.current import CurrentDialog
from pegboard.toolsets.chats.tools import CHAT_TOOLS
from pegboard.toolsets.workspace import PATIENCE, Workspace

pytestmark = pytest.mark.anyio

NAMES = sorted(tool.name for tool in CHAT_TOOLS)


@asynccontextmanager
async def gateway_with(tmp_path: Path, home: Home, **own: Any) -> AsyncGenerator[str]:
    """A gateway on whose machine there are these chats."""
    assert str(home.folder) == os.environ["HOME"]
    async with open_gateway(tmp_path, {}, toolsets=["chats"], **own) as gateway:
        yield gateway.mcp


@pytest.fixture
def projects(home: Home) -> Home:
    """A dialog in each of three projects, the last the newest."""
    for number, folder in enumerate(("file:///home/ada/shop", "file:///home/ada/shop/till", "file:///srv/app")):
        data = session(f"about {folder[7:]}")
        data["requests"][0]["timestamp"] = START + number * 60_000
        home.chat(f"s{number}", data, workspace=f"w{number}", folder=folder, at=OLD + 60 * number)
    return home


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.scenario("chats: Tool available to AI agents")
async def test_a_client_finds_and_calls_the_tools(tmp_path: Path, projects: Home, version: str) -> None:
    """Listed with their schemas; answers come as text and as structured content."""
    async with gateway_with(tmp_path, projects) as url, http_client(url, version) as client:
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert sorted(tools) == NAMES
        answer = await client.call("copilot_chat_secretary_get_request", {"index": 1})
        assert answer["structuredContent"]["request"] == "about /srv/app"
        assert answer["isError"] is False
        failed = await client.call("copilot_chat_secretary_get_request")
        assert failed["structuredContent"] == {"success": False, "error": "Index parameter is required"}
        assert failed["isError"] is True
        refused = await client.call("copilot_chat_secretary_get_request", {"index": "x"})
        assert refused["structuredContent"]["isError"] is refused["isError"] is True
        for each in (answer, failed, refused):
            jsonschema_rs.validate(
                tools["copilot_chat_secretary_get_request"]["outputSchema"], each["structuredContent"]
            )


@pytest.mark.scenario("chats: Invocation logged (optional for debugging)")
async def test_a_call_is_logged_without_a_word_of_the_chat(tmp_path: Path, home: Home) -> None:
    """Which tool, and how it went; damage in a file is told by its path alone."""
    home.chat("one", log(whole(session("quokka"))) + b"quokka\n" + log(whole(session("more quokka"))))
    home.chat("two", b'{"quokka')
    async with gateway_with(tmp_path, home) as url, http_client(url) as client:
        with structlog.testing.capture_logs() as logs:
            await client.call("copilot_chat_secretary_get_request", {"index": 1})
            await client.call("copilot_chat_secretary_search", {"query": "quokka"})
            await client.call("copilot_chat_secretary_list_sessions")
    events = {entry["event"] for entry in logs}
    assert {"tool.called", "chats.file.damaged", "chats.file.unreadable"} <= events
    assert any(entry.get("tool") == "copilot_chat_secretary_get_request" for entry in logs)
    assert "quokka" not in repr(logs)


@pytest.mark.parametrize(
    ("roots", "expected"),
    [
        (["file:///home/ada/shop"], "s1"),
        (["file:///home/ada/shop/till"], "s1"),
        # No dialog lies in there: then the one whose folder is around it.
        (["file:///home/ada/shop/till/src"], "s1"),
        (["file:///home/ada/shop/docs"], "s0"),
        (["file:///nowhere", "file:///srv"], "s2"),
        (["file:///nowhere"], None),
        ([], "s2"),
    ],
)
async def test_the_current_dialog_is_in_the_clients_folder(
    tmp_path: Path, projects: Home, roots: list[str], expected: str | None
) -> None:
    """A client that tells its roots is asked for them."""
    answers = {"roots/list": lambda _: {"roots": [{"uri": uri, "name": "x"} for uri in roots]}}
    async with gateway_with(tmp_path, projects) as url:
        async with http_client(url, capabilities={"roots": {}}, answers=answers) as client:
            answer = (await client.call("copilot_chat_secretary_get_first_request"))["structuredContent"]
            assert answer.get("sessionId") == expected
            if expected is None:
                assert answer == {"success": False, "error": "No active dialog found"}
            assert [method for method, _ in client.questions] == ["roots/list"]
            # Who names the dialog is not asked.
            await client.call("copilot_chat_secretary_get_first_request", {"sessionId": "s0"})
            assert len(client.questions) == 1


async def asked(dialog: CurrentDialog, caller: Caller | None) -> str | None:
    """The current dialog of a caller."""
    token = current.set(caller) if caller is not None else None
    try:
        return (await dialog.session()).session_id
    except NotThere:
        return None
    finally:
        if token is not None:
            current.reset(token)


async def test_a_client_that_tells_no_folder_has_the_newest_dialog(
    projects: Home, chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be asked, refuses, says nothing, or talks nonsense; nobody waits for it."""
    del projects
    monkeypatch.setitem(PATIENCE, "handshake", 0.01)
    dialog = CurrentDialog(chats)
    nonsense: list[Any] = [{}, {"roots": None}, {"roots": "x"}, {"roots": [None, {}, {"uri": 5}, {"uri": ""}]}]
    replies = iter([*nonsense, RpcError(-32603, "no"), ConnectionError("gone")])

    async def reply(*_: Any) -> Any:
        answer = next(replies)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def silence(*_: Any) -> Any:
        import asyncio

        await asyncio.Event().wait()

    for caller in (None, Caller(), Caller(Client(era="modern", capabilities={"roots": {}})), Caller(ask=reply)):
        assert await asked(dialog, caller) == "s2"
    for _ in range(6):
        assert await asked(dialog, Caller(Client(capabilities={"roots": {}}), ask=reply)) == "s2"
    assert await asked(dialog, Caller(Client(capabilities={"roots": {}}), ask=silence)) == "s2"
    assert next(replies, None) is None


async def test_a_folder_in_a_clients_address_goes_before_what_it_tells(projects: Home, chats: Chats) -> None:
    """As a path or as a URI; the client is not asked."""
    del projects

    async def never(*_: Any) -> Any:
        raise AssertionError("asked")

    for workspace, expected in (("/home/ada/shop", "s1"), ("file:///home/ada/shop/docs", "s0"), ("/nowhere", None)):
        caller = Caller(Client(capabilities={"roots": {}}, endpoint=Endpoint({"workspace": workspace})), ask=never)
        assert await asked(CurrentDialog(chats), caller) == expected


async def test_the_gateways_own_folder_is_for_clients_that_tell_none(projects: Home, chats: Chats) -> None:
    """What a client says of itself is nearer to the truth."""
    del projects

    async def reply(*_: Any) -> Any:
        return {"roots": [{"uri": "file:///srv/app"}]}

    dialog = CurrentDialog(chats, Workspace(lambda: "/home/ada/shop"))
    assert await asked(dialog, None) == await asked(dialog, Caller()) == "s1"
    assert await asked(dialog, Caller(Client(capabilities={"roots": {}}), ask=reply)) == "s2"


async def test_the_newest_dialog_is_the_one_with_the_newest_activity(home: Home, chats: Chats, now: Any) -> None:
    """Not the file that was touched last, and not one in which nothing was asked; across editors."""
    home.chat("old", session("old"), at=START / 1000 + 500)
    home.chat("empty", session(creationDate=START + 10**5), at=START / 1000 + 600)
    busy = session("busy")
    busy["requests"][0]["timestamp"] = START + 5000
    home.chat("busy", busy, at=START / 1000 + 100)
    assert await asked(CurrentDialog(chats), None) == "busy"
    home.transcript("claude", DIALOG, at=START / 1000 + 50)
    now.later()
    assert await asked(CurrentDialog(chats), None) == "claude"
    assert await asked(CurrentDialog(chats, Workspace(lambda: "/home/ada")), None) == "claude"


async def test_of_many_dialogs_only_the_latest_are_opened(home: Home, database: Database) -> None:
    """A first call need not wait until all are read."""
    for number in range(100):
        data = session("hello", creationDate=START + number * 1000)
        data["requests"][0]["timestamp"] = START + number * 1000
        home.chat(f"s{number}", data, at=START / 1000 + number)
    chats = Chats(database, home.sources())
    newest = await chats.newest()
    assert newest is not None
    assert newest.session_id == "s99"
    rows = await database.read(lambda connection: connection.rows("SELECT path FROM chat_files"))
    assert len(rows) == 16
    await chats.close()


async def test_a_session_in_two_places_is_the_newer_one(home: Home, chats: Chats) -> None:
    """Copied to another workspace, or exported; listed once."""
    home.chat("one", session("old"))
    home.chat("one", session("old", "new"), workspace="w2", folder="file:///srv/app")
    home.export("copy.json", {**session("exported"), "sessionId": "two"})
    assert (await chats.session("one")).requests_count == 2
    assert sorted(each.session_id for each in (await chats.list()).items) == ["one", "two"]
    assert (await chats.session("two")).source == "export"
