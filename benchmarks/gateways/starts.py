"""From the start of a gateway's process to its first complete list, with ten servers to start over stdio."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gateways.gateway import launched, stdio_entry
from benchmarks.gateways.peers import Peer, Servers
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import scratch
from benchmarks.gateways.results import Results

SERVERS, TOOLS = 10, 10
# How often it is asked; it is also the most that a number can be too large by.
_PAUSE = 0.005


def ten_servers() -> Servers:
    """Config entries for all of them."""
    return {name: stdio_entry(name, TOOLS) for name in (f"s{number}" for number in range(SERVERS))}


async def starts(asked: Sequence[Peer], plan: Plan, turn: int, results: Results) -> None:
    """A cold start of each; for Pegboard another, with the catalog that the first has left on disk."""
    for peer in asked:
        if reason := peer.cannot.get("start"):
            results.fail(peer.key, "start", reason)
            continue
        plan.say(f"round {turn + 1}, starts: {peer.label}")
        with scratch() as folder, plan.reported(peer, "start", results):
            results.note(peer.key, "start/cold", turn, await start(peer, folder))
            if peer.key == "pegboard":
                results.note(peer.key, "start/catalog", turn, await start(peer, folder))


async def start(peer: Peer, folder: Path) -> float:
    """Seconds until every tool was listed."""
    servers = ten_servers()
    began = time.perf_counter()
    with launched(peer, servers, folder) as gateway:
        await gateway.ready(SERVERS * TOOLS, "handshake", _PAUSE)
        return time.perf_counter() - began
