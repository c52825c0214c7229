"""What a client pays for its list, and what it is told while servers are still starting."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, http_client, open_gateway, stdio_client, toy, toy_after, write_config
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

VERSIONS = ("2025-11-25", "2026-07-28")
DISCOVERY = {"tool_active", "tool_call", "tool_describe", "tool_find", "tool_load", "tool_unload"}
PINNED = {"memory_search", "memory_fulltext_search"}
CLOCK: dict[str, Any] = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone=UTC"]}}
CLOCK_TOOLS = {"time__get_current_time", "time__convert_time"}
# As it comes, where the tests' own configs are leaner.
DEFAULTS: dict[str, Any] = {"expose": "auto", "toolsets": ["discovery", "memory", "chats", "tasks"]}


@pytest.mark.scenario("first hour: A lean list")
@pytest.mark.parametrize("version", VERSIONS)
async def test_one_server_with_two_tools_costs_three_thousand_tokens_at_most(tmp_path: Path, version: str) -> None:
    """The list and the instructions of a gateway as it comes; Pegboard's own tools are found, loaded and called."""
    async with open_gateway(tmp_path, CLOCK, **DEFAULTS) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp, version) as client:
            listed = await client.tools()
            assert {tool["name"] for tool in listed} == {*DISCOVERY, *PINNED, *CLOCK_TOOLS}
            cost = len(json.dumps(listed, ensure_ascii=False).encode()) + len(client.hello["instructions"].encode())
            assert cost / 4 <= 3000
            assert "memory, chats, tasks" in client.hello["instructions"]
            found = (await client.call("tool_find", {"query": "add a memory"}))["structuredContent"]["data"]["tools"]
            assert "memory_add" in [hit["name"] for hit in found if not hit["listed"]]
            await client.call("tool_load", {"names": ["memory_add"]})
            assert "memory_add" in await client.names()
            added = await client.call("memory_add", {"key": "k", "summary": "s"})
            assert added["isError"] is False, added


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_address_chooses_how_much_is_listed(tmp_path: Path, version: str) -> None:
    """For one client, whatever the setting says."""
    async with open_gateway(tmp_path, CLOCK, **{**DEFAULTS, "expose": "search"}) as gateway:
        await gateway.board.refresh()
        counts: dict[str, int] = {}
        for expose in ("", "search", "auto", "all"):
            address = f"{gateway.mcp}?expose={expose}" if expose else gateway.mcp
            async with http_client(address, version) as client:
                counts[expose] = len(await client.names())
        # The discovery tools, the pinned ones, and what reads the rest of a large result.
        assert counts[""] == counts["search"] == 9
        assert counts["auto"] == 10
        assert counts["all"] > 25


async def test_an_address_that_says_something_else_is_refused(tmp_path: Path) -> None:
    """With the words that there are."""
    async with open_gateway(tmp_path, {}) as gateway:
        async with httpx2.AsyncClient(timeout=LIMIT) as http:
            reply = await http.post(f"{gateway.mcp}?expose=everything", json={})
        assert reply.status_code == 400
        assert "expose must be one of auto, all, search, found 'everything'" in reply.text


@pytest.mark.scenario("first hour: Servers that are still asked are named")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", ["on", "off"])
async def test_whatever_is_asked_names_the_servers_that_are_still_starting(
    tmp_path: Path, version: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists, searches, descriptions and calls of unknown tools; a filter hides them, and in the end nothing is said."""
    monkeypatch.setenv("PEGBOARD_FAST_PATH", path)
    (closed := tmp_path / "closed").touch()
    servers = {"slow": toy_after(closed, tools=["snooze"]), "time": toy(tools=["now"])}
    async with open_gateway(tmp_path, servers, **DEFAULTS) as gateway, http_client(gateway.mcp, version) as client:
        assert "Still starting: slow" in client.hello["instructions"]
        await client.until_listed(lambda names: "time__now" in names)
        assert (await client.request("tools/list"))["_meta"]["pegboard/starting"] == ["slow"]
        found = (await client.call("tool_find", {"query": "snooze"}))["structuredContent"]["data"]
        assert found["starting"] == ["slow"]
        assert found["message"].startswith("Still starting: slow. Their tools are not known yet")
        described = await client.call("tool_describe", {"name": "snoozing"})
        assert "Still starting: slow." in described["content"][0]["text"]
        with pytest.raises(RpcError, match=r"Still starting: slow\."):
            await client.call("snoozing", {})
        async with http_client(f"{gateway.mcp}?server=time", version) as narrow:
            assert "slow" not in narrow.hello["instructions"]
            assert "pegboard/starting" not in (await narrow.request("tools/list")).get("_meta", {})
        closed.unlink()
        await client.until_listed(lambda names: "slow__snooze" in names)
        assert "pegboard/starting" not in (await client.request("tools/list")).get("_meta", {})
        found = (await client.call("tool_find", {"query": "snooze"}))["structuredContent"]["data"]
        assert not {"starting", "message"} & found.keys()


async def test_a_server_that_failed_is_not_said_to_be_starting(tmp_path: Path) -> None:
    """It may never come: nobody is to wait for it."""
    servers: dict[str, Any] = {"broken": {"command": "no-such-program-here"}, "time": toy(tools=["now"])}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        await gateway.board.refresh()
        assert "_meta" not in await client.request("tools/list")


async def test_over_stdio_the_greeting_names_them_too(tmp_path: Path) -> None:
    """Where a client begins with servers that were never seen."""
    (closed := tmp_path / "closed").touch()
    config = write_config(tmp_path / "pegboard.json", {"slow": toy_after(closed, tools=["snooze"])})
    async with stdio_client(config) as client:
        assert "Still starting: slow" in client.hello["instructions"]
        assert (await client.request("tools/list"))["_meta"]["pegboard/starting"] == ["slow"]
        closed.unlink()
        await client.until_listed(lambda names: "slow__snooze" in names)
