"""What a server's state means: what stays listed, what is tried again when, and what is said of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from harness import LIMIT, Entry, eventually, http_client, open_board, open_gateway, toy, write_config
from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.config import read_settings
from pegboard.gateway.rest.rows import server_row
from pegboard.servers import connection
from pegboard.servers.server_state import ServerState
from pegboard.storage import SqliteDatabase, Storage
from servers.toy import Settings
from servers.toy_http import Manners, http_toy

pytestmark = pytest.mark.anyio


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def at(port: int) -> Entry:
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}


@asynccontextmanager
async def lost_by_calls(tmp_path: Path, port: int) -> AsyncGenerator[Board]:
    """A board whose one server was seen, is gone, and has failed three calls in a row."""
    with http_toy(Settings(tools=["x"]), port=port):
        async with open_board(tmp_path, {"one": at(port)}) as board:
            assert (await board.refresh()).success
    async with open_board(tmp_path, {"one": at(port)}) as board:
        for _ in range(3):
            assert not (await board.call("one__x")).success
        assert board.servers["one"].state is ServerState.LOST
        yield board


@pytest.mark.scenario("registry: AC5 a failed discovery keeps the tools and is a failed result")
async def test_failed_discoveries_never_remove_cached_tools(tmp_path: Path) -> None:
    """Seen, gone, and asked again and again, with its time to live over: its tools stay in the list, and no notice."""
    with http_toy(Settings(tools=["x"])) as listening:
        entry = {**at(listening.port), "ttl": 0.01}
        async with open_board(tmp_path, {"one": entry}) as board:
            assert (await board.refresh()).success
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp) as client:
        assert "one__x" in await client.names()
        for _ in range(4):
            assert not (await gateway.board.refresh(["one"])).success
            assert not (await gateway.board.discovery.discover("one")).success
        assert "one__x" in await client.names()
        assert client.changes() == 0
        row = server_row(gateway.board, gateway.board.servers["one"])
        assert (row["state"], row["tools"] > 0, row["staleSince"] is not None) == ("unreachable", True, True)
        assert "cannot be reached" in row["lastError"]


async def test_a_refresh_is_tried_while_the_breaker_is_open_and_its_success_closes_it(tmp_path: Path) -> None:
    """Calls fail at once; an explicit refresh finds the repaired server, and calls go through again."""
    port = free_port()
    async with lost_by_calls(tmp_path, port) as board:
        with http_toy(Settings(tools=["x"]), port=port) as listening:
            failed = await board.call("one__x")
            assert failed.error is not None
            assert "next try in" in failed.error.message
            assert listening.toy.requests == []
            assert (await board.refresh(["one"])).success
            assert board.servers["one"].breaker.failures == 0
            assert (await board.call("one__x")).success
            assert board.servers["one"].state is ServerState.CONNECTED


async def test_a_failed_refresh_opens_the_breaker_again_but_not_for_longer(tmp_path: Path) -> None:
    """However often somebody asks, it is tried; calls go on to fail at once, and the next try is no later for it."""
    port = free_port()
    async with lost_by_calls(tmp_path, port) as board:
        breaker = board.servers["one"].breaker
        with http_toy(Settings(tools=["x"]), Manners(status=500), port=port) as listening:
            for _ in range(3):
                before, tries = breaker.retry_at, len(listening.headers)
                assert not (await board.refresh(["one"])).success
                assert len(listening.headers) > tries
                assert breaker.retry_at != before
                tries = len(listening.headers)
                failed = await board.call("one__x")
                assert failed.error is not None
                assert "next try in" in failed.error.message
                assert len(listening.headers) == tries
        assert breaker.failures == 3
        assert 25 < breaker.remaining() <= 36


async def test_a_half_open_breaker_lets_one_of_many_sessions_try(tmp_path: Path) -> None:
    """Each session has a connection of its own; while one of them tries, the others fail at once."""
    greetings: list[asyncio.StreamWriter] = []
    greeted = asyncio.Event()

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greetings.append(writer)
        greeted.set()

    port = free_port()
    async with open_board(tmp_path, {"one": {**at(port), "instance": "session"}}) as board:
        board.registry.register_mcp_tools("one", [{"name": "x", "inputSchema": {"type": "object"}}])
        for number in range(3):
            assert not (await board.call("one__x", {}, Caller(Client(session=f"s{number}")))).success
        assert board.servers["one"].breaker.is_open
        listener = await asyncio.start_server(greet, "127.0.0.1", port)
        board.servers["one"].breaker.half_open()
        trial = asyncio.ensure_future(board.call("one__x", {}, Caller(Client(session="s0"))))
        async with asyncio.timeout(LIMIT):
            await greeted.wait()
        for number in range(1, 5):
            failed = await board.call("one__x", {}, Caller(Client(session=f"s{number}")))
            assert failed.error is not None
            assert "it is being tried" in failed.error.message
        assert len(greetings) == 1
        assert not trial.done()
        listener.close()
        greetings[0].close()
        assert not (await trial).success
        assert board.servers["one"].breaker.is_open


async def test_a_loss_after_a_refresh_is_mended_at_its_own_time(tmp_path: Path) -> None:
    """Whoever waits for the next try of an earlier loss does not sleep through a new one."""
    async with open_board(tmp_path, {"one": toy(tools=["x"])}) as board:
        server = board.servers["one"]

        async def kill() -> None:
            pid = int((await board.call("one__pid")).unwrap()["content"][0]["text"])
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda: server.state is ServerState.LOST)

        await board.call("one__x")
        server.breaker.flaps = 10
        await kill()
        assert server.breaker.remaining() > 20
        assert (await board.refresh(["one"])).success
        server.breaker.flaps = 0
        await kill()
        await eventually(lambda: server.state is ServerState.CONNECTED)


async def test_a_server_never_seen_is_unreachable_and_tried_again_by_itself(tmp_path: Path) -> None:
    """It is not lost, says why and when it is tried next, and is discovered without anybody listing."""
    port = free_port()
    async with open_board(tmp_path, {"one": at(port)}) as board:
        await board.list_tools()
        await eventually(lambda: board.servers["one"].state is ServerState.UNREACHABLE)
        await eventually(lambda: server_row(board, board.servers["one"])["nextTryInSeconds"] is not None)
        with http_toy(Settings(tools=["x"]), port=port):
            await eventually(lambda: board.registry.get("one__x") is not None)
        assert server_row(board, board.servers["one"])["nextTryInSeconds"] is None


async def test_the_last_error_is_there_without_a_gateway_until_it_is_over(tmp_path: Path) -> None:
    """What went wrong in one run is said in the next, which tries nothing; a success ends it."""
    port = free_port()
    async with open_board(tmp_path, {"one": at(port)}) as board:
        assert not (await board.refresh()).success
    async with open_board(tmp_path, {"one": at(port)}) as board:
        row = server_row(board, board.servers["one"])
        assert (row["state"], row["seen"]) == ("unreachable", False)
        assert "cannot be reached" in row["lastError"]
        with http_toy(Settings(), port=port):
            assert (await board.refresh()).success
    async with open_board(tmp_path, {"one": at(port)}) as board:
        row = server_row(board, board.servers["one"])
        assert (row["state"], row["lastError"]) == ("registered", None)
        assert row["lastSeen"] is not None


async def test_latency_is_of_a_request(tmp_path: Path) -> None:
    """How long a process takes to start is not how long it takes to answer."""
    async with open_board(tmp_path, {"one": toy(start_delay=1.0)}) as board:
        assert (await board.refresh()).success
        assert board.servers["one"].latency is not None
        assert board.servers["one"].latency < 1.0


async def test_a_server_added_to_the_file_is_told_of_without_anybody_listing(tmp_path: Path) -> None:
    """It is contacted when the file is taken over, and clients hear of it once it is discovered."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: "one__echo" in names)
        before = client.changes()
        write_config(gateway.config, {"one": toy(), "two": toy(tools=["x"])})
        await eventually(lambda: gateway.board.registry.get("two__x"))
        await client.until_changes(before + 1)
        assert "two__x" in await client.names()


async def test_a_config_file_that_is_missing_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    """Processes, tools and the catalog stay; that the file is missing is logged; what comes after it is taken over."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        pid = await client.text("one__pid")
        text = gateway.config.read_text()
        with capture_logs() as logs:
            gateway.config.unlink()
            await eventually(lambda: any(entry["event"] == "config.reload.refused" for entry in logs))
        assert not await gateway.front.config.reload()
        assert await client.text("one__pid") == pid
        assert [record.server for record in await gateway.board.storage.catalog.load()] == ["one"]
        gateway.config.write_text(text)
        assert await gateway.front.config.reload()
        assert await client.text("one__pid") == pid
        write_config(gateway.config, {"one": toy(), "two": toy()})
        await client.until_listed(lambda names: "two__echo" in names)


async def test_taking_servers_over_reads_only_their_own_records(tmp_path: Path) -> None:
    """A config edit that brings known servers back never loads the whole catalog."""
    servers = {f"s{number}": toy(tools=["x"]) for number in range(3)}
    both = read_settings(write_config(tmp_path / "all.json", servers), {})
    none = read_settings(write_config(tmp_path / "none.json", {}), {})
    async with Board(both, storage=Storage(SqliteDatabase(tmp_path / "storage.db"))) as board:
        assert (await board.refresh()).success
    storage = Storage(SqliteDatabase(tmp_path / "storage.db"))
    async with Board(none, storage=storage) as board:
        loads = 0
        load = storage.catalog.load

        async def counted() -> list[object]:
            nonlocal loads
            loads += 1
            return list(await load())

        storage.catalog.load = counted  # type: ignore[method-assign,assignment]
        await board.apply(both)
        assert sorted(board.registry.servers()) == sorted(servers)
        assert loads == 0
        assert not any(server.is_connected for server in board.servers.values())


@pytest.mark.scenario("registry: Observability: the named events with their fields and the trace id")
async def test_discovery_on_first_need_and_removal_by_the_file_carry_a_trace_id(tmp_path: Path) -> None:
    """A first call logs that discovery started, and a server disabled in the file its removal, each with an id."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        with capture_logs() as logs:
            assert (await gateway.board.call("one__echo")).success
            await gateway.configure({"one": {**toy(), "enabled": False}})
        started = [entry for entry in logs if entry["event"] == "tools.discovery.started"]
        found = [entry for entry in logs if entry["event"] == "tools.discovery.server.success"]
        removed = [entry for entry in logs if entry["event"] == "tools.registry.server.removed"]
        assert [entry["serverCount"] for entry in started] == [1]
        assert started[0]["traceId"] == found[0]["traceId"]
        assert [bool(entry.get("traceId")) for entry in removed] == [True]


@pytest.mark.scenario("gateway: Tools removed after backend disconnects")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_http_server_without_a_stream_that_dies_is_noticed(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody calls and no stream breaks: it is asked now and then, and its tools leave the list with a notice."""
    monkeypatch.setattr(connection, "HEARTBEAT", 0.1)
    with http_toy(Settings(tools=["x"], era=era, no_listen=True), Manners(get_stream=False)) as listening:
        gateway_open = open_gateway(tmp_path, {"one": at(listening.port)})
        gateway = await gateway_open.__aenter__()
        client_open = http_client(gateway.mcp)
        client = await client_open.__aenter__()
        await client.until_listed(lambda names: "one__x" in names)
    await eventually(lambda: gateway.board.servers["one"].state is ServerState.LOST)
    await client.until_listed(lambda names: "one__x" not in names)
    await client_open.__aexit__(None, None, None)
    await gateway_open.__aexit__(None, None, None)
