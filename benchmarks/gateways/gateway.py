"""A gateway that runs with servers behind it, for as long as it is measured."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateways.client import connected
from benchmarks.gateways.cores import Cores
from benchmarks.gateways.echo import Era
from benchmarks.gateways.peers import Peer, Servers
from benchmarks.gateways.processes import SERVER, NotStarted, Process, free_port, python, scratch, started
from benchmarks.gateways.requests import WrongReply

ECHO = Path(__file__).with_name(SERVER)
READY = 20.0
UNDIVIDED = Cores()


@dataclass(frozen=True)
class Gateway:
    """One that is ready: it has listed every tool."""

    url: str
    # The server itself where there is no gateway.
    process: Process
    tools: list[str]

    def echo_of(self, server: str) -> str:
        """What the echo tool of a server is called here."""
        found = [name for name in self.tools if name == "echo" or (server in name and name.endswith("echo"))]
        if not found:
            raise WrongReply(f"no echo tool of {server} among {self.tools[:5]}")
        return found[0]


def stdio_entry(name: str, tools: int = 1, era: str = "both", cores: Cores = UNDIVIDED) -> dict[str, object]:
    """A config entry for an echo server over stdio; without site packages the interpreter starts in a moment."""
    own = ["--name", name, "--tools", str(tools), "--era", era]
    if cores.others:
        own += ["--cores", ",".join(map(str, sorted(cores.others)))]
    return {"command": sys.executable, "args": ["-I", "-S", str(ECHO), *own]}


@contextlib.contextmanager
def http_servers(
    count: int, tools: int = 1, era: str = "both", placed: Callable[[int], None] = lambda _: None
) -> Generator[tuple[Servers, Process]]:
    """Config entries for echo servers over HTTP, all in one process."""
    own = ["--servers", str(count), "--tools", str(tools), "--era", era]
    with scratch() as folder, started(python("benchmarks.gateways.echo_http", *own), folder, placed) as process:
        ports = process.first_line().split()
        entries = {f"s{n}": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"} for n, port in enumerate(ports)}
        yield entries, process


@contextlib.asynccontextmanager
async def running(
    peer: Peer, servers: Servers, folder: Path, tools: int, era: Era, cores: Cores = UNDIVIDED
) -> AsyncGenerator[Gateway]:
    """A gateway in front of servers that have so many tools in all."""
    assert peer.prepare is not None
    port = free_port()
    with started(peer.prepare(servers, folder, port), folder, cores.give_to_gateway) as process:
        yield Gateway(peer.url(port), process, await ready(peer, port, process, tools, era))


async def ready(peer: Peer, port: int, process: Process, tools: int, era: Era, pause: float = 0.02) -> list[str]:
    """All tools, as soon as a gateway lists them."""
    deadline = time.monotonic() + READY
    reason: object = None
    while time.monotonic() < deadline:
        process.require_alive()
        try:
            async with asyncio.timeout(READY), connected(peer.url(port), era, peer.sse) as client:
                while time.monotonic() < deadline:
                    names = await client.tools()
                    if len(names) >= tools:
                        return names
                    reason = f"{len(names)} of {tools} tools"
                    await asyncio.sleep(pause)
        except ConnectionRefusedError:
            pass
        except (OSError, TimeoutError, WrongReply) as exc:
            reason = exc
        await asyncio.sleep(pause)
    raise NotStarted(f"not ready after {READY:.0f} s: {reason or process.last_words()}")
