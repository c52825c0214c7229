"""What clients are told when servers come, go and change."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from harness import Entry, Gateway, RawClient, eventually, http_client, open_gateway, toy, toy_unless
from pegboard.servers.server_state import ServerState
from servers.toy import BUILT_IN, Settings
from servers.toy_http import http_toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

both_eras = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


async def pid_of(client: RawClient, server: str) -> int:
    return int(await client.text(f"{server}__pid"))


async def meet(tmp_path: Path, servers: dict[str, Entry]) -> None:
    """Let an earlier gateway see all of these, so that the next one has no notices from getting to know them."""
    async with open_gateway(tmp_path, servers) as gateway:
        assert (await gateway.board.refresh()).success


@pytest.mark.scenario("gateway: New tools appear after backend connects")
@both_eras
async def test_a_new_server_appears_with_a_notice(tmp_path: Path, version: str) -> None:
    """A server added to the config while running is told of and listed."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_listed(lambda names: "one__echo" in names)
        before = client.changes()
        await gateway.configure({"one": toy(), "two": toy(tools=["x"])})
        await client.until_listed(lambda names: "two__x" in names)
        await client.until_changes(before + 1)


@pytest.mark.scenario("gateway: Tools removed after backend disconnects")
@both_eras
async def test_a_lost_server_leaves_the_list_at_once_and_comes_back(tmp_path: Path, version: str) -> None:
    """A process that dies takes its tools with it, is told of, is started again, and is told of again."""
    gone = tmp_path / "gone"
    servers = {"one": toy_unless(gone), "two": toy()}
    await meet(tmp_path, servers)
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        assert len(await client.names()) == 2 * len(BUILT_IN)
        pid = await pid_of(client, "one")
        gone.touch()
        os.kill(pid, signal.SIGKILL)
        await client.until_changes(1)
        assert {name.split("__")[0] for name in await client.names()} == {"two"}
        assert gateway.board.servers["one"].state is ServerState.LOST
        gone.unlink()
        await client.until_changes(2)
        assert "one__echo" in await client.names()
        assert await pid_of(client, "one") != pid


@pytest.mark.scenario("registry: AC6 a disabled server's tools are removed at the next refresh")
@both_eras
async def test_disabling_removes_and_enabling_brings_back_within_the_ttl(tmp_path: Path, version: str) -> None:
    """A disabled server's tools are gone with a notice; enabled again, they are back though nothing expired."""
    servers = {"one": toy(), "two": toy()}
    off = {**servers, "one": {**servers["one"], "enabled": False}}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_listed(lambda names: len(names) == 2 * len(BUILT_IN))
        pid = await pid_of(client, "one")
        before = client.changes()
        await gateway.configure(off)
        await client.until_changes(before + 1)
        assert not any(name.startswith("one__") for name in await client.names())
        result = await client.call("one__echo", {})
        assert result["isError"] is True
        assert "disabled" in result["content"][0]["text"]
        assert "TOOL_UNAVAILABLE" in result["content"][0]["text"]
        from harness import alive

        await eventually(lambda: not alive(pid))
        await gateway.configure(servers)
        await client.until_changes(before + 2)
        assert "one__echo" in await client.names()
        assert await client.text("one__echo", {}) == "{}"


async def test_a_removed_server_is_gone_with_a_notice_and_says_why(tmp_path: Path) -> None:
    """Removal leaves no cached list behind, and a call says that the server was removed."""
    async with open_gateway(tmp_path, {"one": toy(), "two": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: len(names) == 2 * len(BUILT_IN))
        before = client.changes()
        await gateway.configure({"two": toy()})
        await client.until_changes(before + 1)
        assert all(name.startswith("two__") for name in await client.names())
        assert "removed" in (await client.call("one__echo"))["content"][0]["text"]


async def test_a_client_hears_only_of_its_own_view(tmp_path: Path) -> None:
    """A change outside of a client's filter is not told to it."""
    servers = {"one": toy(), "two": toy()}
    async with (
        open_gateway(tmp_path, servers) as gateway,
        http_client(f"{gateway.mcp}?server=one") as narrow,
        http_client(gateway.mcp) as wide,
    ):
        await wide.until_listed(lambda names: len(names) == 2 * len(BUILT_IN))
        await narrow.names()
        before = narrow.changes(), wide.changes()
        await wide.call("two__change", {"add": ["fresh"]})
        await wide.until_changes(before[1] + 1)
        await wide.call("one__change", {"add": ["also_fresh"]})
        await narrow.until_changes(before[0] + 1)
        assert narrow.changes() == before[0] + 1


async def test_no_notice_when_nothing_really_changed(tmp_path: Path) -> None:
    """A refresh that finds the same tools is told to nobody."""
    await meet(tmp_path, {"one": toy()})
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        for _ in range(3):
            assert (await gateway.board.refresh()).success
        await client.call("one__change", {"add": ["x"], "announce": False})
        await client.call("one__change", {"remove": ["x"]})
        await eventually(lambda: not gateway.board.discovery._running and gateway.board.lists.tools._timer is None)
        # A notice of the real change would come after any of those that must not be.
        await client.call("one__change", {"add": ["y"]})
        await client.until_changes(1)
        await client.names()
        await eventually(lambda: gateway.board.lists.tools._timer is None)
        assert client.changes() == 1


async def test_stopping_an_idle_server_is_no_loss(tmp_path: Path) -> None:
    """After idling the process is gone, the tools stay listed, nobody is told, and a call starts it again."""
    async with (
        open_gateway(tmp_path, {"one": toy({"idleTimeout": 0.3})}) as gateway,
        http_client(gateway.mcp) as client,
    ):
        pid = await pid_of(client, "one")
        await client.until_changes(1)
        before = client.changes()
        await eventually(lambda: gateway.board.servers["one"].state is ServerState.IDLE)
        from harness import alive

        await eventually(lambda: not alive(pid))
        assert "one__echo" in await client.names()
        assert client.changes() == before
        assert await pid_of(client, "one") != pid


async def test_a_call_under_way_keeps_a_server_from_idling(tmp_path: Path) -> None:
    """Idle means that nobody waits for an answer."""
    async with (
        open_gateway(tmp_path, {"one": toy({"idleTimeout": 0.3})}) as gateway,
        http_client(gateway.mcp) as client,
    ):
        assert await client.text("one__sleep", {"seconds": 1}) == "awake"


@pytest.mark.scenario(
    "gateway: Tools removed after backend disconnects",
    "gateway: Tool marked as unavailable when backend disconnected",
)
async def test_an_http_server_that_goes_away_is_lost_and_found(tmp_path: Path) -> None:
    """A refused connection takes the tools from the list; once the server listens again they are back."""
    with http_toy(Settings(tools=["x"])) as listening:
        port = listening.port
        await meet(tmp_path, {"one": {"type": "http", "url": listening.url}})
        gateway_open = open_gateway(tmp_path, {"one": {"type": "http", "url": listening.url}})
        gateway = await gateway_open.__aenter__()
        client_open = http_client(gateway.mcp)
        client: RawClient = await client_open.__aenter__()
        assert await client.text("one__x") == "toy:x"
        assert "one__x" in await client.names()
    result = await client.call("one__x")
    assert result["isError"] is True
    assert "TOOL_UNAVAILABLE" in result["content"][0]["text"]
    await client.until_changes(1)
    assert await client.names() == []
    with http_toy(Settings(tools=["x"]), port=port):
        gateway.board.servers["one"].breaker.retry_at = 0
        await client.until_listed(lambda names: "one__x" in names)
        await client.until_changes(2)
        assert await client.text("one__x") == "toy:x"
        await client_open.__aexit__(None, None, None)
        await gateway_open.__aexit__(None, None, None)


async def test_an_expired_http_session_is_opened_anew_without_anyone_noticing(tmp_path: Path) -> None:
    """A server that forgot our session is greeted again, and the call goes through."""
    with http_toy(Settings(era="handshake")) as listening:
        async with (
            open_gateway(tmp_path, {"one": {"type": "http", "url": listening.url}}) as gateway,
            http_client(gateway.mcp) as client,
        ):
            assert await client.text("one__echo", {"n": 1}) == '{"n": 1}'
            listening.sessions.clear()
            assert await client.text("one__echo", {"n": 2}) == '{"n": 2}'


async def consistent(gateway: Gateway, client: RawClient, present: set[str]) -> None:
    names = await client.until_listed(lambda names: {name.split("__")[0] for name in names} == present)
    assert len(names) == len(present) * len(BUILT_IN)


@pytest.mark.scenario("gateway: Tool list updates are consistent")
async def test_rapid_changes_end_in_a_consistent_list(tmp_path: Path) -> None:
    """Servers enabled, disabled, killed and changed at random: afterwards every client has exactly what is there."""
    rng = random.Random(20261115)
    names = [f"s{number}" for number in range(8)]
    servers = {name: toy() for name in names}
    async with (
        open_gateway(tmp_path, servers) as gateway,
        http_client(gateway.mcp) as old,
        http_client(gateway.mcp, "2026-07-28") as new,
    ):
        await old.until_listed(lambda listed: len(listed) == len(names) * len(BUILT_IN))
        for _ in range(25):
            name = rng.choice(names)
            action = rng.choice(["switch", "switch", "kill", "list"])
            if action == "switch":
                entry = servers[name]
                servers[name] = {**entry, "enabled": not entry.get("enabled", True)}
                await gateway.configure(servers)
            elif action == "kill" and gateway.board.servers[name].is_connected:
                held = next(iter(gateway.board.servers[name]._connections.values()))
                os.kill(held.peer.transport.pid, signal.SIGKILL)  # type: ignore[attr-defined]
            else:
                listed = await rng.choice([old, new]).names()
                assert len(listed) == len(set(listed))
        for server in gateway.board.servers.values():
            server.breaker.retry_at = 0
        present = {name for name in names if servers[name].get("enabled", True)}
        await consistent(gateway, old, present)
        await consistent(gateway, new, present)
