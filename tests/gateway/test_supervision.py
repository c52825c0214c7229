"""Servers under difficult circumstances: odd messages, hasty ends, changes at a bad moment."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import IO, Any

import pytest
from mcp.server.lowlevel import Server
from structlog.testing import capture_logs

from forking import warm_start
from harness import LIMIT, alive, eventually, http_client, open_board, open_gateway, stdio_client, toy, write_config
from pegboard.board import Board
from pegboard.clients.request_context import PipeRequest
from pegboard.config import read_settings, run_file
from pegboard.gateway.pipe_client import PipeClient
from pegboard.protocol.eras import Era
from pegboard.result import ToolErrorCode
from pegboard.sdk.pipe_stream import SdkStream
from pegboard.servers.errors import RpcError
from pegboard.servers.server_state import ServerState
from pegboard.storage import CatalogStore, SqliteDatabase, Storage, StorageError
from servers.toy import BUILT_IN, Settings
from servers.toy_http import Manners, http_toy

pytestmark = pytest.mark.anyio
RPC_ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"not today"}}'


async def test_a_question_with_an_odd_id_does_not_cost_the_answer_behind_it(tmp_path: Path) -> None:
    """An id that is an object, and a cancellation with a list for an id, are dropped; the line after them counts."""
    async with open_gateway(tmp_path, {"bad": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        assert await client.text("bad__misbehave", {"how": "odd_question"}) == "late"


async def test_progress_that_does_not_go_on_does_not_keep_a_call_alive(tmp_path: Path) -> None:
    """The same value again and again is no progress: the time limit runs out."""
    entry = toy({"timeout": 0.5}, era="handshake")
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        params = {"steps": 1, "stuck": True}
        result = await client.call("one__progress", params, on_progress=lambda _: None)
        assert "timed out" in result["content"][0]["text"]


async def test_a_command_that_ends_at_once_says_how(tmp_path: Path) -> None:
    """Exit code and last words are in the error, whoever noticed the end first."""
    script = "import sys; sys.exit('no licence found')"
    async with open_board(tmp_path, {"one": {"command": sys.executable, "args": ["-S", "-c", script]}}) as board:
        failed = await board.call("one__x")
        assert failed.error is not None
        assert failed.error.code == "TOOL_UNAVAILABLE"
        assert "exited with code 1" in failed.error.message
        assert "no licence found" in failed.error.message


async def test_no_part_of_a_secret_survives_the_cut_of_last_words(tmp_path: Path) -> None:
    """What a process said is cleaned before it is cut to length."""
    secret = "abcdefghij" * 20
    words = f"key {secret} " + "y" * 400
    entry = toy({"env": {"API_KEY": secret}})
    async with open_board(tmp_path, {"one": entry}) as board:
        failed = await board.call("one__die", {"words": words})
        assert failed.error is not None
        assert "abcdefghij" not in failed.error.message
        assert "yyyy" in failed.error.message


async def test_a_redirect_is_told_without_its_credentials(tmp_path: Path) -> None:
    """An address with a password in it is a secret wherever it comes from."""
    with http_toy(Settings(era="handshake")) as listening:
        async with open_board(tmp_path, {"one": {"type": "http", "url": listening.url}}) as board:
            assert (await board.call("one__echo", {})).success
            listening.manners = Manners(redirect="http://user:s3cretpw@127.0.0.1:1/elsewhere")
            failed = await board.call("one__echo", {})
            assert failed.error is not None
            assert "127.0.0.1:1/elsewhere" in failed.error.message
            assert "s3cretpw" not in failed.error.message


async def test_a_server_without_a_stream_of_notices_is_left_alone(tmp_path: Path) -> None:
    """One that announces changes but refuses the stream is asked for it once, and may idle."""
    with http_toy(Settings(era="modern", no_listen=True)) as listening:
        servers = {"one": {"type": "http", "url": listening.url, "idleTimeout": 1}}
        async with open_board(tmp_path, servers) as board:
            assert (await board.call("one__echo", {})).success
            await eventually(lambda: board.servers["one"].state is ServerState.IDLE)
            assert listening.toy.requests.count("subscriptions/listen") == 1


async def test_notices_missed_while_the_stream_was_away_are_made_up_for(tmp_path: Path) -> None:
    """When the standing stream had to be opened anew, the list is asked for again."""
    with http_toy(Settings(era="handshake")) as listening:
        servers = {"one": {"type": "http", "url": listening.url}}
        async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
            await client.until_listed(lambda names: "one__echo" in names)
            await eventually(lambda: listening.standing)
            listening.end_streams()
            listening.toy.extra_tools.append("unannounced")
            await client.until_listed(lambda names: "one__unannounced" in names)


async def test_a_server_that_changed_its_era_is_found_again(tmp_path: Path) -> None:
    """Known as one of the handshake era, it refuses the handshake now: it is asked, and its new era is kept."""
    with http_toy(Settings(era="handshake")) as listening:
        servers = {"one": {"type": "http", "url": listening.url}}
        async with open_board(tmp_path, servers) as board:
            assert (await board.call("one__echo", {})).success
            assert board.servers["one"].era == "handshake"
        listening.toy.settings.era = "modern"
        listening.toy.settings.refuses_initialize = True
        async with open_board(tmp_path, servers) as board:
            assert board.servers["one"].era == "handshake"
            result = await board.call("one__echo", {})
            assert result.success, result.error
            assert board.servers["one"].era == "modern"


async def test_disabled_servers_leave_the_list_at_once_however_slow_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four processes that have to be killed do not keep each other's tools in the list."""
    monkeypatch.setattr("pegboard.servers.process.GRACE", 600)
    servers = {f"s{number}": toy(ignore_eof=True, ignore_sigterm=True) for number in range(4)}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        pids = [int(pid) for pid in await asyncio.gather(*(client.text(f"{name}__pid") for name in servers))]
        await client.until_listed(lambda names: len(names) == 4 * len(BUILT_IN))
        applying = asyncio.create_task(
            gateway.configure({name: {**e, "enabled": False} for name, e in servers.items()})
        )
        await client.until_listed(lambda names: not names)
        assert all(map(alive, pids))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await applying


class FailingCatalog(CatalogStore):
    """A catalog whose disk is full."""

    async def forget(self, server: str, fingerprint: str) -> None:
        raise StorageError("no space left")


async def test_a_full_disk_does_not_keep_a_removed_server_alive(tmp_path: Path) -> None:
    """Removing goes on when the catalog cannot be written: the process ends, and so does everything else."""
    both = write_config(tmp_path / "pegboard.json", {"one": toy(), "two": toy()})
    storage = Storage(SqliteDatabase(tmp_path / "storage.db"))
    storage.catalog = FailingCatalog(storage.database)
    async with Board(read_settings(both, {}), storage=storage) as board:
        pid = int((await board.call("one__pid", {})).unwrap()["content"][0]["text"])
        none = write_config(tmp_path / "none.json", {"three": toy()})
        await board.apply(read_settings(none, {}))
        assert sorted(board.servers) == ["three"]
        await eventually(lambda: not alive(pid))


async def test_a_call_while_the_board_closes_starts_nothing(tmp_path: Path) -> None:
    """Once closing has begun, no process is started that would outlive it."""
    board = Board(read_settings(write_config(tmp_path / "pegboard.json", {"one": toy(ignore_eof=True)}), {}))
    await board.open()
    await board.call("one__echo", {})
    closing = asyncio.create_task(board.close())
    await eventually(lambda: board.servers["one"]._closed)
    failed = await board.call("one__pid", {})
    assert failed.error is not None
    assert "stopped" in failed.error.message
    await closing


async def test_a_client_cannot_start_a_server_outside_of_its_filter(tmp_path: Path) -> None:
    """A call beyond the address's filter is refused before anything is connected."""
    async with open_gateway(tmp_path, {"a": toy(), "b": toy()}) as gateway:
        async with http_client(f"{gateway.mcp}?server=a") as client:
            with pytest.raises(RpcError, match="Unknown tool"):
                await client.call("b__echo")
            assert gateway.board.servers["b"].state is ServerState.REGISTERED


async def test_a_tool_without_prefix_says_why_it_is_gone(tmp_path: Path) -> None:
    """Disabled or removed, the tools of a server without prefix are unavailable, not unknown."""
    bare = toy({"prefix": False}, tools=["only"])
    async with open_gateway(tmp_path, {"bare": bare}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: "only" in names)
        await gateway.configure({"bare": {**bare, "enabled": False}})
        assert "is disabled" in await client.text("only")
        await gateway.configure({"bare": bare})
        assert await client.text("only") == "toy:only"
        await gateway.configure({})
        assert "was removed" in await client.text("only")


async def test_two_lines_to_a_client_never_end_up_inside_each_other() -> None:
    """An error about one line waits until the answer before it is through."""
    written = bytearray()

    async def slowly(text: bytes) -> None:
        for byte in text + b"\n":
            written.append(byte)
            await asyncio.sleep(0)

    async def enter(write: Any, fast_path: object) -> SdkStream:
        del fast_path
        return SdkStream(Server("nobody"), write, PipeRequest)

    client = PipeClient(slowly, enter)
    await asyncio.gather(client.line(b"oops"), client.too_long(), client.line(b"{"))
    await client.end()
    await client.serve()
    assert [json.loads(line)["error"]["code"] for line in bytes(written).splitlines()] == [-32700, -32600, -32700]


async def test_a_bridge_crosses_only_to_the_gateway_that_left_the_address(tmp_path: Path) -> None:
    """After a gateway was killed, whoever has its port now gets neither the token nor the client."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy(tools=["x"])})
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def listen() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.settimeout(LIMIT)
                heard.append(connection.recv(1000))
                connection.sendall(b"0" * 64 + b" abc\n")
                heard.append(connection.recv(1000))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        file = run_file(config)
        file.parent.mkdir(parents=True)
        file.write_text(
            json.dumps({"pid": 1, "url": "http://127.0.0.1:1", "bridge": stranger.getsockname()[1], "token": "tok"})
        )
        async with stdio_client(config) as client:
            assert await client.text("one__x") == "toy:x"
        thread.join(LIMIT)
    assert b"tok" not in b"".join(heard)
    assert heard[1] == b""


def unread_bytes(pipe: IO[bytes] | None) -> int:
    """How much waits in a pipe for whoever reads it."""
    assert pipe is not None
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_a_client_that_does_not_read_does_not_keep_the_gateway_alive(tmp_path: Path) -> None:
    """SIGTERM ends `pegboard stdio` even while its output is stuck."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    command = [*warm_start(), "stdio", "--config", str(config)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    large = {"name": "one__misbehave", "arguments": {"how": "huge", "size": 3_000_000}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": large},
    ]
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
    await eventually(lambda: unread_bytes(process.stdout) > 32_000)
    process.terminate()
    await eventually(lambda: process.poll() is not None)
    process.stdin.close()
    process.stdout.close()


async def test_a_polled_stream_is_taken_up_as_often_as_it_gets_further(tmp_path: Path) -> None:
    """A server that closes a call's stream five times, each time with a new event id, is heard to the end."""
    with http_toy(Settings(era="handshake"), Manners(polls=5)) as listening:
        async with open_board(tmp_path, {"one": {"type": "http", "url": listening.url}}) as board:
            result = (await board.call("one__echo", {"n": 1})).unwrap()
            assert result["content"][0]["text"] == '{"n": 1}'
            assert listening.resumed == ["0", "1", "2", "3", "4"]


async def test_what_changes_only_with_the_next_start_is_said(tmp_path: Path) -> None:
    """Another storage or name length in a running gateway is a remark in the log, not silence."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        with capture_logs() as logs:
            await gateway.configure({"one": toy()}, maxNameLength=60)
        assert any("next start" in str(entry.get("remark")) for entry in logs)


@pytest.mark.parametrize("path", ["fast", "full"])
async def test_calls_that_hang_open_the_breaker(tmp_path: Path, path: str) -> None:
    """Three in a row that time out: the next one fails at once, instead of costing its caller the whole limit."""
    entry = toy({"timeout": 0.3}, hang_on=["tools/call"])
    async with open_gateway(tmp_path, {"hung": entry}) as gateway, http_client(gateway.mcp) as client:
        await client.names()

        async def message() -> str:
            if path == "fast":
                return (await client.call("hung__echo", {}))["content"][0]["text"]
            result = await gateway.board.call("hung__echo", {})
            assert result.error is not None
            return result.error.message

        for _ in range(3):
            assert "timed out" in await message()
        server = gateway.board.servers["hung"]
        await eventually(lambda: server.state is ServerState.LOST)
        assert server.breaker.remaining() > 20
        assert "next try in" in await message()


@pytest.mark.parametrize("path", ["fast", "full"])
async def test_a_slow_tool_does_not_take_the_server_away(tmp_path: Path, path: str) -> None:
    """However many calls of it time out at once: others were answered while it had its time."""
    entry = toy({"timeout": 1})
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp) as client:
        await client.names()

        async def call(tool: str, **arguments: Any) -> object:
            if path == "fast":
                return await client.call(tool, arguments)
            return await gateway.board.call(tool, arguments)

        slow = [asyncio.create_task(call("one__sleep", seconds=LIMIT)) for _ in range(4)]
        server = gateway.board.servers["one"]
        await eventually(lambda: sum(held.active for held in server._connections.values()) == len(slow))
        assert "timed out" not in str(await call("one__echo"))
        assert all("timed out" in str(each) for each in await asyncio.gather(*slow))
        assert server.state is ServerState.CONNECTED
        assert server.breaker.timeouts == 0


async def test_calls_that_show_progress_or_ask_do_not_open_the_breaker(tmp_path: Path) -> None:
    """The server works on them: that they take too long, or that nobody answers, does not mean that it hangs."""

    async def wait(_: Any) -> Any:
        await asyncio.Event().wait()

    answering: dict[str, Any] = {"capabilities": {"elicitation": {"form": {}}}, "answers": {"elicitation/create": wait}}
    entry = toy({"timeout": 0.3}, era="handshake", features=["tools", "asking"])
    async with (
        open_gateway(tmp_path, {"one": entry}) as gateway,
        http_client(gateway.mcp, **answering) as client,
    ):
        await client.names()
        for tool, params in (("ask_form", {}), ("ask_form", {}), ("progress", {"steps": 1, "stuck": True})):
            listening = {"on_progress": print} if tool == "progress" else {}
            result = await client.call(f"one__{tool}", params, **listening)
            assert "timed out" in result["content"][0]["text"]
            assert gateway.board.servers["one"].breaker.timeouts == 0


@pytest.mark.parametrize("era", [None, "handshake", "modern"])
@pytest.mark.parametrize("body", [b"", RPC_ERROR])
@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_asks_for_a_pause_is_not_connected_before(
    tmp_path: Path, status: int, body: bytes, era: Era | None
) -> None:
    """The error says how long; until then nothing is sent, unless somebody asks for this server explicitly. That holds
    too where the server says so by a JSON-RPC error; and neither says anything about its era."""
    manners = Manners(status=status, body=body, headers={"retry-after": "120"})
    with http_toy(manners=manners) as server:
        async with open_board(tmp_path, {"busy": {"url": server.url}}) as board:
            board.servers["busy"].era = era
            first = await board.call("busy__echo", {})
            assert first.error is not None
            assert board.servers["busy"].era == era
            assert first.error.code == ("RATE_LIMITED" if status == 429 else "TOOL_UNAVAILABLE")
            assert ("not today" in first.error.message) is bool(body)
            assert f"HTTP {status} and asks for a pause of 120 s" in first.error.message
            assert first.error.retry_after == 120
            asked = len(server.headers)
            second = await board.call("busy__echo", {})
            assert second.error is not None
            assert "next try in 1" in second.error.message
            assert 0 < second.error.retry_after <= 120
            assert len(server.headers) == asked
            server.manners.status = None
            board.servers["busy"].breaker.half_open()
            assert (await board.call("busy__echo", {})).success


async def test_a_call_that_is_refused_for_a_pause_says_so_in_python_and_is_relayed_as_it_is(tmp_path: Path) -> None:
    """With a JSON-RPC error in its body too: a program hears how long to wait, an MCP client the server's own error."""
    with http_toy() as server:
        async with open_gateway(tmp_path, {"busy": {"url": server.url}}) as gateway, http_client(gateway.mcp) as client:
            assert (await gateway.board.call("busy__echo", {})).success
            server.manners.status, server.manners.body = 429, RPC_ERROR
            server.manners.headers = {"retry-after": "120"}
            answer = await gateway.board.call("busy__echo", {})
            assert answer.error is not None
            assert (answer.error.code, answer.error.retryable) == (ToolErrorCode.RATE_LIMITED, True)
            assert answer.error.retry_after == 120
            with pytest.raises(RpcError, match=r"^not today$"):
                await client.call("busy__echo", {})


async def test_a_server_that_was_never_seen_is_not_asked_while_its_breaker_is_open(tmp_path: Path) -> None:
    """The call fails at once, and nothing is begun for it."""
    async with open_board(tmp_path, {"gone": toy({"command": "no-such-program"})}) as board:
        for _ in range(3):
            assert not (await board.call("gone__echo")).success
        assert board.servers["gone"].breaker.is_open
        with capture_logs() as logs:
            result = await board.call("gone__echo")
        assert result.error is not None
        assert "next try in" in result.error.message
        assert [entry for entry in logs if str(entry["event"]).startswith("tools.discovery")] == []
