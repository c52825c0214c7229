"""Where Pegboard's CPU time goes under load.

    python -m benchmarks.gateways.profile [--seconds S] [--server http|stdio] [--era handshake|modern]

Prints the share of each package and the functions that most time is spent in, alone and with what they call.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.gateways.client import connected
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.echo import ERAS, Era
from benchmarks.gateways.gateway import http_servers, launched, stdio_entry
from benchmarks.gateways.load import Loaded, load
from benchmarks.gateways.peers import PEERS, Peer, Servers
from benchmarks.gateways.processes import ROOT, leave_nothing_running, python, scratch

_SITE_PACKAGES = sysconfig.get_paths()["purelib"]
_STDLIB = sysconfig.get_paths()["stdlib"]
_WARM_UP = 1.0


def main() -> None:
    """Load Pegboard, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--server", choices=("http", "stdio"), default="http")
    parser.add_argument("--era", choices=ERAS, default="handshake")
    parser.add_argument("--top", type=int, default=25)
    given = parser.parse_args()
    leave_nothing_running()
    with scratch() as folder:
        loaded, cpu = uvloop.run(profile(folder, given.server, given.era, given.in_flight, given.seconds))
        counted = json.loads((folder / "samples.json").read_text("utf-8"))
    print(
        f"{given.server} server, {given.era} era, {given.in_flight} in flight: {loaded.rate:,.0f} calls/s, "
        f"{cpu * 1e6:,.0f} µs of CPU time a call, {counted['samples']:,} samples"
    )
    _print(counted, given.top)


async def profile(folder: Path, kind: str, era: Era, in_flight: int, seconds: float) -> tuple[Loaded, float]:
    """The load on a gateway that is looked at, and its CPU time for a call."""
    cores = Cores.divided()
    peer = _sampled(next(peer for peer in PEERS if peer.key == "pegboard"), folder / "samples.json")
    spoken = "both" if era == "modern" else era
    with cores.applied(), http_servers(1, era=spoken) as (servers, _):
        behind: Servers = {**servers, "s1": stdio_entry("s1", era=spoken, cores=cores)}
        with launched(peer, behind, folder, cores) as gateway:
            await gateway.ready(2, era)
            async with connected(gateway.url, era) as client:
                form = client.wording.call("s0__echo" if kind == "http" else "s1__echo")
                await load(client.way, form, in_flight, _WARM_UP)
                os.kill(gateway.process.pid, signal.SIGUSR1)
                await asyncio.sleep(0.1)
                worked = gateway.process.worked
                loaded = await load(client.way, form, in_flight, seconds, warm_up=0.01)
                return loaded, (gateway.process.worked - worked) / (loaded.calls + loaded.warm)


def _sampled(peer: Peer, file: Path) -> Peer:
    """The same peer, looked at."""

    def prepare(servers: Servers, folder: Path, port: int) -> list[str]:
        assert peer.prepare is not None
        _, _, module, *args = peer.prepare(servers, folder, port)
        return python("benchmarks.gateways.sampler", str(file), module, *args)

    return dataclasses.replace(peer, prepare=prepare)


def _print(counted: dict[str, Any], top: int) -> None:
    samples = counted["samples"] or 1
    packages: Counter[str] = Counter()
    for file, _, own, _ in counted["sites"]:
        packages[package_of(file)] += own
    print("\nshare  package")
    for name, own in packages.most_common():
        if own / samples >= 0.005:
            print(f"{own / samples:5.1%}  {name}")
    for title, column in (("alone", 2), ("with what it calls", 3)):
        print(f"\nshare  function, {title}")
        rows = sorted(counted["sites"], key=lambda row: -row[column])
        inner = [row for row in rows if row[column] < samples * 0.98][:top]
        for row in inner:
            print(f"{row[column] / samples:5.1%}  {row[1]} ({short(row[0])})")


def package_of(file: str) -> str:
    """The package a source file belongs to; ours by its parts."""
    if file.startswith("<"):
        return "python"
    package, *inner = (part.removesuffix(".py") for part in Path(short(file)).parts)
    if package == "pegboard" and inner:
        return f"pegboard.{inner[0]}"
    ours_or_theirs = file.startswith((_SITE_PACKAGES, str(ROOT)))
    return package if ours_or_theirs else f"python.{package}"


def short(file: str) -> str:
    """A source file's path within its package."""
    for root in (str(ROOT / "src"), _SITE_PACKAGES, _STDLIB, str(ROOT)):
        if file.startswith(root + os.sep):
            return file[len(root) + 1 :]
    return file


if __name__ == "__main__":
    main()
