"""Pegboard beside other gateways, all started afresh in one run: ratios first, then the numbers.

    python -m benchmarks.gateways [--rounds N] [--seconds S] [--only peer,…] [--scenarios …] [--quick] [--markdown]

Peers take turns within each round; a number is the median over the rounds, a ratio the median of the rounds' ratios.
The gateway that is asked has a core to itself, if there are two.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import uvloop

from benchmarks.gateways.calls import calls
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.lists import lists
from benchmarks.gateways.peers import Peer, peers
from benchmarks.gateways.plan import QUICK, Plan
from benchmarks.gateways.processes import leave_nothing_running
from benchmarks.gateways.report import print_markdown, print_tables, ratios_as_json, sections
from benchmarks.gateways.results import Results
from benchmarks.gateways.starts import starts
from benchmarks.gateways.stdio_starts import stdio_starts

Scenario = Callable[[Sequence[Peer], Plan, int, Results], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {"calls": calls, "lists": lists, "starts": starts, "stdio": stdio_starts}
OUTPUT = Path(__file__).parents[1] / "results" / "gateways.json"


def main() -> None:
    """Measure everything, and print it."""
    given = _options().parse_args()
    plan = _plan(given)
    chosen = given.scenarios.split(",") if given.scenarios else list(SCENARIOS)
    if unknown := set(chosen) - set(SCENARIOS):
        raise SystemExit(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    leave_nothing_running()
    results = Results()
    try:
        uvloop.run(run(plan, peers(given.only), chosen, results))
    except KeyboardInterrupt:
        plan.say("stopped; what follows is what there is")
    given.json.parent.mkdir(parents=True, exist_ok=True)
    written = {"setting": setting(plan), "ratios": ratios_as_json(results), **results.as_json()}
    given.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    if given.markdown:
        print_markdown(sections(results), setting(plan))
    else:
        print(setting(plan))
        print_tables(sections(results))


async def run(plan: Plan, asked: list[Peer], chosen: list[str], results: Results) -> None:
    """All rounds of all scenarios."""
    for turn in range(plan.rounds):
        # Nobody is always the one after somebody else.
        order = asked[turn % len(asked) :] + asked[: turn % len(asked)]
        for name in chosen:
            await SCENARIOS[name](order, plan, turn, results)


def setting(plan: Plan) -> str:
    """When and on what it was measured."""
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores ({_cpu()}), Python {platform.python_version()}; "
        f"medians of {plan.rounds} round{'s' if plan.rounds > 1 else ''}, loopback, every reply checked."
    )


def _cpu() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="how long each load is measured")
    parser.add_argument("--only", help="peers, with commas between")
    parser.add_argument("--scenarios", help=f"of {', '.join(SCENARIOS)}, with commas between")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--no-pin", action="store_true", help="leave it to the scheduler which core does what")
    parser.add_argument("--markdown", action="store_true", help="print for documentation")
    parser.add_argument("--json", type=Path, default=OUTPUT, help="where the numbers go as well")
    return parser


def _plan(given: argparse.Namespace) -> Plan:
    plan = QUICK if given.quick else Plan()
    changes = {name: value for name in ("rounds", "seconds") if (value := getattr(given, name)) is not None}
    return dataclasses.replace(plan, **changes, **({"cores": Cores()} if given.no_pin else {}))


if __name__ == "__main__":
    main()
