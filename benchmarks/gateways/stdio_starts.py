"""How soon `pegboard stdio` answers: as a bridge beside a running gateway, and alone; and a bare server of the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gateways.echo import VERSIONS
from benchmarks.gateways.gateway import running
from benchmarks.gateways.peers import Peer
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import NotStarted, end, environment, python, scratch
from benchmarks.gateways.requests import CLIENT, WrongReply
from benchmarks.gateways.results import Results
from benchmarks.gateways.starts import SERVERS, TOOLS, ten_servers

_LIMIT = 30.0


async def stdio_starts(asked: Sequence[Peer], plan: Plan, turn: int, results: Results) -> None:
    """Some starts of each, taking turns; the other peers have no part in it."""
    for peer in asked:
        if peer.key == "pegboard":
            plan.say(f"round {turn + 1}, starts over stdio")
            await _stdio_starts(peer, plan, turn, results)


async def _stdio_starts(peer: Peer, plan: Plan, turn: int, results: Results) -> None:
    total = SERVERS * TOOLS
    with scratch() as beside, scratch() as alone, plan.reported(peer, "stdio", results):
        # Leaves its catalog behind.
        async with running(peer, ten_servers(), alone, total, "handshake"):
            pass
        async with running(peer, ten_servers(), beside, total, "handshake"):
            starters = {
                "bare": (python("benchmarks.gateways.bare_stdio"), beside, 1),
                "bridge": (_pegboard_stdio(beside), beside, total),
                "alone": (_pegboard_stdio(alone), alone, total),
            }
            for number in range(-(-plan.starts // plan.rounds)):
                for key, (command, folder, tools) in starters.items():
                    greeted, listed = await asyncio.to_thread(start, command, folder, tools)
                    at = turn * plan.starts + number
                    results.note(key, "stdio/initialize", at, greeted)
                    results.note(key, "stdio/list", at, listed)


def _pegboard_stdio(folder: Path) -> list[str]:
    return python("pegboard", "stdio", "--config", str(folder / "config.json"))


def start(command: Sequence[str], folder: Path, tools: int) -> tuple[float, float]:
    """Seconds from the start of a process to its answer to `initialize`, and to the first list."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
    )
    watch = threading.Timer(_LIMIT, process.kill)
    watch.start()
    try:
        hello = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}, "clientInfo": CLIENT}
        _say(process, "initialize", hello, 1)
        _answer(process, 1)
        greeted = time.perf_counter() - began
        _say(process, "notifications/initialized", {}, None)
        _say(process, "tools/list", {}, 2)
        answer = _answer(process, 2)
        listed = time.perf_counter() - began
        found = len(answer["result"]["tools"])
        if found != tools:
            raise WrongReply(f"{found} tools in the first list instead of {tools}")
        return greeted, listed
    finally:
        watch.cancel()
        _end(process)


def _say(process: subprocess.Popen[bytes], method: str, params: dict[str, Any], number: int | None) -> None:
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", **({} if number is None else {"id": number}), "method": method, "params": params}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message
    raise NotStarted("ended, or was too slow, before it answered")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its input, which is how a client ends a server, and wait."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    end(process)
    process.stdout.close()
