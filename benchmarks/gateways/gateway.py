"""Gateways that run with servers behind them, for as long as they are measured."""

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
READY = 30.0
UNDIVIDED = Cores()


@dataclass(frozen=True)
class Gateway:
    """One that has been started."""

    peer: Peer
    url: str
    # The server itself where there is no gateway.
    process: Process
    # The token that its clients bring.
    bearer: str | None = None

    async def ready(self, tools: int, era: Era, pause: float = 0.02) -> list[str]:
        """All tools, as soon as they are listed."""
        deadline = time.monotonic() + READY
        reason: object = None
        while time.monotonic() < deadline:
            self.process.require_alive()
            try:
                async with asyncio.timeout(READY), connected(self.url, era, self.peer.sse, self.bearer) as client:
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
        raise NotStarted(f"not ready after {READY:.0f} s: {reason or self.process.last_words()}")


def echo_of(server: str, tools: list[str]) -> str:
    """What the echo tool of a server is called among these."""
    found = [name for name in tools if name == "echo" or (server in name and name.endswith("echo"))]
    if not found:
        raise WrongReply(f"no echo tool of {server} among {tools[:5]}")
    return found[0]


def stdio_entry(name: str, tools: int = 1, era: str = "both", cores: Cores = UNDIVIDED) -> dict[str, object]:
    """A config entry for an echo server over stdio; without site packages the interpreter starts in a moment."""
    own = ["--name", name, "--tools", str(tools), "--era", era]
    if cores.others:
        own += ["--cores", ",".join(map(str, sorted(cores.others)))]
    return {"command": sys.executable, "args": ["-I", "-S", str(ECHO), *own]}


@contextlib.contextmanager
def http_servers(
    count: int, tools: int = 1, era: str = "both", placed: Callable[[int], None] = UNDIVIDED.leave
) -> Generator[tuple[Servers, Process]]:
    """Config entries for echo servers over HTTP, all in one process."""
    own = ["--servers", str(count), "--tools", str(tools), "--era", era]
    with scratch() as folder, started(python("benchmarks.gateways.echo_http", *own), folder, placed) as process:
        ports = process.first_line().split()
        entries = {f"s{n}": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"} for n, port in enumerate(ports)}
        yield entries, process


@contextlib.contextmanager
def launched(peer: Peer, servers: Servers, folder: Path, cores: Cores = UNDIVIDED) -> Generator[Gateway]:
    """A gateway in front of some servers; it may take a moment until it is ready."""
    assert peer.prepare is not None
    port = free_port()
    command = peer.prepare(servers, folder, port)
    bearer = peer.bearer(folder) if peer.bearer is not None else None
    with started(command, folder, cores.give_to_gateway) as process:
        yield Gateway(peer, peer.url(port), process, bearer)


@contextlib.asynccontextmanager
async def running(peer: Peer, servers: Servers, folder: Path, tools: int, era: Era) -> AsyncGenerator[Gateway]:
    """A gateway that is ready: it has listed so many tools."""
    with launched(peer, servers, folder) as gateway:
        await gateway.ready(tools, era)
        yield gateway
