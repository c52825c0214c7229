"""`tools/list` with ten servers behind a gateway."""

from __future__ import annotations

import contextlib
import statistics
import time

from benchmarks.gateways.client import connected
from benchmarks.gateways.gateway import http_servers, running
from benchmarks.gateways.peers import Peer
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import scratch
from benchmarks.gateways.requests import WrongReply
from benchmarks.gateways.results import Results

SERVERS = 10
_LEAST = 3


async def lists(peer: Peer, plan: Plan, turn: int, results: Results) -> None:
    """The median time of a complete list, for each size."""
    if reason := peer.cannot.get("list"):
        results.fail(peer.key, "list", reason)
        return
    for each in plan.tools_each:
        total = SERVERS * each
        with plan.cores.applied(), plan.reported(peer, f"list/{total}", results):
            await _list(peer, each, plan, turn, results)


async def _list(peer: Peer, each: int, plan: Plan, turn: int, results: Results) -> None:
    total = SERVERS * each
    with http_servers(SERVERS, each, "handshake") as (servers, _), scratch() as folder:
        async with running(peer, servers, folder, total, "handshake", plan.cores) as gateway:
            async with connected(gateway.url, "handshake", peer.sse) as client:
                taken: list[float] = []
                ends = time.monotonic() + plan.seconds * 2
                while len(taken) < _LEAST or time.monotonic() < ends:
                    names, seconds = await client.timed_tools()
                    if len(set(names)) != total:
                        raise WrongReply(f"{len(names)} tools instead of {total}")
                    taken.append(seconds)
                results.note(peer.key, f"list/{total}/p50", turn, statistics.median(taken))
            with contextlib.suppress(OSError):
                results.note(peer.key, f"memory/list/{total}", turn, gateway.process.resident)
