"""Gateways and clients for tests: real sockets, real pipes, real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from pegboard.board import Pegboard
from pegboard.config import ServerSpec, read_settings
from pegboard.front.http import HttpFront, uvicorn_config
from pegboard.protocol.eras import MODERN_VERSIONS, modern_params
from pegboard.protocol.headers import request_headers
from pegboard.servers.keeper import Keeper
from pegboard.servers.link import Link, Wire
from pegboard.servers.wires.http import HttpWire
from pegboard.servers.wires.stdio import StdioWire

HERE = Path(__file__).parent
TOY = HERE / "servers" / "toy.py"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
ALL_VERSIONS = (*HANDSHAKE_VERSIONS, MODERN)
LIMIT = 10.0

Entry = dict[str, Any]


def toy(entry: Entry | None = None, **settings: Any) -> Entry:
    """A config entry for a toy over stdio; the interpreter starts in a moment without site packages."""
    args = ["-I", "-S", str(TOY), json.dumps(settings)]
    return {"command": sys.executable, "args": args, **(entry or {})}


def write_config(path: Path, servers: Mapping[str, Entry], **own: Any) -> Path:
    """A config file with these servers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": dict(servers), "pegboard": {"expose": "all", **own}}), "utf-8")
    return path


@contextlib.asynccontextmanager
async def open_board(tmp_path: Path, servers: Mapping[str, Entry], **own: Any) -> AsyncGenerator[Pegboard]:
    """A board of these servers, without any front."""
    path = write_config(tmp_path / "pegboard.json", servers, **own)
    async with Pegboard(read_settings(path, os.environ)) as board:
        yield board


@dataclass
class Gateway:
    """A running gateway."""

    front: HttpFront
    url: str
    config: Path

    @property
    def board(self) -> Pegboard:
        return self.front.board

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    async def configure(self, servers: Mapping[str, Entry], **own: Any) -> None:
        """Write another config and have it taken over."""
        write_config(self.config, servers, **own)
        await self.front.config.reload()


@contextlib.asynccontextmanager
async def open_gateway(tmp_path: Path, servers: Mapping[str, Entry], **own: Any) -> AsyncGenerator[Gateway]:
    """The whole gateway over HTTP, in this process."""
    path = write_config(tmp_path / "pegboard.json", servers, **own)
    front = HttpFront(Pegboard(read_settings(path, os.environ)), path, "127.0.0.1")
    server = uvicorn.Server(uvicorn_config(front.app))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    listener = socket.create_server(("127.0.0.1", 0))
    async with front.board:
        async with front.running():
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            failed: BaseException | None = None
            try:
                yield Gateway(front, f"http://127.0.0.1:{listener.getsockname()[1]}", path)
            except BaseException as exc:
                # Raised again outside: inside, a task group would wrap it, and the test would say nothing.
                failed = exc
        server.should_exit = True
        await serving
    if failed is not None:
        raise failed


@contextlib.contextmanager
def serving(config: Path, port: int = 0, **env: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """`pegboard serve` as a process of its own, and the address it says it listens on."""
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **env}
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert "listens on" in first
        yield process, next(word for word in first.split() if word.startswith("http"))
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.stdout.close()


@dataclass
class RawClient:
    """A client that shows exactly what came over the wire, in any protocol version."""

    link: Link
    version: str
    notifications: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    greeting: dict[str, Any] = field(default_factory=dict[str, Any])
    listening: asyncio.Task[Any] | None = None

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float = LIMIT,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """One request, stamped as the version wants it."""
        headers = None
        if self.modern:
            info = {"name": "raw", "version": "0"}
            params = modern_params(params, version=self.version, client_info=info, capabilities={})
            headers = request_headers(self.version, method, params)
        return await self.link.request(method, params, timeout=timeout, headers=headers, on_progress=on_progress)

    async def tools(self, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        return (await self.request("tools/list", params))["tools"]

    async def names(self, params: Mapping[str, Any] | None = None) -> list[str]:
        return [tool["name"] for tool in await self.tools(params)]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return await self.request("tools/call", params, **rest)

    async def text(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """The text of a call's first content."""
        return (await self.call(name, arguments))["content"][0]["text"]

    def changes(self) -> int:
        """How often this client was told that the list changed."""
        return sum(1 for method, _ in self.notifications if method == "notifications/tools/list_changed")

    async def until_changes(self, count: int) -> None:
        """Wait for the next notices."""
        async with asyncio.timeout(LIMIT):
            while self.changes() < count:
                self.heard.clear()
                await self.heard.wait()

    async def until_listed(self, wanted: Callable[[set[str]], bool], limit: float = LIMIT) -> set[str]:
        """Wait until the list is as wanted, looking again at each notice and now and then."""
        async with asyncio.timeout(limit):
            while True:
                self.heard.clear()
                names = set(await self.names())
                if wanted(names):
                    return names
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await self.heard.wait()

    async def listen(self) -> None:
        """Open the modern era's stream of notices and wait until it is acknowledged."""
        wanted = {"notifications": {"toolsListChanged": True}}
        self.listening = asyncio.create_task(self.request("subscriptions/listen", wanted, timeout=600))
        async with asyncio.timeout(LIMIT):
            while not any(method == "notifications/subscriptions/acknowledged" for method, _ in self.notifications):
                self.heard.clear()
                await self.heard.wait()

    async def close(self) -> None:
        if self.listening is not None:
            self.listening.cancel()
            await asyncio.gather(self.listening, return_exceptions=True)
        await self.link.close()


@contextlib.asynccontextmanager
async def connect(
    wire: Wire, version: str = "2025-11-25", *, listen: bool = True, capabilities: Mapping[str, Any] | None = None
) -> AsyncGenerator[RawClient]:
    """A raw client on this wire, greeted and ready."""
    heard: list[RawClient] = []

    def on_notification(method: str, params: Mapping[str, Any], _origin: int | None) -> None:
        if heard:
            heard[0].notifications.append((method, params))
            heard[0].heard.set()

    link = Link(wire, label="gateway", on_notification=on_notification)
    client = RawClient(link, version)
    heard.append(client)
    await wire.start(link)
    try:
        if client.modern:
            if isinstance(wire, HttpWire):
                wire.modern = True
            client.greeting = await client.request("server/discover")
            if listen:
                await client.listen()
        else:
            params = {
                "protocolVersion": version,
                "capabilities": dict(capabilities or {}),
                "clientInfo": {"name": "raw", "version": "0"},
            }
            client.greeting = await client.request("initialize", params)
            if isinstance(wire, HttpWire):
                wire.version = client.greeting["protocolVersion"]
            await link.notify("notifications/initialized")
            if isinstance(wire, HttpWire) and listen:
                wire.listen()
                # The stream is open once the gateway answers on it; a ping behind it is not enough of a proof.
                await asyncio.sleep(0.05)
        yield client
    finally:
        await client.close()


def http_client(url: str, version: str = "2025-11-25", **options: Any) -> Any:
    """A raw client over HTTP."""
    return connect(
        HttpWire(ServerSpec(name="gateway", given_name="gateway", transport="http", url=url)), version, **options
    )


@contextlib.asynccontextmanager
async def stdio_client(
    config: Path, version: str = "2025-11-25", env: Mapping[str, str] | None = None, **options: Any
) -> AsyncGenerator[RawClient]:
    """A raw client of `pegboard stdio` as a process of its own."""
    keeper = Keeper()
    environment = {name: value for name, value in os.environ.items() if name.startswith("PEGBOARD_")}
    spec = ServerSpec(
        name="gateway",
        given_name="gateway",
        command=sys.executable,
        args=("-m", "pegboard", "stdio", "--config", str(config)),
        env={**environment, **(env or {})},
    )
    try:
        async with connect(StdioWire(spec, keeper), version, **options) as client:
            yield client
    finally:
        await asyncio.to_thread(keeper.close)


async def eventually(check: Callable[[], object], limit: float = LIMIT) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(limit):
        while not check():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
