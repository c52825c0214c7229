"""The boards of 2026-07-28, where every request says which client it comes from: what a client loads is in the list of
its name, on plain `/mcp` and over stdio as well."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, Gateway, RawClient, http_client, open_gateway, stdio_client, toy, write_config
from pegboard.auth.token_registry import TokenRegistry
from pegboard.names import fold_board_name, is_board_name

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
DISCOVERY = {"tool_active", "tool_call", "tool_describe", "tool_find", "tool_load", "tool_unload"}
WORK = {"work": toy(tools=["mail", "issue", "chat"])}
OWN: Mapping[str, Any] = {"toolsets": ["discovery"], "expose": "search"}


@asynccontextmanager
async def gateway_of(tmp_path: Path, **own: Any) -> AsyncGenerator[Gateway]:
    """A gateway in front of one server, where tools have to be found."""
    async with open_gateway(tmp_path, WORK, **{**OWN, **own}) as gateway:
        await gateway.board.refresh()
        yield gateway


async def data(client: RawClient, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The data of a discovery tool's answer."""
    result = await client.call(tool, arguments or {})
    assert result["isError"] is False, result
    return result["structuredContent"]["data"]


@pytest.mark.scenario("first hour: A client has the board of its name")
async def test_what_a_client_loads_is_in_the_list_of_its_name(tmp_path: Path) -> None:
    """It is told so, it is notified, another client's list stays as it is, and a restart changes nothing."""
    async with gateway_of(tmp_path) as gateway:
        async with (
            http_client(gateway.mcp, MODERN, name="claude-code") as mine,
            http_client(gateway.mcp, MODERN, name="other") as other,
        ):
            answer = await data(mine, "tool_load", {"names": ["work__mail"]})
            assert (answer["loaded"], answer["total"]) == (["work__mail"], 1)
            assert answer["message"] == (
                "They are in your tool list from your next request but one on; until then use tool_call."
            )
            await mine.until_changes(1)
            assert set(await mine.names()) == {*DISCOVERY, "work__mail"}
            assert (await data(mine, "tool_active"))["count"] == 1
            assert set(await other.names()) == DISCOVERY
            assert other.changes() == 0
    async with gateway_of(tmp_path) as gateway:
        async with http_client(gateway.mcp, MODERN, name="claude-code") as mine:
            assert set(await mine.names()) == {*DISCOVERY, "work__mail"}
        # The board of that name, wherever it is named.
        async with http_client(f"{gateway.mcp}/claude-code", MODERN, name="other") as named:
            assert set(await named.names()) == {*DISCOVERY, "work__mail"}


async def test_what_a_client_loads_over_stdio_is_in_the_list_of_its_name(tmp_path: Path) -> None:
    """Without `--board`, over two runs; the list changes while it runs, too."""
    config = write_config(tmp_path / "pegboard.json", WORK, **OWN)
    async with stdio_client(config, MODERN, name="Claude Code") as client:
        await data(client, "tool_load", {"names": ["work__mail"]})
        await client.until_changes(1)
        assert "work__mail" in await client.names()
    async with stdio_client(config, MODERN, name="Claude Code") as client:
        assert "work__mail" in await client.names()
    async with stdio_client(config, MODERN, name="Other") as client:
        assert "work__mail" not in await client.names()


@pytest.mark.scenario("first hour: A client has the board of its name")
async def test_a_client_without_a_name_is_promised_nothing(tmp_path: Path) -> None:
    """Whatever it is given says that tools are used with `tool_call`, and that is how it is."""
    async with gateway_of(tmp_path) as gateway, http_client(gateway.mcp, MODERN, name=None) as client:
        assert "your list" not in client.hello["instructions"].partition(":")[2]
        assert "tool_call" in client.hello["instructions"]
        words = {tool["name"]: tool["description"] for tool in await client.tools()}
        assert "list" not in words["tool_load"]
        assert "tool_call" in words["tool_load"]
        answer = await data(client, "tool_load", {"names": ["work__mail"]})
        assert [tool["name"] for tool in answer["tools"]] == ["work__mail"]
        assert answer["total"] == 0
        assert answer["message"].startswith("Your tool list stays as it is")
        active = await data(client, "tool_active")
        assert (active["count"], "tool_load" in active["message"]) == (0, False)
        assert set(await client.names()) == DISCOVERY
        assert "isError" not in await client.call("tool_call", {"name": "work__mail"})


async def test_a_load_says_what_this_client_will_see(tmp_path: Path) -> None:
    """One that hears of no changes sees the tool when it asks again; what is listed already can be called."""
    async with gateway_of(tmp_path, pinned=["work__chat"]) as gateway:
        async with http_client(gateway.mcp, MODERN, name="deaf", listen=False) as client:
            answer = await data(client, "tool_load", {"names": ["work__mail"]})
            assert answer["message"].startswith("They are in your tool list when your client asks for it again;")
            assert "work__mail" in await client.names()
            for listed in ("work__mail", "work__chat"):
                answer = await data(client, "tool_load", {"names": [listed]})
                assert answer["message"] == "They are in your tool list already: call them directly."
        async with http_client(gateway.mcp, "2025-11-25") as session:
            answer = await data(session, "tool_load", {"names": ["work__mail"]})
            assert "from your next request but one on" in answer["message"]


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_board_has_a_size(tmp_path: Path, version: str) -> None:
    """The least recently used tool goes, on both paths of a call, and the answer says which."""
    async with gateway_of(tmp_path, boardSize=2) as gateway, http_client(gateway.mcp, version) as client:
        await data(client, "tool_load", {"names": ["work__mail", "work__issue"]})
        await client.call("work__mail", {})
        answer = await data(client, "tool_load", {"names": ["work__chat"]})
        assert (answer["unloaded"], answer["total"]) == (["work__issue"], 2)
        assert "Unloaded to make room, since used least recently: work__issue." in answer["message"]
        assert set(await client.names()) == {*DISCOVERY, "work__mail", "work__chat"}
        await client.call("tool_call", {"name": "work__mail"})
        answer = await data(client, "tool_load", {"names": ["work__issue"]})
        assert answer["unloaded"] == ["work__chat"]
        refused = await client.call("tool_load", {"names": ["work__mail", "work__issue", "work__chat"]})
        assert "a board holds 2 tools" in json.loads(refused["content"][0]["text"])["error"]["message"]
        assert (await data(client, "tool_active"))["count"] == 2


async def test_credentials_have_boards_of_their_own(tmp_path: Path) -> None:
    """A client of the same name with another token, with none, or of nobody knows whom on another machine has another
    board. Those of tokens are kept over restarts and with another secret; those of nobody are on no disk."""
    secrets: dict[str, dict[str, str]] = {}
    async with gateway_of(tmp_path, auth={"required": False}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:

        async def ask(who: str, method: str, **params: Any) -> dict[str, Any]:
            """A request with this token, or of another machine."""
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN}
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
            headers |= {"X-Forwarded-For": "8.8.8.8"} if who == "remote" else {}
            headers |= secrets.get(who, {})
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
            reply = await http.post(gateway.mcp, json=message, headers=headers)
            assert reply.status_code == 200, reply.text
            return reply.json()["result"]

        async def loaded() -> dict[str, set[str]]:
            """What each has loaded."""
            lists = {who: (await ask(who, "tools/list"))["tools"] for who in ("one", "two", "remote", "")}
            return {who: {tool["name"] for tool in tools} - DISCOVERY for who, tools in lists.items()}

        secrets = {name: await gateway.token(name) for name in ("one", "two")}
        await ask("one", "tools/call", name="tool_load", arguments={"names": ["work__mail"]})
        await ask("remote", "tools/call", name="tool_load", arguments={"names": ["work__chat"]})
        assert await loaded() == {"one": {"work__mail"}, "two": set(), "remote": {"work__chat"}, "": set()}
        kept = await gateway.board.storage.boards.load()
        assert [re.fullmatch(r"principal:token:[0-9a-z]{12}:editor", name) is not None for name in kept] == [True]
    async with gateway_of(tmp_path, auth={"required": False}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        assert await loaded() == {"one": {"work__mail"}, "two": set(), "remote": set(), "": set()}
        tokens = TokenRegistry(gateway.board.storage.tokens, gateway.front.token_watch.load)
        _, text = await tokens.rotate("one", None)
        secrets["one"] = {"authorization": f"Bearer {text}"}
        assert (await loaded())["one"] == {"work__mail"}
        await tokens.remove("one")
        assert await gateway.board.storage.boards.load() == {}
        assert not [board for board in gateway.board.loaded.boards if board.startswith("principal:")]


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("claude-code", "claude-code"),
        ("Visual Studio Code", "Visual-Studio-Code-"),
        ("Zürich / Ω", "Zu-rich-"),
        ("…", ""),
        ("x" * 10_000, "x" * 48 + "-"),
        ("../../etc", "etc-"),
    ],
)
def test_every_name_has_a_board_of_its_own(name: str, board: str) -> None:
    """As it is where it can stand in an address; otherwise what is left of it, and a digest of all of it."""
    folded = fold_board_name(name)
    assert folded is not None
    assert is_board_name(folded)
    assert folded.startswith(board)
    assert folded == name or fold_board_name(f"{name}!") != folded


@pytest.mark.parametrize("name", ["", " ", "\t\n"])
def test_no_name_has_no_board(name: str) -> None:
    """What cannot be told apart from nothing is nothing."""
    assert fold_board_name(name) is None
