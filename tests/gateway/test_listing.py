"""Listing tools through the gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from harness import ALL_VERSIONS, http_client, open_board, open_gateway, seen, toy, toy_after
from pegboard.board import NEW_SERVER_WAIT
from pegboard.servers.errors import RpcError
from servers.toy import BUILT_IN
from servers.toy_http import http_toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]


@pytest.mark.scenario("gateway: Tools listed from single backend")
async def test_every_tool_of_a_single_server_is_listed(tmp_path: Path) -> None:
    """All tools of the one server there is, no more and no fewer."""
    async with open_gateway(tmp_path, {"one": toy(tools=["a", "b"])}) as gateway, http_client(gateway.mcp) as client:
        names = await client.names()
        assert sorted(names) == sorted(f"one__{name}" for name in [*BUILT_IN, "a", "b"])


@pytest.mark.scenario("gateway: Tools listed from multiple backends")
async def test_several_servers_with_the_same_tool_names_are_told_apart(tmp_path: Path) -> None:
    """Names are unique across servers because each carries its server's."""
    servers = {name: toy(tools=["same"]) for name in ("one", "two", "three")}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        names = await client.names()
        assert len(names) == len(set(names)) == 3 * (len(BUILT_IN) + 1)
        assert {"one__same", "two__same", "three__same"} <= set(names)
        assert names == sorted(names)


@pytest.mark.scenario(
    "gateway: Tool listing includes metadata",
    "gateway: Valid tool schemas accepted",
    "gateway: Tool schema includes all required fields",
)
@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_each_listed_tool_has_name_description_and_schema(tmp_path: Path, version: str) -> None:
    """A missing description is filled in from the title or the names; all else is as the server sent it."""
    raw = [
        {"name": "bare", "inputSchema": {"type": "object"}},
        {"name": "titled", "title": "A title", "inputSchema": {"type": "object"}},
        {
            "name": "full",
            "title": "Full",
            "description": "All of it",
            "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}},
            "outputSchema": {"type": "object", "properties": {"r": {"type": "null"}}},
            "annotations": {"readOnlyHint": True, "future": 1},
            "icons": [{"src": "data:image/png;base64,AA=="}],
            "_meta": {"vendor/x": [None, {"y": None}]},
            "execution": {"taskSupport": "forbidden"},
            "unheardOf": {"kept": None},
        },
    ]
    servers = {"one": toy(raw_tools=raw)}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        listed = {tool["name"]: tool for tool in await client.tools()}
        assert listed["one__bare"]["description"] == "bare of one"
        assert listed["one__titled"]["description"] == "A title"
        assert listed["one__full"] == {**raw[2], "name": "one__full"}
        assert all(tool["name"] and tool["description"] and tool["inputSchema"] for tool in listed.values())
        for own_name in ("bare", "titled", "full"):
            assert await client.text(f"one__{own_name}") == f"toy:{own_name}"


@pytest.mark.scenario("gateway: Tools listed from single backend")
async def test_every_page_of_a_servers_list_is_read(tmp_path: Path) -> None:
    """A server that gives its tools on seven pages has all of them listed."""
    many = [f"t{number}" for number in range(40)]
    async with open_gateway(tmp_path, {"one": toy(tools=many, pages=7)}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: len(names) == len(BUILT_IN) + 40)


@pytest.mark.scenario("gateway: Tool listing is fast")
async def test_a_slow_and_a_broken_server_do_not_hold_up_the_list(tmp_path: Path) -> None:
    """With nothing known yet, the good servers' tools are there before the slow one's, which follow."""
    silent = tmp_path / "silent"
    silent.touch()
    servers = {
        "good": toy(tools=["a"]),
        "also_good": toy(tools=["b"]),
        "slow": toy(start_delay=600),
        "later": toy_after(silent, tools=["late"]),
        "broken": {"command": "there-is-no-such-command"},
    }
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        names = await client.until_listed(lambda listed: {"good__a", "also_good__b"} <= listed)
        assert not any(name.startswith(("slow__", "later__", "broken__")) for name in names)
        silent.unlink()
        await client.until_listed(lambda listed: "later__late" in listed)


@pytest.mark.scenario("gateway: Tool listing is fast")
async def test_a_list_waits_less_than_half_a_second_for_servers_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the event loop's timers, however busy the machine is: all that a list starts run out in under 500 ms."""
    monkeypatch.setattr("pegboard.board.NEW_SERVER_WAIT", NEW_SERVER_WAIT)
    loop, timers = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def noting(delay: float, *rest: Any, **more: Any) -> Any:
        if asyncio.current_task() is listing:
            timers.append(delay)
        return call_later(delay, *rest, **more)

    async with open_board(tmp_path, {"slow": toy(start_delay=600)}) as board:
        listing = asyncio.create_task(board.list_tools())
        monkeypatch.setattr(loop, "call_later", noting)
        assert not (await listing).items
        # The rest of the 500 ms is for making and sending the list.
        assert 0 < sum(timers) <= 0.45


@pytest.mark.scenario("gateway: Tool listing is fast")
async def test_a_list_does_not_wait_for_calls_under_way(tmp_path: Path) -> None:
    """A long call, even of the same server, does not block the list."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        expected = (await seen(client, "one"))["calls"] + 1
        call = asyncio.create_task(client.call("one__sleep", {"seconds": 600}, timeout=600))
        # Each look is a call, too.
        while (await seen(client, "one"))["calls"] <= expected:
            expected += 1
            await asyncio.sleep(0.01)
        assert await client.names()
        assert not call.done()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


@pytest.mark.scenario("gateway: Tool listing is fast")
async def test_a_restart_lists_everything_without_connecting(tmp_path: Path) -> None:
    """What was discovered once is listed and described after a restart with no connection open."""
    servers = {"one": toy(tools=["a"]), "two": toy(era="modern", tools=["b"])}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        before = await client.tools()
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        assert await client.tools() == before
        assert not any(server.is_connected for server in gateway.board.servers.values())
        assert await client.text("two__b") == "toy:b"


@pytest.mark.scenario(
    "gateway: Filter tools by prefix",
    "gateway: Filter tools by backend",
    "gateway: Empty filter returns all tools",
)
async def test_filters_of_the_address_bind_the_whole_client(tmp_path: Path) -> None:
    """`/mcp?server=…&prefix=…` narrows list and calls; both given, both must hold; empty means all."""
    servers = {"one": toy(tools=["a"]), "two": toy(tools=["a"]), "three": toy(tools=["a"])}
    async with open_gateway(tmp_path, servers) as gateway:
        async with http_client(f"{gateway.mcp}?server=one,three") as client:
            names = await client.names()
            assert {name.split("__")[0] for name in names} == {"one", "three"}
            with pytest.raises(Exception, match="Unknown tool"):
                await client.call("two__a")
            assert await client.text("one__a") == "toy:a"
        async with http_client(f"{gateway.mcp}?prefix=two__e") as client:
            assert await client.names() == ["two__echo", "two__environment"]
        async with http_client(f"{gateway.mcp}?server=one&prefix=two__") as client:
            assert await client.names() == []
        async with http_client(f"{gateway.mcp}?server=&prefix=") as client, http_client(gateway.mcp) as plain:
            assert await client.names() == await plain.names()


@pytest.mark.scenario(
    "gateway: Filter tools by prefix",
    "gateway: Filter tools by backend",
    "gateway: Empty filter returns all tools",
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_filters_of_one_request_narrow_that_list(tmp_path: Path, version: str) -> None:
    """`_meta` carries filters for one request; they come on top of the address's."""
    servers = {"one": toy(tools=["a"]), "two": toy(tools=["a"])}
    async with (
        open_gateway(tmp_path, servers) as gateway,
        http_client(f"{gateway.mcp}?server=one,two", version) as client,
    ):
        only_two = await client.names({"_meta": {"pegboard/server": "two"}})
        assert only_two
        assert all(name.startswith("two__") for name in only_two)
        assert await client.names({"_meta": {"pegboard/server": ["two"], "pegboard/prefix": "two__a"}}) == ["two__a"]
        assert await client.names({"_meta": {"pegboard/server": "nobody"}}) == []
        assert len(await client.names({"_meta": {"pegboard/server": "", "pegboard/prefix": ""}})) == len(
            await client.names()
        )
        for key in ("pegboard/server", "pegboard/prefix"):
            with pytest.raises(RpcError, match="100 names") as refusal:
                await client.names({"_meta": {key: "two," * 100_000}})
            assert refusal.value.code == -32602


async def test_allow_and_deny_decide_what_is_exposed(tmp_path: Path) -> None:
    """A tool that the config denies is neither listed nor callable."""
    entry = toy({"tools": {"allow": ["e*", "count"], "deny": ["environment"]}})
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp) as client:
        assert await client.names() == ["one__count", "one__echo"]
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call("one__environment")


async def test_a_server_without_prefix_keeps_its_own_names(tmp_path: Path) -> None:
    """`prefix: false` exposes a server's own names beside the prefixed ones of others."""
    servers = {"bare": toy({"prefix": False}, tools=["a"]), "other": toy(tools=["a"])}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        names = await client.names()
        assert {"a", "echo", "other__a"} <= set(names)
        assert await client.text("a") == "toy:a"


async def test_long_and_strange_names_become_acceptable_and_still_work(tmp_path: Path) -> None:
    """A name that providers would refuse is cut with a digest, the same on every start; the original is called."""
    raw = [
        {"name": "x" * 90, "inputSchema": {"type": "object"}},
        {"name": "x" * 91, "inputSchema": {"type": "object"}},
        {"name": "odd name/é", "inputSchema": {"type": "object"}},
    ]
    async with open_gateway(tmp_path, {"one": toy(raw_tools=raw)}) as gateway, http_client(gateway.mcp) as client:
        names = [name for name in await client.names() if name.startswith(("one__x", "one__odd"))]
        assert len(names) == len(set(names)) == 3
        assert all(len(name) <= 48 and name.replace("_", "").replace("-", "").isalnum() for name in names)
        for name in names:
            assert (await client.call(name))["content"][0][
                "text"
            ] == f"toy:{gateway.board.registry.get(name).original_name}"  # type: ignore[union-attr]
    async with open_gateway(tmp_path, {"one": toy(raw_tools=raw)}) as gateway, http_client(gateway.mcp) as client:
        assert names == [name for name in await client.names() if name in names]


@pytest.mark.scenario("gateway: Invalid tool schema rejected")
async def test_an_invalid_tool_is_left_out_and_its_siblings_stay(tmp_path: Path) -> None:
    """One bad definition is logged and left out; the connection and the other tools go on."""
    raw = [
        {"name": "bad_type", "inputSchema": {"type": "array"}},
        {"name": "bad_schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
        {"name": "no_schema"},
        "not even an object",
        {"name": "good", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}},
    ]
    async with open_gateway(tmp_path, {"one": toy(raw_tools=raw)}) as gateway, http_client(gateway.mcp) as client:
        with capture_logs() as logs:
            names = await client.until_listed(lambda listed: "one__good" in listed)
        assert not any("bad" in name or "no_schema" in name for name in names)
        left_out = [entry for entry in logs if entry["event"] == "tools.schema.invalid"]
        assert {entry["tool"] for entry in left_out} == {"bad_type", "bad_schema", "no_schema", "?"}
        assert all(entry["log_level"] == "error" and entry["reason"] for entry in left_out)
        assert {entry["serverName"] for entry in left_out} == {"one"}
        assert await client.text("one__echo", {"a": 1}) == '{"a": 1}'
        known = gateway.board.registry.server("one")
        assert known is not None
        assert set(known.rejected) == {"bad_type", "bad_schema", "no_schema", "?"}


async def test_a_cursor_nobody_gave_is_refused(tmp_path: Path) -> None:
    """The whole list is on one page, so a cursor can only be a mistake."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        with pytest.raises(Exception, match="cursor"):
            await client.tools({"cursor": "7"})


async def test_a_server_that_pages_forever_is_given_up(tmp_path: Path) -> None:
    """Pages without an end become one clear error, and other servers are untouched."""
    servers = {"endless": toy(endless_pages=True), "good": toy(tools=["a"])}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: "good__a" in names)
        result = await gateway.board.discovery.discover("endless")
        assert result.error is not None
        assert "without an end" in result.error.message


async def test_an_http_server_is_listed_like_any_other(tmp_path: Path) -> None:
    """Streamable HTTP, HTTP+SSE and stdio servers stand side by side."""
    with http_toy() as listening:
        servers = {
            "http": {"type": "http", "url": listening.url},
            "sse": {"type": "sse", "url": listening.sse_url},
            "stdio": toy(),
        }
        async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
            names = await client.until_listed(lambda names: len(names) == 3 * len(BUILT_IN))
            assert {name.split("__")[0] for name in names} == {"http", "sse", "stdio"}
