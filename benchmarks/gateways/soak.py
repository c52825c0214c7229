"""Whether Pegboard keeps what it should let go of: many calls, sessions and lost servers, and its memory meanwhile.

    python -m benchmarks.gateways.soak [--calls N] [--sessions N] [--reconnects N] [--bar PERCENT] [--json FILE]

Everything is spread over a hundred steps, and memory is looked at after each. What it grows by after the first tenth,
when caches are full, must stay within the bar; otherwise this ends with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.gateways.client import Client, connected
from benchmarks.gateways.echo import ERAS
from benchmarks.gateways.gateway import Gateway, http_servers, running, stdio_entry
from benchmarks.gateways.load import load
from benchmarks.gateways.peers import peers
from benchmarks.gateways.processes import SERVER, leave_nothing_running, scratch
from benchmarks.gateways.requests import WrongReply

STEPS = 100
_IN_FLIGHT = 16
_SLICE = 0.25
_PATIENCE = 30.0
# Samples that are taken together, so that one garbage collection more or less does not decide.
_TOGETHER = 5


@dataclass
class Soaked:
    """What was done, and the memory after each step."""

    samples: list[int]
    calls: int = 0
    sessions: int = 0
    reconnects: int = 0

    @property
    def growth(self) -> float:
        """What memory grew by after the first tenth, in parts of what it was then."""
        return growth(self.samples)


def growth(samples: Sequence[int]) -> float:
    """The end compared with the end of the first tenth."""
    tenth = max(len(samples) // 10, 1)
    before = statistics.median(samples[max(0, tenth - _TOGETHER) : tenth])
    return statistics.median(samples[-_TOGETHER:]) / before - 1


def main() -> None:
    """Soak, and tell."""
    given = _options().parse_args()
    leave_nothing_running()
    began = time.monotonic()
    soaked = uvloop.run(soak(given.calls, given.sessions, given.reconnects))
    tenth = max(len(soaked.samples) // 10, 1)
    print(
        f"{soaked.calls:,} calls, {soaked.sessions:,} sessions, {soaked.reconnects:,} reconnects "
        f"in {time.monotonic() - began:,.0f} s"
    )
    marks = {"start": 0, "a tenth": tenth - 1, "half": len(soaked.samples) // 2, "end": -1}
    print("memory: " + ", ".join(f"{name} {soaked.samples[at] / 1e6:,.1f} MB" for name, at in marks.items()))
    fine = soaked.growth <= given.bar / 100
    verdict = f"{'within' if fine else 'above'} the bar of {given.bar:g} %"
    print(f"growth after the first tenth: {soaked.growth:+.1%}, {verdict}")
    if given.json:
        written = {"samples": soaked.samples, "growth": soaked.growth, "bar": given.bar / 100}
        given.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    sys.exit(0 if fine else 1)


async def soak(calls: int, sessions: int, reconnects: int) -> Soaked:
    """All steps."""
    peer = peers("pegboard")[0]
    with http_servers(1) as (servers, _), scratch() as folder:
        behind = {**servers, "s1": stdio_entry("s1")}
        async with running(peer, behind, folder, 2, "handshake") as gateway:
            soaked = Soaked([gateway.process.resident])
            for step in range(1, STEPS + 1):
                await _call(gateway, soaked, calls * step // STEPS)
                await _come_and_go(gateway, soaked, sessions * step // STEPS)
                await _lose_server(gateway, soaked, reconnects * step // STEPS)
                soaked.samples.append(gateway.process.resident)
                _tell(step, soaked)
            return soaked


async def _call(gateway: Gateway, soaked: Soaked, until: int) -> None:
    """Calls in both eras, through both servers."""
    turn = 0
    while soaked.calls < until:
        era = ERAS[turn % 2]
        async with connected(gateway.url, era) as client:
            tool = f"s{turn // 2 % 2}__echo"
            loaded = await load(client.way, client.wording.call(tool), _IN_FLIGHT, _SLICE, warm_up=0.01)
            await client.leave()
        soaked.calls += loaded.calls + loaded.warm
        turn += 1


async def _come_and_go(gateway: Gateway, soaked: Soaked, until: int) -> None:
    """Sessions that are opened, used a little, and closed."""
    while soaked.sessions < until:
        async with connected(gateway.url, "handshake") as client:
            await client.tools()
            await client.leave()
        soaked.sessions += 1


async def _lose_server(gateway: Gateway, soaked: Soaked, until: int) -> None:
    """A server's process that dies, and is called until it is back."""
    while soaked.reconnects < until:
        for pid, line in gateway.process.children():
            if SERVER in line:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        async with connected(gateway.url, "handshake") as client:
            await _back(client, "s1__echo")
            await client.leave()
        soaked.reconnects += 1


async def _back(client: Client, tool: str) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            with contextlib.suppress(WrongReply):
                result = await client.request("tools/call", {"name": tool, "arguments": {"text": "back"}})
                if result["content"][0]["text"] == "back":
                    return
            await asyncio.sleep(0.02)


def _tell(step: int, soaked: Soaked) -> None:
    if step % 10 == 0:
        print(f"{step:3} %  {soaked.samples[-1] / 1e6:,.1f} MB", file=sys.stderr, flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--reconnects", type=int, default=100)
    parser.add_argument("--bar", type=float, default=5, help="per cent that memory may grow by")
    parser.add_argument("--json", type=Path, help="where the samples go as well")
    return parser


if __name__ == "__main__":
    main()
