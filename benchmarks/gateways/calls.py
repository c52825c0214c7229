"""`tools/call` through a gateway: both kinds of server, both eras, small and large answers."""

from __future__ import annotations

import contextlib

from benchmarks.gateways.client import connected
from benchmarks.gateways.echo import ERAS, Era
from benchmarks.gateways.gateway import Gateway, http_servers, running, stdio_entry
from benchmarks.gateways.load import load
from benchmarks.gateways.peers import Peer, Servers
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import scratch
from benchmarks.gateways.results import Results

LARGE = 100_000
KINDS = ("http", "stdio")
# Calls a second; below, the longest measurement is made in the first round only.
SLOW = 100


def measure_name(kind: str, era: str, in_flight: int, size: int, value: str) -> str:
    """What a number is kept under."""
    return f"calls/{kind}/{era}/{'large/' if size else ''}c{in_flight}/{value}"


async def calls(peer: Peer, plan: Plan, turn: int, results: Results) -> None:
    """Every number of one peer in one round."""
    for era in ERAS:
        if reason := peer.cannot.get(era):
            results.fail(peer.key, f"calls/{era}", reason)
            continue
        with plan.cores.applied(), plan.reported(peer, f"calls/{era}", results):
            await _in_era(peer, era, plan, turn, results)


async def _in_era(peer: Peer, era: Era, plan: Plan, turn: int, results: Results) -> None:
    # Servers of today that speak the modern era speak the other one, too.
    spoken = "both" if era == "modern" else era
    placed = plan.cores.give_to_gateway if peer.prepare is None else plan.cores.leave
    with http_servers(2, era=spoken, placed=placed) as (over_http, server):
        if peer.prepare is None:
            gateway = Gateway(str(over_http["s0"]["url"]), server, ["echo"])
            await _of_kind(peer, gateway, "http", era, plan, turn, results)
            return
        stdio = "stdio" not in peer.cannot
        # Two servers, so that everybody has to route; Envoy cannot start one, so it has two over HTTP.
        other = stdio_entry("s1", era=spoken, cores=plan.cores) if stdio else over_http["s1"]
        servers: Servers = {"s0": over_http["s0"], "s1": other}
        with scratch() as folder:
            async with running(peer, servers, folder, 2, era, plan.cores) as gateway:
                await _of_kind(peer, gateway, "http", era, plan, turn, results)
                if stdio:
                    await _of_kind(peer, gateway, "stdio", era, plan, turn, results)
                else:
                    results.fail(peer.key, "calls/stdio", peer.cannot["stdio"])
                with contextlib.suppress(OSError):
                    results.note(peer.key, f"memory/calls/{era}", turn, gateway.process.resident)


async def _of_kind(peer: Peer, gateway: Gateway, kind: str, era: Era, plan: Plan, turn: int, results: Results) -> None:
    tool = gateway.echo_of(f"s{KINDS.index(kind)}")
    with plan.reported(peer, f"calls/{kind}/{era}", results):
        async with connected(gateway.url, era, peer.sse) as client:
            if not client.discovered:
                results.fail(peer.key, "server/discover", client.refusal)
            slow = False
            for in_flight, size in plan.loads:
                if slow and in_flight > 16 and turn > 0:
                    continue
                worked = gateway.process.worked
                loaded = await load(client.way, client.wording.call(tool, size), in_flight, plan.seconds)
                cpu = (gateway.process.worked - worked) / (loaded.calls + loaded.warm)
                slow = slow or (in_flight == 16 and loaded.rate < SLOW)
                values = {"rate": loaded.rate, "p50": loaded.p50, "p99": loaded.p99, "cpu": cpu}
                for value, number in values.items():
                    results.note(peer.key, measure_name(kind, era, in_flight, size, value), turn, number)
