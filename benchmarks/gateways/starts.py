"""From the start of a gateway's process to its first complete list, with ten servers to start over stdio."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.gateways.gateway import ready, stdio_entry
from benchmarks.gateways.peers import Peer, Servers
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import free_port, scratch, started
from benchmarks.gateways.results import Results

SERVERS, TOOLS = 10, 10
# How often it is asked; it is also the most that a number can be too large by.
_PAUSE = 0.005


def ten_servers() -> Servers:
    """Config entries for all of them."""
    return {name: stdio_entry(name, TOOLS) for name in (f"s{number}" for number in range(SERVERS))}


async def starts(peer: Peer, plan: Plan, turn: int, results: Results) -> None:
    """A cold start; for Pegboard another, with the catalog that the first has left on disk."""
    if reason := peer.cannot.get("start"):
        results.fail(peer.key, "start", reason)
        return
    with scratch() as folder, plan.reported(peer, "start", results):
        results.note(peer.key, "start/cold", turn, await start(peer, folder))
        if peer.key == "pegboard":
            results.note(peer.key, "start/catalog", turn, await start(peer, folder))


async def start(peer: Peer, folder: Path) -> float:
    """Seconds until every tool was listed."""
    assert peer.prepare is not None
    port = free_port()
    command = peer.prepare(ten_servers(), folder, port)
    began = time.perf_counter()
    with started(command, folder) as process:
        await ready(peer, port, process, SERVERS * TOOLS, "handshake", _PAUSE)
        return time.perf_counter() - began
