"""Calling tools through the gateway: every transport and era on either side."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from harness import (
    ALL_VERSIONS,
    LIMIT,
    Entry,
    RawClient,
    eventually,
    http_client,
    open_gateway,
    seen,
    stdio_client,
    toy,
    write_config,
)
from pegboard.exactjson import parse
from pegboard.servers.errors import RpcError
from servers.toy import RICH_RESULT, Settings
from servers.toy_http import Manners, http_toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

SERVERS = ("stdio_handshake", "stdio_modern", "http_handshake", "http_stream", "http_modern", "sse_handshake")
Feature = Callable[[RawClient, str], Awaitable[None]]
META = "io.modelcontextprotocol/"


@contextlib.contextmanager
def every_server() -> Generator[dict[str, Entry]]:
    """One server of each kind, by the name of its kind."""
    with contextlib.ExitStack() as stack:
        entries: dict[str, Entry] = {}
        for server in SERVERS:
            transport, _, kind = server.partition("_")
            era = "modern" if kind == "modern" else "handshake"
            if transport == "stdio":
                entries[server] = toy(era=era)
                continue
            listening = stack.enter_context(http_toy(Settings(era=era), Manners(stream=kind == "stream")))
            entries[server] = {"type": transport, "url": listening.sse_url if transport == "sse" else listening.url}
        yield entries


def unstamped(result: dict[str, Any], raw: RawClient) -> dict[str, Any]:
    """A result without what the modern era adds on this hop."""
    if not raw.modern:
        return result
    assert result["resultType"] == "complete"
    meta = {key: value for key, value in result["_meta"].items() if key != f"{META}serverInfo"}
    assert result["_meta"][f"{META}serverInfo"]["name"] == "pegboard"
    rest = {key: value for key, value in result.items() if key not in {"resultType", "_meta"}}
    return rest | ({"_meta": meta} if meta else {})


async def carries_arguments_and_results(raw: RawClient, server: str) -> None:
    """Unicode, big integers, nulls, nesting, every content kind and fields nobody knows survive both ways."""
    arguments = {"text": "é\u2028😀\x00", "big": 2**80, "null": None, "deep": [[{"a": [None, 1.5, True]}]], "": {}}
    echoed = unstamped(await raw.call(f"{server}__echo", arguments), raw)
    assert json.loads(echoed["content"][0]["text"]) == arguments
    sent = echoed["structuredContent"]["params"]
    assert sent["arguments"] == arguments
    assert sent["name"] == "echo"
    rich = unstamped(await raw.call(f"{server}__rich"), raw)
    # All servers link to the same: what the first one gave keeps its name, the others' lead to them.
    assert json.loads(json.dumps(rich).replace(f"pegboard://{server}/", "")) == RICH_RESULT


async def passes_failures_on(raw: RawClient, server: str) -> None:
    """`isError` stays a result; a JSON-RPC error stays an error with its code, message and data."""
    failed = await raw.call(f"{server}__fails", {})
    assert failed["isError"] is True
    assert failed["content"] == [{"type": "text", "text": "it went wrong"}]
    with pytest.raises(RpcError) as refused:
        await raw.call(f"{server}__refuses", {})
    assert (refused.value.code, refused.value.message) == (-32099, "no, thank you")
    assert refused.value.data == {"why": ["because", None]}


async def carries_progress(raw: RawClient, server: str) -> None:
    """All of it, in order, before the answer, with the client's own token; none for a call that asked for none."""
    seen: list[Any] = []
    result = await raw.call(f"{server}__progress", {"steps": 5}, on_progress=seen.append)
    assert [said["progress"] for said in seen] == [1, 2, 3, 4, 5]
    assert all(said["total"] == 5 and said["odd"] is True for said in seen)
    assert seen[-1]["message"] == "step 5"
    assert result["content"][0]["text"] == "5 steps, token given"
    assert await raw.text(f"{server}__progress", {"steps": 2}) == "2 steps, token none"


async def carries_cancellation(raw: RawClient, server: str) -> None:
    """Giving up at one end reaches the other, and the connection goes on."""
    calls = (await raw.call(f"{server}__seen"))["structuredContent"]["calls"]
    call = asyncio.create_task(raw.call(f"{server}__sleep", {"seconds": 60}, timeout=60))
    async with asyncio.timeout(LIMIT):
        while (await raw.call(f"{server}__seen"))["structuredContent"]["calls"] < calls + 3:
            await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while len((await raw.call(f"{server}__seen"))["structuredContent"]["cancelled"]) != 1:
            await asyncio.sleep(0.02)


async def carries_changes(raw: RawClient, server: str) -> None:
    """`list_changed` of the server is followed by ours, once the new list can be had."""
    await raw.until_listed(lambda names: f"{server}__change" in names)
    before = raw.changes()
    await raw.call(f"{server}__change", {"add": ["fresh"]})
    await raw.until_changes(before + 1)
    await raw.until_listed(lambda names: f"{server}__fresh" in names)
    assert await raw.text(f"{server}__fresh") == "toy:fresh"


FEATURES = (carries_arguments_and_results, passes_failures_on, carries_progress, carries_cancellation, carries_changes)


@pytest.mark.scenario(
    "gateway: Tool invocation with arguments",
    "gateway: Tool invocation result format",
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.__name__)
async def test_over_http(tmp_path: Path, feature: Feature, server: str, version: str) -> None:
    """Each feature holds between an HTTP client of either era and every kind of server."""
    with every_server() as entries:
        async with (
            open_gateway(tmp_path, {server: entries[server]}) as gateway,
            http_client(gateway.mcp, version) as raw,
        ):
            await feature(raw, server)


@pytest.mark.scenario(
    "gateway: Tool invocation with arguments",
    "gateway: Tool invocation result format",
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_over_stdio(tmp_path: Path, version: str) -> None:
    """Each feature holds between a stdio client of either era and every kind of server, all in one process."""
    with every_server() as entries:
        async with stdio_client(write_config(tmp_path / "pegboard.json", entries), version) as raw:
            for feature in FEATURES:
                for server in SERVERS:
                    await feature(raw, server)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("server_version", ALL_VERSIONS)
async def test_every_protocol_version_on_either_side(tmp_path: Path, version: str, server_version: str) -> None:
    """Clients and servers of every protocol version list and call, in any combination."""
    era = "modern" if server_version == "2026-07-28" else "handshake"
    entry = toy(era=era, versions=[server_version], tools=["a"])
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_listed(lambda names: "one__a" in names)
        assert await client.text("one__a") == "toy:a"
        hello = gateway.board.servers["one"].hello
        assert hello is not None
        assert (hello.era, hello.version) == (era, server_version)
        if not client.modern:
            assert client.hello["protocolVersion"] == version
            assert client.hello["capabilities"]["tools"]["listChanged"] is True


async def test_meta_is_kept_except_for_keys_of_one_hop(tmp_path: Path) -> None:
    """A client's `_meta` reaches the server without the progress token and the envelope of this hop."""
    async with open_gateway(tmp_path, {"one": toy(era="handshake")}) as gateway:
        async with http_client(gateway.mcp, "2026-07-28") as client:
            params = {"name": "one__echo", "arguments": {}, "_meta": {"vendor/trace": {"a": None}}, "extra": [1]}
            sent = (await client.request("tools/call", params))["structuredContent"]["params"]
            assert sent == {"name": "echo", "arguments": {}, "_meta": {"vendor/trace": {"a": None}}, "extra": [1]}


async def test_missing_arguments_stay_missing(tmp_path: Path) -> None:
    """Pegboard adds no arguments of its own: the server is the judge of what it gets."""
    async with open_gateway(tmp_path, {"one": toy(era="handshake")}) as gateway, http_client(gateway.mcp) as client:
        sent = (await client.call("one__echo"))["structuredContent"]["params"]
        assert sent == {"name": "echo"}


@pytest.mark.scenario(
    "gateway: Tool invoked on correct backend",
    "registry: AC4 a name with a server's prefix leads to that server",
)
async def test_calls_are_routed_to_the_owner_and_share_one_connection(tmp_path: Path) -> None:
    """Twenty calls at once on each of two servers: two processes, each answering for itself and seeing its own."""
    servers = {name: toy(name=name, tools=["who"]) for name in ("one", "two")}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        calls = [(server, tool) for server in servers for tool in ("who", "pid") for _ in range(10)]
        said = await asyncio.gather(*(client.text(f"{server}__{tool}") for server, tool in calls))
        answers = {call: {text for each, text in zip(calls, said, strict=True) if each == call} for call in calls}
        assert (answers["one", "who"], answers["two", "who"]) == ({"one:who"}, {"two:who"})
        assert len(answers["one", "pid"]) == len(answers["two", "pid"]) == 1
        assert answers["one", "pid"] != answers["two", "pid"]
        for server in servers:
            assert (await seen(client, server))["calls"] == 21


async def test_an_unknown_tool_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    """-32602, the nearest names and `tool_find`; a renamed one is named, and said to be missing if it is."""
    own: dict[str, Any] = {
        "toolsets": ["discovery"],
        "renamed": {"old_echo": "one__echo", "old_gone": "two__gone"},
    }
    async with open_gateway(tmp_path, {"one": toy()}, **own) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        for name, words in {
            "one__ehco": ["one__echo", "tool_find"],
            "old_echo": ['"one__echo"'],
            "old_gone": ['"two__gone"', "not installed"],
            "__echo": ["Unknown tool"],
            "one__": ["Unknown tool"],
        }.items():
            with pytest.raises(RpcError) as unknown:
                await client.call(name)
            assert unknown.value.code == -32602
            assert all(word in unknown.value.message for word in words), unknown.value.message


@pytest.mark.scenario("registry: AC2 the first call discovers, and the tools are kept for five minutes")
async def test_a_call_of_a_server_never_seen_connects_discovers_and_calls(tmp_path: Path) -> None:
    """The first thing a client does may be a call."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        assert gateway.board.registry.server("one") is None
        assert await client.text("one__echo", {"a": 1}) == '{"a": 1}'
        with pytest.raises(RpcError, match="Unknown tool"):
            await client.call("one__nothing")


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_call_beyond_its_time_limit_is_unavailable_and_told_to_the_server(tmp_path: Path, kind: str) -> None:
    """`timeout` runs out: a retryable error for this call, a cancellation for the server, nothing for anyone else."""
    with http_toy(Settings(era="handshake")) as listening:
        limit = {"timeout": 1.5}
        entry = toy(limit, era="handshake") if kind == "stdio" else {"url": listening.url, **limit}
        async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp) as client:
            await client.names()
            result = await client.call("one__sleep", {"seconds": 60})
            error = json.loads(result["content"][0]["text"])
            assert result["isError"] is True
            assert error["success"] is False
            assert error["error"]["code"] == "TOOL_UNAVAILABLE"
            assert error["error"]["retryable"] is True
            assert "timed out" in error["error"]["message"]
            async with asyncio.timeout(LIMIT):
                while len((await client.call("one__seen"))["structuredContent"]["cancelled"]) != 1:
                    await asyncio.sleep(0.02)


async def test_progress_keeps_a_long_call_alive(tmp_path: Path) -> None:
    """A server that reports progress is at work: its time limit starts anew with each report."""
    async with open_gateway(tmp_path, {"one": toy({"timeout": 2})}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        seen: list[Any] = []
        result = await client.call("one__progress", {"steps": 6, "pause": 0.5}, on_progress=seen.append)
        assert result["content"][0]["text"].startswith("6 steps")


async def test_the_servers_own_name_and_marked_arguments_stand_in_the_headers(tmp_path: Path) -> None:
    """To a modern HTTP server go Mcp-Method, its own tool name, and Mcp-Param headers for marked arguments."""
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        },
    }
    settings = Settings(era="modern", raw_tools=[{"name": "marked", "inputSchema": schema}])
    with http_toy(settings) as listening:
        async with (
            open_gateway(tmp_path, {"one": {"type": "http", "url": listening.url}}) as gateway,
            http_client(gateway.mcp) as client,
        ):
            await client.names()
            with pytest.raises(RpcError):
                await client.call("one__refuses", {})
            listening.headers.clear()
            with contextlib.suppress(RpcError):
                await client.call("one__marked", {"region": "süd", "where": {"n": 7}, "free": "x"})
            sent = listening.headers[0]
            assert sent["mcp-protocol-version"] == "2026-07-28"
            assert (sent["mcp-method"], sent["mcp-name"]) == ("tools/call", "marked")
            assert sent["mcp-param-region"] == "=?base64?c8O8ZA==?="
            assert sent["mcp-param-n"] == "7"
            listening.headers.clear()
            with contextlib.suppress(RpcError):
                await client.call("one__marked", parse('{"where":{"n":1e2}}'))
            assert listening.headers[0]["mcp-param-n"] == "100"
            listening.headers.clear()
            refused = await client.call("one__marked", parse(r'{"region":"x\ud83d"}'))
            assert "TOOL_INVALID_INPUT" in refused["content"][0]["text"]
            assert "region: no HTTP header can have half of a surrogate pair" in refused["content"][0]["text"]
            assert not listening.headers


async def test_a_state_of_ones_own_with_instance_session(tmp_path: Path) -> None:
    """`instance: session` gives each client session its own process, and ends it with the session."""
    servers = {"own": toy({"instance": "session"}), "shared": toy()}
    async with open_gateway(tmp_path, servers) as gateway:
        async with http_client(gateway.mcp) as one:
            async with http_client(gateway.mcp) as two:
                assert [await one.text("own__count"), await one.text("own__count")] == ["1", "2"]
                assert await two.text("own__count") == "1"
                assert await one.text("shared__pid") == await two.text("shared__pid")
                pid = int(await two.text("own__pid"))
            from harness import alive

            await eventually(lambda: not alive(pid))
            assert await one.text("own__count") == "3"


async def test_processes_for_sessions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session beyond the limit is refused in words, nobody else notices, and it has its turn when one has ended."""
    monkeypatch.setattr("pegboard.servers.connections.MOST_SESSIONS", 2)
    async with open_gateway(tmp_path, {"own": toy({"instance": "session"})}) as gateway:
        async with http_client(gateway.mcp) as one, http_client(gateway.mcp) as three:
            async with http_client(gateway.mcp) as two:
                assert [await one.text("own__count"), await two.text("own__count")] == ["1", "1"]
                refused = await three.call("own__count")
                assert refused["isError"] is True
                assert "TOOL_UNAVAILABLE" in str(refused)
                assert "2 sessions use it already, which is the limit" in str(refused)
                assert await one.text("own__count") == "2"
                assert gateway.board.servers["own"].failure() is None
            await eventually(lambda: len(gateway.board.servers["own"]._connections) < 3)
            assert await three.text("own__count") == "1"
