"""`tools/list` with ten servers behind a gateway; all gateways run at once and are asked in turns."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Sequence

from benchmarks.gateways.client import connected
from benchmarks.gateways.gateway import Gateway, http_servers, launched
from benchmarks.gateways.peers import Peer
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import scratch
from benchmarks.gateways.requests import WrongReply
from benchmarks.gateways.results import Results

SERVERS = 10
_ERA = "handshake"
_LIMIT = 60.0
# So many at least, and one for those that need seconds.
_LEAST, _SLOW = 3, 2.0


async def lists(asked: Sequence[Peer], plan: Plan, turn: int, results: Results) -> None:
    """The median time of a complete list, for each size."""
    for each in plan.tools_each:
        with plan.cores.applied():
            await _of_size(asked, each, plan, turn, results)


async def _of_size(asked: Sequence[Peer], each: int, plan: Plan, turn: int, results: Results) -> None:
    total = SERVERS * each
    with contextlib.ExitStack() as stack:
        servers, _ = stack.enter_context(http_servers(SERVERS, each, _ERA))
        gateways: list[Gateway] = []
        for peer in asked:
            if reason := peer.cannot.get("list"):
                results.fail(peer.key, "list", reason)
                continue
            with plan.reported(peer, f"list/{total}", results):
                folder = stack.enter_context(scratch())
                gateways.append(stack.enter_context(launched(peer, servers, folder, plan.cores)))
        for gateway in gateways:
            plan.say(f"round {turn + 1}, lists, {total:,} tools: {gateway.peer.label}")
            with plan.reported(gateway.peer, f"list/{total}", results):
                async with asyncio.timeout(_LIMIT):
                    await _list(gateway, total, plan, turn, results)


async def _list(gateway: Gateway, total: int, plan: Plan, turn: int, results: Results) -> None:
    key = gateway.peer.key
    await gateway.ready(total, _ERA)
    async with connected(gateway.url, _ERA, gateway.peer.sse, gateway.bearer) as client:
        taken: list[float] = []
        ends = time.monotonic() + plan.seconds * 2
        while time.monotonic() < ends or (len(taken) < _LEAST and taken[0] < _SLOW):
            names, seconds = await client.timed_tools()
            if len(set(names)) != total:
                raise WrongReply(f"{len(names)} tools instead of {total}")
            taken.append(seconds)
        results.note(key, f"list/{total}/p50", turn, statistics.median(taken))
    with contextlib.suppress(OSError):
        results.note(key, f"memory/list/{total}", turn, gateway.process.resident)
