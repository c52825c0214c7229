"""How Pegboard's cost grows: with tools, servers, open sessions and calls in flight, one at a time.

    python -m benchmarks.gateways.growth [--seconds S]

CPU time is the gateway's own, so it holds on a machine that does other things as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import time
from dataclasses import dataclass, replace

import uvloop

from benchmarks.gateways.client import Client, connected
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.gateway import http_servers, launched
from benchmarks.gateways.load import load
from benchmarks.gateways.peers import Peer, peers
from benchmarks.gateways.processes import leave_nothing_running, scratch

_LISTS = 20


@dataclass(frozen=True)
class Setup:
    """A gateway and what it has to do."""

    servers: int = 2
    tools: int = 10
    sessions: int = 1
    in_flight: int = 16


BASE = Setup()
SERIES = {
    "tools a server": ("tools", (10, 100, 1000)),
    "servers": ("servers", (2, 10, 50)),
    "open sessions": ("sessions", (1, 100, 1000)),
    "calls in flight": ("in_flight", (1, 16, 64, 256)),
}


@dataclass(frozen=True)
class Cost:
    """What it took."""

    rate: float
    cpu: float
    listed: float
    memory: int


def main() -> None:
    """Measure every series and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    leave_nothing_running()
    uvloop.run(_measured(chosen.seconds))


async def _measured(seconds: float) -> None:
    [peer] = peers("pegboard")
    print("| what grows | to | CPU a call, µs | calls/s | `tools/list` p50, ms | memory, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for title, (name, values) in SERIES.items():
        for value in values:
            cost = await _cost(peer, replace(BASE, **{name: value}), seconds)
            numbers = f"{cost.cpu * 1e6:.0f} | {cost.rate:,.0f} | {cost.listed * 1e3:.2f} | {cost.memory / 1e6:.0f}"
            print(f"| {title} | {value:,} | {numbers} |", flush=True)


async def _cost(peer: Peer, setup: Setup, seconds: float) -> Cost:
    cores = Cores.divided()
    with contextlib.ExitStack() as started:
        started.enter_context(cores.applied())
        folder = started.enter_context(scratch())
        servers, _ = started.enter_context(http_servers(setup.servers, tools=setup.tools, era="handshake"))
        gateway = started.enter_context(launched(peer, servers, folder, cores))
        await gateway.ready(setup.servers * setup.tools, "handshake")
        async with contextlib.AsyncExitStack() as stack:
            others = [
                await stack.enter_async_context(connected(gateway.url, "handshake")) for _ in range(setup.sessions - 1)
            ]
            client = await stack.enter_async_context(connected(gateway.url, "handshake"))
            form = client.wording.call("s0__echo")
            await load(client.way, form, setup.in_flight, 0.3)
            worked = gateway.process.worked
            loaded = await load(client.way, form, setup.in_flight, seconds)
            cpu = (gateway.process.worked - worked) / (loaded.calls + loaded.warm)
            listed = await _listed([client, *others[:1]])
            return Cost(loaded.rate, cpu, listed, gateway.process.resident)


async def _listed(clients: list[Client]) -> float:
    """How long a list takes, in the middle."""
    times: list[float] = []
    for client in clients:
        # A connection that was not used for a while may be closed by now.
        await client.connect()
    for _ in range(_LISTS):
        for client in clients:
            started = time.perf_counter()
            await client.tools()
            times.append(time.perf_counter() - started)
            await asyncio.sleep(0)
    return statistics.median(times)


if __name__ == "__main__":
    main()
