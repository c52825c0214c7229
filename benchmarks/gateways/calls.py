"""`tools/call` through gateways: both kinds of server, both eras, small and large answers.

All gateways run at once and are asked in turns, so that a moment in which the machine is busy with something else hits
all of them: a gateway that nobody asks does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.gateways.client import Client, connected
from benchmarks.gateways.echo import ERAS, Era
from benchmarks.gateways.gateway import Gateway, echo_of, http_servers, launched, stdio_entry
from benchmarks.gateways.load import load
from benchmarks.gateways.peers import Peer, Servers
from benchmarks.gateways.plan import Plan
from benchmarks.gateways.processes import scratch
from benchmarks.gateways.results import Results

LARGE = 100_000
KINDS = ("http", "stdio")
# Calls a second; below, the longest measurement is made in the first round only.
SLOW = 100
_LIMIT = 60.0
_Stack = contextlib.AsyncExitStack


def measure_name(kind: str, era: str, in_flight: int, size: int, value: str) -> str:
    """What a number is kept under."""
    return f"calls/{kind}/{era}/{'large/' if size else ''}c{in_flight}/{value}"


@dataclass
class Subject:
    """A gateway with a client, ready to be asked."""

    gateway: Gateway
    client: Client
    # The name of the echo tool of each kind of server.
    tools: dict[str, str]
    slow: set[str] = field(default_factory=set[str])

    @property
    def peer(self) -> Peer:
        """Whose it is."""
        return self.gateway.peer


async def calls(asked: Sequence[Peer], plan: Plan, turn: int, results: Results) -> None:
    """Every number of a round."""
    for era in ERAS:
        with plan.cores.applied():
            await _in_era(asked, era, plan, turn, results)


async def _in_era(asked: Sequence[Peer], era: Era, plan: Plan, turn: int, results: Results) -> None:
    # Servers of today that speak the modern era speak the other one, too.
    spoken = "both" if era == "modern" else era
    async with contextlib.AsyncExitStack() as stack:
        servers, _ = stack.enter_context(http_servers(2, era=spoken))
        gateways: list[Gateway] = []
        for peer in asked:
            if reason := peer.cannot.get(era):
                results.fail(peer.key, f"calls/{era}", reason)
                continue
            with plan.reported(peer, f"calls/{era}", results):
                gateways.append(_gateway(peer, servers, spoken, plan, stack))
        subjects: list[Subject] = []
        for gateway in gateways:
            with plan.reported(gateway.peer, f"calls/{era}", results):
                subjects.append(await _subject(gateway, era, stack, results))
        plan.say(f"round {turn + 1}, calls, {era} era: {len(subjects)} are ready")
        await _measure(subjects, era, plan, turn, results)


def _gateway(peer: Peer, servers: Servers, spoken: str, plan: Plan, stack: _Stack) -> Gateway:
    if peer.prepare is None:
        alone, process = stack.enter_context(http_servers(1, era=spoken, placed=plan.cores.give_to_gateway))
        return Gateway(peer, str(alone["s0"]["url"]), process)
    # Two servers, so that everybody has to route; one that cannot start any has both over HTTP.
    other = servers["s1"] if "stdio" in peer.cannot else stdio_entry("s1", era=spoken, cores=plan.cores)
    folder = stack.enter_context(scratch())
    return stack.enter_context(launched(peer, {"s0": servers["s0"], "s1": other}, folder, plan.cores))


async def _subject(gateway: Gateway, era: Era, stack: _Stack, results: Results) -> Subject:
    peer = gateway.peer
    names = await gateway.ready(1 if peer.prepare is None else 2, era)
    client = await stack.enter_async_context(connected(gateway.url, era, peer.sse, gateway.bearer))
    if client.refusal:
        results.fail(peer.key, "server/discover", client.refusal)
    tools = {"http": echo_of("s0", names)}
    if reason := peer.cannot.get("stdio"):
        results.fail(peer.key, "calls/stdio", reason)
    else:
        tools["stdio"] = echo_of("s1", names)
    return Subject(gateway, client, tools)


async def _measure(subjects: Sequence[Subject], era: Era, plan: Plan, turn: int, results: Results) -> None:
    for kind in KINDS:
        for in_flight, size in plan.loads:
            for subject in subjects:
                skipped = turn > 0 and in_flight > 16 and kind in subject.slow
                if kind not in subject.tools or skipped:
                    continue
                with plan.reported(subject.peer, f"calls/{kind}/{era}", results):
                    async with asyncio.timeout(_LIMIT):
                        await _load(subject, kind, in_flight, size, plan, turn, results)
    for subject in subjects:
        with contextlib.suppress(OSError):
            results.note(subject.peer.key, f"memory/calls/{era}", turn, subject.gateway.process.resident)


async def _load(
    subject: Subject, kind: str, in_flight: int, size: int, plan: Plan, turn: int, results: Results
) -> None:
    client, process = subject.client, subject.gateway.process
    worked = process.worked
    loaded = await load(client.way, client.wording.call(subject.tools[kind], size), in_flight, plan.seconds)
    cpu = (process.worked - worked) / (loaded.calls + loaded.warm)
    if loaded.rate < SLOW:
        subject.slow.add(kind)
    for value, number in {"rate": loaded.rate, "p50": loaded.p50, "p99": loaded.p99, "cpu": cpu}.items():
        name = measure_name(kind, client.wording.era, in_flight, size, value)
        results.note(subject.peer.key, name, turn, number)
