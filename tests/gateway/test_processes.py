"""Processes: nothing is left behind, whatever happens to Pegboard or its clients."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from forking import COLD_START, warm_start
from harness import LIMIT, TOY, alive, eventually, http_client, open_board, serving, stdio_client, toy, write_config
from pegboard.servers.orphan_reaper import MARKER, find_marked_processes

pytestmark = pytest.mark.anyio


def toys_of(parent_marker: str) -> list[int]:
    """Every process that carries a text in its command line or environment."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if parent_marker.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid) and pid != os.getpid()]


def stubborn(tmp_path: Path, mark: str) -> Path:
    """A config whose server ignores everything, and has children inside and outside of its group."""
    entry = toy({"env": {"TOY_MARK": mark}}, ignore_eof=True, ignore_sigterm=True, grandchild=True)
    plain = toy({"env": {"TOY_MARK": mark}})
    return write_config(tmp_path / "pegboard.json", {"stubborn": entry, "plain": plain})


async def start_both(url: str) -> None:
    async with http_client(url) as client:
        await client.call("stubborn__echo", {})
        await client.call("plain__echo", {})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_every_child_and_grandchild(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM and SIGINT end Pegboard cleanly, with exit code 0 and no process left."""
    mark = f"mark-{tmp_path.name}-{number}"
    with serving(stubborn(tmp_path, mark), command=COLD_START) as (process, url):
        await start_both(url)
        assert len(toys_of(mark)) == 4
        process.send_signal(number)
        await eventually(lambda: process.poll() is not None, 20)
        assert process.returncode == 0
        assert toys_of(mark) == []


async def test_even_a_killed_gateway_leaves_nothing_behind(tmp_path: Path) -> None:
    """SIGKILL cannot be caught; the keeper ends what was left."""
    mark = f"mark-{tmp_path.name}"
    with serving(stubborn(tmp_path, mark), command=COLD_START) as (process, url):
        await start_both(url)
        assert len(toys_of(mark)) == 4
        process.kill()
        await eventually(lambda: not toys_of(mark), 20)


def test_a_background_job_is_not_ended_by_ctrl_c(tmp_path: Path) -> None:
    """A shell starts it with SIGINT ignored, and so it stays; SIGTERM ends it."""
    config = write_config(tmp_path / "pegboard.json", {})
    ignoring = ("sh", "-c", 'trap \'\' INT; exec "$0" "$@"', *COLD_START)
    with serving(config, command=ignoring) as (process, url):
        ignored = re.search(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        assert ignored is not None
        assert int(ignored[1], 16) >> (signal.SIGINT - 1) & 1
        process.send_signal(signal.SIGINT)
        with urllib.request.urlopen(f"{url.removesuffix('/mcp')}/health") as answer:
            assert answer.status == 200
        process.terminate()
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_stdio_gateway_in_the_background_ends_with_its_client_alone(tmp_path: Path, number: signal.Signals) -> None:
    """What is ignored when it starts stays ignored; it ends when its input does."""
    config = write_config(tmp_path / "pegboard.json", {})
    ignoring = ["sh", "-c", 'trap \'\' INT HUP; exec "$0" "$@"']
    command = [*ignoring, *COLD_START, "stdio", "--config", str(config)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        process.stdin.write(json.dumps(message).encode() + b"\n" + ping % 1)
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [0, 1]
        process.send_signal(number)
        for at in range(2, 22):
            process.stdin.write(ping % at)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == at
        process.stdin.close()
        assert process.wait(LIMIT) == 0


async def test_a_client_that_goes_away_ends_its_stdio_gateway(tmp_path: Path) -> None:
    """A stdio client that crashes closes our input: we end, and our servers with us."""
    mark = f"mark-{tmp_path.name}"
    config = stubborn(tmp_path, mark)
    process = await asyncio.create_subprocess_exec(
        *COLD_START, "stdio", "--config", str(config),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "stubborn__echo", "arguments": {}}},
    ]
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    answers = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert {answer.get("id") for answer in answers} <= {1, 2, None}
    await eventually(lambda: len(toys_of(mark)) == 3)
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    assert toys_of(mark) == []


@pytest.mark.parametrize("idle", [0, 600])
async def test_a_stopped_server_is_ended_politely_first(tmp_path: Path, idle: int) -> None:
    """Closing its input is enough for a well-behaved server; it is not killed. With 0 it never idles."""
    async with open_board(tmp_path, {"one": toy({"idleTimeout": idle})}) as board:
        await board.call("one__echo", {})
        held = next(iter(board.servers["one"]._connections.values()))
        process = held.peer.transport._process  # type: ignore[attr-defined]
        assert (held.idle_timer is None) is (idle == 0)
    assert process._exited.result() == 0
    assert held.idle_timer is None or held.idle_timer.cancelled()


async def test_a_server_gets_what_it_needs_and_no_one_elses_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH, HOME and the entry's own variables are there; other keys of our environment are not."""
    monkeypatch.setenv("SOMEBODYS_API_KEY", "not-for-you")
    monkeypatch.setenv("NODE_AUTH_TOKEN", "not-for-you")
    monkeypatch.setenv("NPM_CONFIG_CACHE", "/cache")
    async with open_board(tmp_path, {"one": toy({"env": {"OWN": "mine"}})}) as board:
        result = (await board.call("one__environment", {})).unwrap()
        seen = json.loads(result["content"][0]["text"])
        assert {"PATH", "HOME", "OWN", "NPM_CONFIG_CACHE", MARKER} <= set(seen)
        assert seen["OWN"] == "mine"
        assert not {"SOMEBODYS_API_KEY", "NODE_AUTH_TOKEN"} & set(seen)
        assert len(find_marked_processes([seen[MARKER]])) == 1


@pytest.mark.scenario("secrets: Pegboard's own secrets reach no server")
async def test_no_server_inherits_what_is_pegboards_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key that seals, nor the address of the storage, a key of another server, or what `.env` beside the
    config says; a server with an `envFile` has that, and nobody else does."""
    names = ["PEGBOARD_SECRET_KEY", "PEGBOARD_SECRET_KEY_FILE", "PEGBOARD_INPUT_ID", "DATABASE_URL", "TWO_API_KEY"]
    for name in (*names, "PGPASSWORD", "PYTHON_KEYRING_BACKEND"):
        monkeypatch.setenv(name, "not-for-you")
    (tmp_path / ".env").write_text("IN_DOTENV=not-for-you\n")
    (tmp_path / "two.env").write_text("OWN=from-a-file\n")
    async with open_board(tmp_path, {"one": toy(), "two": toy({"envFile": "two.env"})}) as board:
        seen = [
            (await board.call(f"{name}__environment", {})).unwrap()["content"][0]["text"] for name in ("one", "two")
        ]
    assert not any("not-for-you" in each for each in seen)
    assert [json.loads(each).get("OWN") for each in seen] == [None, "from-a-file"]


async def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    """`cwd` is where the command runs; a folder that is not there is a clear error."""
    (tmp_path / "here").mkdir()
    note = "import os, runpy, sys; os.environ['HERE'] = os.getcwd(); del sys.argv[0]"
    script = f"{note}; runpy.run_path(sys.argv[0], {{}}, '__main__')"
    entry = {"command": sys.executable, "args": ["-c", script, str(TOY)], "cwd": str(tmp_path / "here")}
    async with open_board(tmp_path, {"one": entry, "lost": {**entry, "cwd": str(tmp_path / "gone")}}) as board:
        seen = json.loads((await board.call("one__environment", {})).unwrap()["content"][0]["text"])
        assert seen["HERE"] == str(tmp_path / "here")
        failed = await board.call("lost__echo", {})
        assert failed.error is not None
        assert "does not exist" in failed.error.message


async def test_five_stdio_clients_of_a_running_gateway_share_its_servers(tmp_path: Path) -> None:
    """`pegboard stdio` beside a running `pegboard serve` is a bridge: one process of each server for all of them."""
    mark = f"mark-{tmp_path.name}"
    config = write_config(tmp_path / "pegboard.json", {"one": toy({"env": {"TOY_MARK": mark}}, tools=["x"])})
    with serving(config) as (_, url):
        async with http_client(url) as direct:
            pids = {await direct.text("one__pid")}
            for version in ("2025-11-25", "2026-07-28", "2024-11-05"):
                async with stdio_client(config, version) as client:
                    assert "one__x" in await client.names()
                    pids.add(await client.text("one__pid"))
                    before = client.changes()
                    await direct.call("one__change", {"add": [f"fresh_{version[:4]}"]})
                    await client.until_changes(before + 1)
            assert len(pids) == 1
            assert len(toys_of(mark)) == 1


@pytest.mark.scenario("registry: AC1 enabled servers are registered at start and not connected")
async def test_starting_takes_no_connection_and_a_second_gateway_says_so(tmp_path: Path) -> None:
    """At start servers are registered, not connected; a port that is taken is a clear message and exit 1."""
    log = tmp_path / "requests"
    config = write_config(tmp_path / "pegboard.json", {"one": toy(log=str(log))})
    with serving(config) as (_, url):
        port = url.rsplit(":", 1)[1].removesuffix("/mcp")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert answer.status == 200
        assert not log.exists()
        command = [*warm_start(), "serve", "--config", str(config), "--port", port]
        second = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=30, check=False
        )
        assert second.returncode == 1
        assert f"cannot listen on 127.0.0.1:{port}" in second.stderr
        assert not log.exists()
