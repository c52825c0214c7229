"""Chats are for clients on this machine; the folder they work in is theirs to tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from chats.makers import OLD, START, Home, session, write
from harness import LIMIT, ListeningTransport, connect, http_client, open_gateway, serving, stdio_client, write_config
from pegboard.clients.locality import is_remote
from pegboard.config import ServerSpec
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

TOOL = "copilot_chat_secretary_get_first_request"
MODERN = "2026-07-28"
ELSEWHERE = {"X-Forwarded-For": "203.0.113.9"}
PASSED_ON = (
    *(b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded", b"x_forwarded_for"),
    *(b"x-real-ip", b"x_real_ip", b"true-client-ip", b"x-client-ip", b"x-cluster-client-ip", b"cf-connecting-ip"),
    *(b"cf-ray", b"tailscale-user-login", b"x-original-forwarded-for", b"x-envoy-external-address"),
)
OWN_NAMES = (
    *(b"localhost", b"localhost:7777", b"LOCALHOST.:7777", b"board.localhost", b"127.0.0.1:7777", b"127.8.9.1"),
    *(b"[::1]", b"[::1]:7777", b"[::ffff:127.0.0.1]:7777"),
)
OTHER_NAMES = (
    *(b"rebound.example", b"rebound.example:7777", b"localhost.rebound.example", b"notlocalhost", b"192.168.0.7:7777"),
    *(b"0.0.0.0", b"127.0.0.1.rebound.example", b"[::]", b"[fe80::1]:80", b"[]", b"", b":80", b"localhost:x", b"::1"),
)
# Where a client is counts whoever it is.
OWN: dict[str, Any] = {"toolsets": ["chats", "discovery"], "auth": {"required": False}}


@pytest.fixture
def projects(home: Home) -> Home:
    """A dialog in each of two projects, the second the newer."""
    for number, folder in enumerate(("file:///home/ada/shop", "file:///srv/app")):
        data = session(f"about {folder[7:]}")
        data["requests"][0]["timestamp"] = START + number * 60_000
        home.chat(f"s{number}", data, workspace=f"w{number}", folder=folder, at=OLD + 60 * number)
    return home


def from_elsewhere(url: str, version: str) -> Any:
    """A client whose requests were passed on by a proxy on this machine."""
    spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=url, headers=ELSEWHERE)
    return connect(ListeningTransport(spec), version)


@pytest.mark.parametrize(
    ("peer", "headers", "remote"),
    [
        (("127.0.0.1", 1), [], False),
        (("127.8.9.1", 1), [], False),
        (("::1", 1), [], False),
        (("::ffff:127.0.0.1", 1), [], False),
        (None, [], False),
        (("", 0), [], False),
        (("192.168.0.7", 1), [], True),
        (("::ffff:192.168.0.7", 1), [], True),
        (("fe80::1%eth0", 1), [], True),
        (("testclient", 1), [], True),
        (("127.0.0.1", 1), [(b"forwarded", b"for=192.0.2.60")], True),
        (("127.0.0.1", 1), [(b"via", b"1.1 proxy")], True),
        *((("127.0.0.1", 1), [(b"accept", b"*/*"), (name, b"203.0.113.9")], True) for name in PASSED_ON),
        *((("127.0.0.1", 1), [(b"host", name)], False) for name in OWN_NAMES),
        *((("127.0.0.1", 1), [(b"host", name)], True) for name in OTHER_NAMES),
        ((None), [(b"host", b"rebound.example")], True),
        (("127.0.0.1", 1), [(b"host", b"localhost"), (b"host", b"rebound.example")], True),
        (("127.0.0.1", 1), [(b"user-agent", b"x-forwarded-for"), (b"mcp-session-id", b"via")], False),
    ],
)
async def test_who_is_on_this_machine(peer: Any, headers: list[Any], *, remote: bool) -> None:
    """Whoever comes from a loopback address, unless somebody there passed the request on.

    A browser that another name has led here is none: the name says so.
    """
    assert is_remote({"client": peer, "headers": headers}) is remote


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("expose", ["all", "search"])
async def test_a_client_elsewhere_has_no_chat_tools(tmp_path: Path, projects: Home, version: str, expose: str) -> None:
    """It does not see them in any list, cannot find or load them, and a call says why; the others are there."""
    del projects
    own = {**OWN, "expose": expose, "pinned": [TOOL]}
    async with open_gateway(tmp_path, {}, **own) as gateway:
        async with http_client(gateway.mcp, version) as here:
            assert TOOL in await here.names()
        async with from_elsewhere(gateway.mcp, version) as there:
            names = await there.names()
            assert "tool_find" in names
            assert [name for name in names if name.startswith("copilot")] == []
            found = await there.call("tool_find", {"query": "first request of the current chat dialog"})
            assert "copilot" not in repr(found)
            with pytest.raises(RpcError, match="only for clients on the machine"):
                await there.call(TOOL)
            for tool, arguments in (("tool_call", {"name": TOOL}), ("tool_describe", {"name": TOOL})):
                refused = await there.call(tool, arguments)
                assert refused["isError"] is True
                assert "only for clients on the machine" in refused["content"][0]["text"]


async def test_one_setting_lets_them_in(tmp_path: Path, projects: Home) -> None:
    """Taken over without a restart, and taken back."""
    del projects
    async with open_gateway(tmp_path, {}, **OWN) as gateway:
        for allowed in (True, False):
            await gateway.configure({}, **OWN, chats={"remote": allowed})
            async with from_elsewhere(gateway.mcp, "2025-11-25") as there:
                assert (TOOL in await there.names()) is allowed


async def test_a_session_that_was_opened_here_is_no_way_in(tmp_path: Path, projects: Home) -> None:
    """Its id may be known elsewhere: from there it is one that does not exist, to call, to read again or to end."""
    del projects
    async with (
        open_gateway(tmp_path, {}, **OWN) as gateway,
        httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"}, timeout=10) as http,
    ):

        async def post(method: str, params: dict[str, Any], **headers: str) -> httpx2.Response:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await http.post(gateway.mcp, json=message, headers=headers)

        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        opened = await post("initialize", about)
        ids = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
        await http.post(gateway.mcp, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=ids)
        answer = await post("tools/call", {"name": TOOL}, **ids)
        assert "about /srv/app" in answer.text
        place = next(line[4:] for line in answer.text.splitlines() if line.startswith("id: "))
        for elsewhere in (ELSEWHERE, {"Host": "rebound.example"}):
            away = {**ids, **elsewhere}
            replies = [
                await post("tools/call", {"name": TOOL}, **away),
                await http.get(gateway.mcp, headers={**away, "Last-Event-ID": place}),
                await http.get(gateway.mcp, headers=away),
                await http.delete(gateway.mcp, headers=away),
            ]
            assert {reply.status_code for reply in replies} <= {404, 421}
            assert not any("about" in reply.text for reply in replies)
        async with http.stream("GET", gateway.mcp, headers={**ids, "Last-Event-ID": place}) as again:
            assert again.status_code == 200
            async for line in again.aiter_lines():
                if "about /srv/app" in line:
                    break
            else:
                pytest.fail("whoever opened the session can read it again")


async def test_what_is_loaded_on_a_shared_board_tells_no_names(tmp_path: Path, projects: Home) -> None:
    """Nor can whoever is elsewhere take down a chat tool that somebody here has loaded."""
    del projects
    async with open_gateway(tmp_path, {}, **OWN, expose="search") as gateway:
        async with http_client(f"{gateway.mcp}/team") as here, from_elsewhere(f"{gateway.mcp}/team", MODERN) as there:
            await here.call("tool_load", {"names": [TOOL]})
            assert TOOL in repr(await here.call("tool_active"))
            assert "copilot" not in repr(await there.call("tool_active"))
            assert "copilot" not in repr((await there.call("tool_unload", {"names": [TOOL]}))["structuredContent"])
            assert TOOL in repr(await here.call("tool_active"))


async def test_rest_refuses_them_too(tmp_path: Path, projects: Home) -> None:
    """Lists, searches, dialogs and calls; what is not about chats is answered."""
    del projects
    async with (
        open_gateway(tmp_path, {}, **OWN) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, headers=ELSEWHERE, timeout=LIMIT) as http,
    ):
        for path in ("/api/chats", "/api/chats/s0", "/api/chat/search?q=about"):
            reply = await http.get(path)
            assert (reply.status_code, reply.json()["success"]) == (403, False)
        assert (await http.get(f"/api/tools/{TOOL}")).status_code == 404
        assert (await http.post(f"/api/tools/{TOOL}/call")).status_code == 404
        for path in ("/api/tools", "/api/tools/search?q=chat+dialog"):
            reply = await http.get(path)
            assert reply.status_code == 200
            assert "copilot" not in reply.text


async def test_nothing_is_opened_before_a_chat_is_asked_for(tmp_path: Path, projects: Home) -> None:
    """The index is made by the first call that needs it, and is the user's alone."""
    del projects
    index = tmp_path / "state" / "chats.db"
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp) as client:
        await client.tools()
        assert not index.exists()
        await client.call(TOOL)
        assert index.stat().st_mode & 0o077 == 0


async def test_an_index_that_cannot_be_used_stops_the_chats_alone(tmp_path: Path, projects: Home) -> None:
    """The error says what is wrong, not where the file is, and the next call tries again."""
    del projects
    index = tmp_path / "state" / "chats.db"
    index.mkdir(parents=True)
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp) as client:
        failed = (await client.call(TOOL))["structuredContent"]
        assert failed["isError"] is True
        assert "the storage cannot be used" in failed["message"]
        assert str(tmp_path) not in failed["message"]
        assert (await client.call("tool_find", {"query": "chat"}))["isError"] is False
        index.rmdir()
        assert (await client.call(TOOL))["structuredContent"]["success"] is True


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_client_is_asked_for_its_folder_in_both_eras(tmp_path: Path, projects: Home, version: str) -> None:
    """In 2026-07-28 the question is the first answer, and the call goes on with the second request."""
    del projects
    answers = {"roots/list": lambda _: {"roots": [{"uri": "file:///home/ada/shop"}]}}
    options = {"capabilities": {"roots": {}}, "answers": answers}
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp, version, **options) as client:
        answer = await client.call_through(TOOL)
        assert answer["structuredContent"]["sessionId"] == "s0"
        assert [method for method, _ in client.questions] == ["roots/list"]
        assert (await client.call(TOOL, {"sessionId": "s1"}))["structuredContent"]["sessionId"] == "s1"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_address_may_name_the_folder(tmp_path: Path, projects: Home, version: str) -> None:
    """`/mcp?workspace=…`, for clients that do not tell their roots."""
    del projects
    async with open_gateway(tmp_path, {}, **OWN) as gateway:
        async with http_client(f"{gateway.mcp}?workspace=/home/ada/shop", version) as client:
            assert (await client.call(TOOL))["structuredContent"]["sessionId"] == "s0"
        async with http_client(gateway.mcp, version) as client:
            assert (await client.call(TOOL))["structuredContent"]["sessionId"] == "s1"
        await gateway.configure({}, **OWN, workspace="/home/ada/shop")
        async with http_client(gateway.mcp, version) as client:
            assert (await client.call(TOOL))["structuredContent"]["sessionId"] == "s0"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("beside", [False, True])
async def test_over_stdio_a_flag_names_it(tmp_path: Path, home: Home, version: str, *, beside: bool) -> None:
    """`pegboard stdio --workspace`, whether it is a gateway of its own or a bridge to one."""
    shop = tmp_path / "shop"
    shop.mkdir()
    home.chat("s0", session("about the shop"), workspace="w0", folder=shop.as_uri(), at=OLD)
    home.chat("s1", session("about the app", creationDate=START + 5), workspace="w1", folder="file:///srv", at=OLD + 9)
    config = write_config(tmp_path / "pegboard.json", {}, **OWN)

    async def asked(*args: str) -> str:
        async with stdio_client(config, version, args=args) as client:
            return (await client.call(TOOL))["structuredContent"]["firstRequest"]

    async def both() -> list[str]:
        return [await asked("--workspace", str(shop)), await asked()]

    if not beside:
        assert (await both())[0] == "about the shop"
        return
    with serving(config):
        assert (await both())[0] == "about the shop"


async def test_other_folders_of_exported_chats_are_taken_over(tmp_path: Path, home: Home) -> None:
    """Named in the config, as seen from there; a change needs no restart."""
    exports = tmp_path / "exports"
    exports.mkdir()
    write(exports / "one.json", json.dumps(session("quokka", session_id="exported")).encode())
    del home
    search = "copilot_chat_secretary_search"
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp) as client:
        assert (await client.call(search, {"query": "quokka"}))["structuredContent"]["pagination"]["total"] == 0
        await gateway.configure({}, **OWN, chats={"exports": ["exports"]})
        assert (await client.call(search, {"query": "quokka"}))["structuredContent"]["pagination"]["total"] == 1
