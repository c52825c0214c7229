"""What a flood of bad bearers costs whoever is known: good clients' p99 with the flood and without, in turns.

    python -m benchmarks.gateways.flood [--rounds N] [--seconds S] [--rate R]

The flood comes from a process of its own, which sends so many JWTs a second; each is another one, of the right issuer
and for the right audience, and the signature is wrong. Ends with 1 if the median ratio is above 1.5.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import statistics
import time

import uvloop

from benchmarks.gateways.client import Client, connected
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.credentials import issuer
from benchmarks.gateways.gateway import echo_of, http_servers, launched
from benchmarks.gateways.load import Loaded, load
from benchmarks.gateways.peers import peers
from benchmarks.gateways.processes import leave_nothing_running, python, scratch, started

BAR = 1.5
_IN_FLIGHT = 4
_CONNECTIONS = 8


def main() -> None:
    """Measure, and print it; or be the flood."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rate", type=int, default=500, help="bad bearers a second")
    parser.add_argument("--send", nargs=2, metavar=("PORT", "TOKEN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.send:
        uvloop.run(send_flood(int(given.send[0]), given.send[1], given.rate))
        return
    leave_nothing_running()
    ratio = uvloop.run(measure(given.rounds, given.seconds, given.rate))
    print(f"good clients' p99 with {given.rate} bad bearers a second: {ratio:.2f} of that without (wanted: {BAR})")
    raise SystemExit(0 if ratio <= BAR else 1)


async def measure(rounds: int, seconds: float, rate: int) -> float:
    """The median of the rounds' ratios."""
    (peer,), cores = peers("pegboard_jwt"), Cores.divided()
    ratios: list[float] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(cores.applied())
        servers, _ = stack.enter_context(http_servers(1))
        gateway = stack.enter_context(launched(peer, servers, stack.enter_context(scratch()), cores))
        tool = echo_of("s0", await gateway.ready(1, "handshake"))
        port = gateway.url.rpartition(":")[2].partition("/")[0]
        flood = python("benchmarks.gateways.flood", "--rate", str(rate), "--send", port, issuer().token)
        async with connected(gateway.url, "handshake", bearer=gateway.bearer) as client:
            for number in range(1, rounds + 1):
                alone = await _load(client, tool, seconds)
                with scratch() as folder, started(flood, folder) as process:
                    await asyncio.to_thread(process.first_line)
                    beside = await _load(client, tool, seconds)
                ratios.append(beside.p99 / alone.p99)
                print(f"round {number}: alone {_told(alone)}; beside the flood {_told(beside)}", flush=True)
    return statistics.median(ratios)


async def _load(client: Client, tool: str, seconds: float) -> Loaded:
    return await load(client.way, client.wording.call(tool, 0), _IN_FLIGHT, seconds)


def _told(loaded: Loaded) -> str:
    return f"p50 {loaded.p50 * 1000:.2f} ms, p99 {loaded.p99 * 1000:.2f} ms, {loaded.rate:.0f} calls/s"


async def send_flood(port: int, token: str, rate: int) -> None:
    """Send bad bearers until somebody ends this process; says so when they are slowed."""
    (head, claims, _), slowed = token.split("."), asyncio.Event()

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = time.monotonic()
        while True:
            bearer = f"{head}.{claims}.{secrets.token_urlsafe(64)}"
            lines = [f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {bearer}", "Content-Type: application/json"]
            writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "Content-Length: 2", "", "{}"]).encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
            if b" 429 " in answer and not slowed.is_set():
                slowed.set()
                print("flooding", flush=True)
            due += _CONNECTIONS / rate
            await asyncio.sleep(max(due - time.monotonic(), 0))

    await asyncio.gather(*(send() for _ in range(_CONNECTIONS)))


if __name__ == "__main__":
    main()
