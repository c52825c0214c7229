"""Two checkouts of Pegboard, in bursts that alternate, so that whatever else the machine does hits both alike.

    python -m benchmarks.gateways.compare BEFORE AFTER [--bursts N] [--seconds S] [--in-flight C]

Each is a folder with a `src`. A burst of one is divided by the burst of the other next to it; the ratio is the median
of those. The CPU time of a call is that of all bursts: it is the steadier number on a machine that others use.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from pathlib import Path

import uvloop

from benchmarks.gateways.client import Client, connected
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.echo import ERAS, Era
from benchmarks.gateways.gateway import echo_of, http_servers, launched, stdio_entry
from benchmarks.gateways.load import load
from benchmarks.gateways.peers import Peer, Servers, pegboard
from benchmarks.gateways.processes import Process, leave_nothing_running, scratch


def checkout(folder: Path, key: str) -> Peer:
    """Pegboard as it is in a folder."""
    source = (folder / "src").resolve()
    if not source.is_dir():
        raise SystemExit(f"{folder} has no src")

    def prepare(servers: Servers, own: Path, port: int) -> list[str]:
        return ["env", f"PYTHONPATH={source}", *pegboard(servers, own, port)]

    return Peer(key, key, prepare, {})


async def measure(sides: list[Peer], era: Era, given: argparse.Namespace) -> None:
    """Print the ratios of an era."""
    cores = Cores.divided()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(cores.applied())
        behind, _ = stack.enter_context(http_servers(1, era="both" if era == "modern" else era))
        servers = {**behind, "s1": stdio_entry("s1", era="both" if era == "modern" else era, cores=cores)}
        ready: list[tuple[Client, list[str], Process]] = []
        for side in sides:
            gateway = stack.enter_context(launched(side, servers, stack.enter_context(scratch()), cores))
            names = await gateway.ready(2, era)
            client = await stack.enter_async_context(connected(gateway.url, era))
            ready.append((client, names, gateway.process))
        for kind, server in {"http": "s0", "stdio": "s1"}.items():
            rates: list[list[float]] = [[], []]
            spent, calls = [0.0, 0.0], [0, 0]
            for turn in range(given.bursts):
                # Nobody is always the first.
                for side in (0, 1) if turn % 2 else (1, 0):
                    client, names, process = ready[side]
                    form, worked = client.wording.call(echo_of(server, names)), process.worked
                    loaded = await load(client.way, form, given.in_flight, given.seconds)
                    rates[side].append(loaded.rate)
                    spent[side] += process.worked - worked
                    calls[side] += loaded.calls + loaded.warm
            ratios = sorted(after / before for before, after in zip(*rates, strict=True))
            middle = statistics.median(ratios)
            numbers = " and ".join(f"{statistics.median(each):,.0f}" for each in rates)
            spread = f"{ratios[len(ratios) // 4]:.3f} to {ratios[len(ratios) * 3 // 4]:.3f}"
            each = [total / count * 1e6 for total, count in zip(spent, calls, strict=True)]
            cpu = f"CPU a call {each[1] / each[0]:.3f} ({each[0]:.1f} and {each[1]:.1f} µs)"
            print(f"{era}, {kind} server: {cpu}; calls/s {middle:.3f} (half {spread}; {numbers})", flush=True)


def main() -> None:
    """Measure both eras."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--bursts", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--in-flight", type=int, default=16)
    given = parser.parse_args()
    leave_nothing_running()
    sides = [checkout(given.before, "before"), checkout(given.after, "after")]
    try:
        for era in ERAS:
            uvloop.run(measure(sides, era, given))
    except KeyboardInterrupt:
        sys.exit(1)


if __name__ == "__main__":
    main()
