"""Signing in to a protected server: ours beside FastMCP's client and mcp-remote. One run, one table.

    python -m benchmarks.sign_in [--json FILE] [--rounds 41]

The server is the SDK's, and its authorization server rotates refresh tokens: one that is used twice ends the grant. All
run as programs do that people use; a browser that agrees to everything is counted whenever one is opened.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sse_starlette.sse import AppStatus

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from benchmarks.sign_in_clients import CLIENTS, SignInClient, as_json
from conformance.eras import Era
from oauth.authority import Authority, open_authority
from oauth.guarded_server import GuardedServer, open_guarded

SHORT, LONG = 2, 600
CALLS = 64
PROCESSES = 8
INSTANCES = 3
# What one program is given for one figure.
PATIENCE = 300.0
# A stream is open by then.
SETTLED = 0.5
Numbers = dict[str, Any]
Kind = type[SignInClient]


def main() -> None:
    """Measure everything, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=41)
    options.add_argument("--json", type=Path, help="write the numbers to this file, too")
    given = options.parse_args()
    # Each in a process of its own: what a library leaves behind is not met by the next.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        results = {kind.name: pool.submit(run, kind, given.rounds).result() for kind in CLIENTS}
    console = Console(width=max(120, Console().width))
    console.print(f"{len(os.sched_getaffinity(0))} cores; medians of {given.rounds} rounds")
    console.print(table(results))
    if given.json:
        given.json.write_text(as_json(results), "utf-8")


def run(kind: Kind, rounds: int) -> Numbers:
    """Every figure of one program."""
    # A library may run a web server in this process for its sign-ins. When that stops, streams of the server that is
    # measured against would be ended with it.
    AppStatus.disable_automatic_graceful_drain()
    return asyncio.run(measure(kind, rounds))


async def measure(kind: Kind, rounds: int) -> Numbers:
    """Every figure of one program; what does not come to an end in time says so."""
    figures: dict[str, Callable[[Kind], Awaitable[Numbers]]] = {
        "restart": measure_restart,
        "instances": measure_instances,
        "stream": partial(measure_stream, rounds=rounds),
        "expiry": partial(measure_expiry, processes=1),
        "processes": partial(measure_expiry, processes=PROCESSES),
    }
    numbers: Numbers = {}
    for name, figure in figures.items():
        try:
            async with asyncio.timeout(PATIENCE):
                numbers[name] = await figure(kind)
        except Exception as exc:
            numbers[name] = {"failed": f"{type(exc).__name__} {str(exc)[:60]}".strip()}
    return numbers


@contextlib.asynccontextmanager
async def stage() -> AsyncGenerator[tuple[Authority, GuardedServer, Path]]:
    """A server, its authorization server, and a folder for what a program keeps."""
    with (
        tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder,
        open_authority() as authority,
        open_guarded(authority, Era.HANDSHAKE) as guarded,
    ):
        # Whoever has another port at each start is not to be at a disadvantage.
        authority.takes_any_port = True
        yield authority, guarded, Path(folder)


@contextlib.asynccontextmanager
async def running(client: SignInClient) -> AsyncGenerator[SignInClient]:
    """A program that is signed in."""
    try:
        await client.open()
        yield client
    finally:
        with contextlib.suppress(Exception):
            await client.close()


async def measure_restart(kind: Kind) -> Numbers:
    """Browsers and token requests of a start with an expired access token."""
    async with stage() as (authority, guarded, folder):
        authority.lifetime = SHORT
        async with running(kind(guarded.url, folder)) as client:
            await client.call()
        await asyncio.sleep(SHORT + 0.2)
        before = Counter(authority.asked)
        async with running(kind(guarded.url, folder)) as client:
            await client.call()
        asked = authority.asked - before
        return {"browsers": asked["authorize"], "refreshes": asked["refresh_token"]}


async def measure_instances(kind: Kind) -> Numbers:
    """Sign-ins and registrations of programs that start together, and how many of them work then."""
    async with stage() as (authority, guarded, folder), contextlib.AsyncExitStack() as stack:
        authority.lifetime = LONG
        clients = [kind(guarded.url, folder) for _ in range(INSTANCES)]
        for client in clients:
            stack.push_async_callback(client.close)
        opened = await asyncio.gather(*(client.open() for client in clients), return_exceptions=True)
        there = [client for client, problem in zip(clients, opened, strict=True) if problem is None]
        said = await asyncio.gather(*(client.call() for client in there), return_exceptions=True)
        working = sum(isinstance(answer, str) for answer in said)
        return {"tabs": len(authority.states), "registrations": authority.asked["register"], "working": working}


async def measure_stream(kind: Kind, rounds: int) -> Numbers:
    """Milliseconds of a first call while the server's stream is open: signed in, and with a token in a header."""
    async with stage() as (authority, guarded, folder):
        authority.lifetime = LONG
        await time_call(kind(guarded.url, folder))
        signed, plain = list[float](), list[float]()
        # By turns, so that a machine that gets slower does so for both.
        for _ in range(rounds):
            signed.append(await time_call(kind(guarded.url, folder)))
            token = next(reversed(authority.tokens))
            plain.append(await time_call(kind(guarded.url, folder / "plain", token)))
    oauth, header = statistics.median(signed), statistics.median(plain)
    return {"oauth": round(oauth, 1), "header": round(header, 1), "ratio": round(oauth / header, 2)}


async def time_call(client: SignInClient) -> float:
    """Milliseconds of the first call of a run."""
    client.folder.mkdir(exist_ok=True)
    async with running(client):
        await asyncio.sleep(SETTLED)
        start = time.perf_counter()
        await client.call()
        return (time.perf_counter() - start) * 1000


async def measure_expiry(kind: Kind, processes: int) -> Numbers:
    """Token requests, browsers and failures of 64 calls that come when the token is over."""
    async with stage() as (authority, guarded, folder), contextlib.AsyncExitStack() as stack:
        authority.lifetime = SHORT
        clients = [kind(guarded.url, folder) for _ in range(processes)]
        for client in clients:
            await stack.enter_async_context(running(client))
            await client.call()
        # Tokens that were used may be renewed ahead, until nobody uses them any more.
        while any(token.is_live for token in list(authority.tokens.values())):
            await asyncio.sleep(0.1)
        authority.lifetime = LONG
        before = Counter(authority.asked)
        each = CALLS // processes
        said = await asyncio.gather(*(client.call() for client in clients for _ in range(each)), return_exceptions=True)
        asked = authority.asked - before
    failed = sum(isinstance(answer, BaseException) for answer in said)
    return {"refreshes": asked["refresh_token"], "browsers": asked["authorize"], "failed": failed}


def table(results: dict[str, Numbers]) -> Table:
    """What was measured, for people."""
    shown = Table("", *results)
    rows = (
        ("browsers after a restart with an expired token", "restart", "{browsers} ({refreshes} refreshes)"),
        (
            f"{INSTANCES} programs that start together",
            "instances",
            "{tabs} sign-ins, {registrations} registrations, {working} work",
        ),
        ("first call with a stream open, OAuth / header", "stream", "{oauth} / {header} ms = {ratio}"),
        (f"{CALLS} calls at expiry", "expiry", "{refreshes} refreshes, {browsers} browsers, {failed} failed"),
        (
            f"{CALLS} calls at expiry, {PROCESSES} processes, one store",
            "processes",
            "{refreshes} refreshes, {browsers} browsers, {failed} failed",
        ),
    )
    for title, name, text in rows:
        cells = [
            numbers[name]["failed"] if isinstance(numbers[name].get("failed"), str) else text.format(**numbers[name])
            for numbers in results.values()
        ]
        shown.add_row(title, *cells)
    return shown


if __name__ == "__main__":
    main()
