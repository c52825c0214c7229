"""Gateways and clients for tests: real sockets, real pipes, real processes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import json
import os
import py_compile
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from forking import warm_start
from pegboard.auth.token import digest_of, new_token_text
from pegboard.board import Board
from pegboard.config import ServerSpec, read_settings
from pegboard.gateway.event_feed import EventFeed
from pegboard.gateway.http import HttpGateway, uvicorn_config
from pegboard.gateway.listen import listen_on
from pegboard.protocol.eras import CLIENT_INFO_KEY, MODERN_VERSIONS, modern_params
from pegboard.protocol.headers import request_headers
from pegboard.servers.errors import RpcError
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.transports.stdio import StdioTransport
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from pegboard.servers.transports.transport import Transport
from servers.toy import Settings
from servers.toy_http import Manners, http_toy

HERE = Path(__file__).parent
TOY = HERE / "servers" / "toy.py"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
ALL_VERSIONS = (*HANDSHAKE_VERSIONS, MODERN)
# How long something is waited for that has to come; on a busy machine everything takes its time.
LIMIT = 30.0
ROUNDS = 10
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

# One server of each kind: its transport, then its era or the way it answers.
SERVERS = ("stdio_handshake", "stdio_modern", "http_handshake", "http_stream", "http_modern", "sse_handshake")
# The lists of the protocol: the method, the result's key, and what tells one item from another.
LISTS = {
    "tools": ("tools/list", "tools", "name"),
    "prompts": ("prompts/list", "prompts", "name"),
    "resources": ("resources/list", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}

Entry = dict[str, Any]
# How a client answers a question: the result, an awaitable of it, or an RpcError that is raised.
Answer = Callable[[Mapping[str, Any]], Any]


@functools.cache
def toy_program() -> str:
    """The toy, compiled: a script would be compiled again at each of some thousand starts."""
    return py_compile.compile(str(TOY), doraise=True) or str(TOY)


def toy(entry: Entry | None = None, **settings: Any) -> Entry:
    """A config entry for a toy over stdio; the interpreter starts in a moment without site packages."""
    args = ["-I", "-S", toy_program(), json.dumps(settings)]
    return {"command": sys.executable, "args": args, **(entry or {})}


def toy_unless(there: Path, **settings: Any) -> Entry:
    """A toy that cannot be started while this file is there: once it is lost, it stays lost."""
    start = toy(**settings)
    return {
        "command": "sh",
        "args": ["-c", 'test ! -e "$0" && exec "$@"', str(there), start["command"], *start["args"]],
    }


def toy_after(there: Path, **settings: Any) -> Entry:
    """A toy that starts once this file is gone."""
    start = toy(**settings)
    wait = 'while test -e "$0"; do sleep 0.05; done; exec "$@"'
    return {"command": "sh", "args": ["-c", wait, str(there), start["command"], *start["args"]]}


@contextlib.contextmanager
def every_server(names: Sequence[str] = SERVERS, **settings: Any) -> Generator[dict[str, Entry]]:
    """A toy of each kind, by the name of its kind, which is its own name as well."""
    with contextlib.ExitStack() as stack:
        entries: dict[str, Entry] = {}
        for name in names:
            transport, _, kind = name.partition("_")
            own: dict[str, Any] = {"name": name, "era": "modern" if kind == "modern" else "handshake", **settings}
            if transport == "stdio":
                entries[name] = toy(**own)
                continue
            listening = stack.enter_context(http_toy(Settings(**own), Manners(stream=kind == "stream")))
            entries[name] = {"type": transport, "url": listening.sse_url if transport == "sse" else listening.url}
        yield entries


def write_config(path: Path, servers: Mapping[str, Entry], **own: Any) -> Path:
    """A config file with these servers; every tool is listed, and none of Pegboard's own, unless a test says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {"expose": "all", "toolsets": [], **own}
    path.write_text(json.dumps({"mcpServers": dict(servers), "pegboard": settings}), "utf-8")
    return path


@contextlib.asynccontextmanager
async def open_board(tmp_path: Path, servers: Mapping[str, Entry], **own: Any) -> AsyncGenerator[Board]:
    """A board of these servers, without any front."""
    path = write_config(tmp_path / "pegboard.json", servers, **own)
    async with Board(read_settings(path, os.environ)) as board:
        yield board


@dataclass
class Gateway:
    """A running gateway."""

    front: HttpGateway
    url: str
    config: Path

    @property
    def board(self) -> Board:
        return self.front.board

    @property
    def feed(self) -> EventFeed:
        return self.front.feed

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    async def token(self, name: str = "somebody", expires_at: float | None = None, **rule: Any) -> dict[str, str]:
        """The header of a new static token, with what a rule says as in a config."""
        token_id, text = new_token_text()
        store = self.board.storage.tokens
        assert await store.add(token_id, name, digest_of(text), json.dumps(rule), time.time(), expires_at)
        await self.load_tokens()
        return {"authorization": f"Bearer {text}"}

    async def load_tokens(self) -> None:
        """Take over what storage has."""
        # In turn with the gateway itself, which may have read what was there before.
        await self.front.token_watch.load()

    async def configure(self, servers: Mapping[str, Entry], **own: Any) -> None:
        """Write another config and have it taken over."""
        write_config(self.config, servers, **own)
        await self.front.config.reload()


class PromptServer(uvicorn.Server):
    """uvicorn pauses for a tenth of a second before it sees that it is to end, and again for its connections; not so
    this one, which leaves signals to the run of tests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        for counter in itertools.count():
            if await self.on_tick(counter):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in [*self.servers, *(sockets or [])]:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:
                    await asyncio.sleep(0.002)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()


@contextlib.asynccontextmanager
async def open_gateway(tmp_path: Path, servers: Mapping[str, Entry], **own: Any) -> AsyncGenerator[Gateway]:
    """The whole gateway over HTTP, in this process; it records calls if there is a setting of the audit."""
    path = write_config(tmp_path / "pegboard.json", servers, **own)
    board = Board(read_settings(path, os.environ), audit="serve" if "audit" in own else None)
    front = HttpGateway(board, path, "127.0.0.1")
    server = PromptServer(uvicorn_config(front))
    listener = listen_on("127.0.0.1", 0)
    async with front.board:
        async with front.running():
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            failed: BaseException | None = None
            try:
                yield Gateway(front, f"http://127.0.0.1:{listener.getsockname()[1]}", path)
            except BaseException as exc:
                # Raised again outside: inside, a task group would wrap it, and the test would say nothing.
                failed = exc
        server.end()
        await serving
    if failed is not None:
        raise failed


@contextlib.contextmanager
def serving(
    config: Path, port: int = 0, *, command: Sequence[str] = (), options: Sequence[str] = (), **env: str
) -> Generator[tuple[subprocess.Popen[str], str]]:
    """`pegboard serve` as a process of its own, and the address it says it listens on."""
    whole = [*(command or warm_start()), "serve", "--config", str(config), "--port", str(port), *options]
    process = subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **env}
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

    link: JsonRpcPeer
    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # How questions are answered, by their method; what was asked stands in `questions`, in order.
    answers: Mapping[str, Answer] = field(default_factory=dict[str, Answer])
    questions: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    # Questions that were taken back before they were answered.
    withdrawn: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    # Every `input_required` result that `request_through` went through.
    rounds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    log_level: str | None = None
    # What it calls itself in 2026-07-28, where it may keep that to itself.
    name: str | None = "raw"
    notifications: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    hello: dict[str, Any] = field(default_factory=dict[str, Any])
    streams: list[asyncio.Task[Any]] = field(default_factory=list[asyncio.Task[Any]])

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    @property
    def can_notify(self) -> bool:
        """Over HTTP the modern era has no notifications from clients: they are accepted and dropped."""
        return not (self.modern and self.link.transport.takes_headers)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float = LIMIT,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """One request, stamped as the version wants it."""
        params, headers = self._stamped(method, params)
        return await self.link.request(method, params, timeout=timeout, headers=headers, on_progress=on_progress)

    async def request_through(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float = LIMIT
    ) -> dict[str, Any]:
        """One request with all that it asks: in the modern era, retried with the answers until it is complete."""
        retry: Mapping[str, Any] = params or {}
        for _ in range(ROUNDS):
            result = await self.request(method, retry, timeout=timeout)
            if result.get("resultType") != "input_required":
                return result
            retry = {**(params or {}), **await self.answered(result)}
        raise AssertionError(f"{method} still asks after {ROUNDS} rounds")

    async def answered(self, result: dict[str, Any]) -> dict[str, Any]:
        """What a retry carries: the answers to an `input_required` result, and its state."""
        self.rounds.append(result)
        asked: dict[str, dict[str, Any]] = result.get("inputRequests") or {}
        carried: dict[str, Any] = {
            "inputResponses": {
                key: await self.answer(question["method"], question.get("params") or {})
                for key, question in asked.items()
            }
        }
        if "requestState" in result:
            carried["requestState"] = result["requestState"]
        return carried

    async def answer(self, method: str, params: Mapping[str, Any], _origin: int | None = None) -> Any:
        """Answer a question, and remember it."""
        self.questions.append((method, params))
        self.heard.set()
        if method not in self.answers:
            raise RpcError(-32601, f"{method} is not supported by this client")
        answer = self.answers[method](params)
        try:
            return await answer if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError:
            self.withdrawn.append((method, params))
            self.heard.set()
            raise

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """One notification, stamped as the version wants it."""
        stamped, headers = self._stamped(method, params)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        await self.link.transport.send(message | ({} if stamped is None else {"params": stamped}), headers)

    async def give_up(self) -> None:
        """Say that the latest request is no longer wanted, without leaving its stream."""
        params = {"requestId": self.link._last_id, "reason": "never mind"}
        await self.notify("notifications/cancelled", params)

    def _stamped(
        self, method: str, params: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any] | None, dict[str, str] | None]:
        if not self.modern:
            return params, None
        if self.log_level is not None:
            params = {**(params or {}), "_meta": {LOG_LEVEL_KEY: self.log_level, **((params or {}).get("_meta") or {})}}
        info = {"name": self.name, "version": "0"}
        params = modern_params(params, version=self.version, client_info=info, capabilities=self.capabilities)
        if self.name is None:
            del params["_meta"][CLIENT_INFO_KEY]
        return params, request_headers(self.version, method, params)

    async def listed(self, kind: str, params: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
        """Everything of a list by its name or URI: `tools`, `prompts`, `resources` or `templates`."""
        method, key, identity = LISTS[kind]
        return {item[identity]: item for item in (await self.request(method, params))[key]}

    async def tools(self, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        return (await self.request("tools/list", params))["tools"]

    async def names(self, params: Mapping[str, Any] | None = None) -> list[str]:
        return [tool["name"] for tool in await self.tools(params)]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return await self.request("tools/call", params, **rest)

    async def call_through(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A call with all that it asks."""
        return await self.request_through("tools/call", {"name": name, "arguments": arguments or {}})

    async def text(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """The text of a call's first content."""
        return (await self.call(name, arguments))["content"][0]["text"]

    def changes(self) -> int:
        """How often this client was told that the list changed."""
        return sum(1 for method, _ in self.notifications if method == "notifications/tools/list_changed")

    async def until_changes(self, count: int) -> None:
        """Wait for the next notices."""
        await self.until_heard("notifications/tools/list_changed", count)

    def said(self, method: str) -> list[Mapping[str, Any]]:
        """The params of each notification of this kind so far."""
        return [params for heard, params in self.notifications if heard == method]

    async def until_heard(self, method: str, count: int = 1) -> list[Mapping[str, Any]]:
        """Wait for so many notifications of a kind."""
        await self.until(lambda: len(self.said(method)) >= count)
        return self.said(method)

    async def until(self, check: Callable[[], object]) -> None:
        """Wait until something holds, looking again whenever a notification or a question came."""
        async with asyncio.timeout(LIMIT):
            while not check():
                self.heard.clear()
                await self.heard.wait()

    async def until_in(self, kind: str, item: str) -> dict[str, dict[str, Any]]:
        """Wait until a list holds something, looking now and then."""
        async with asyncio.timeout(LIMIT):
            while item not in (listed := await self.listed(kind)):
                await asyncio.sleep(0.05)
        return listed

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

    async def listen(self, wanted: Mapping[str, Any] | None = None) -> asyncio.Task[Any]:
        """Open the modern era's stream of notices and wait until it is acknowledged; cancelled, it is closed."""
        before = len(self.said("notifications/subscriptions/acknowledged"))
        params = {"notifications": wanted or {"toolsListChanged": True}}
        stream = asyncio.create_task(self.request("subscriptions/listen", params, timeout=600))
        stream.add_done_callback(lambda _: self.heard.set())
        self.streams.append(stream)
        await self.until(lambda: stream.done() or len(self.said("notifications/subscriptions/acknowledged")) > before)
        if stream.done():
            await stream
        return stream

    async def close(self) -> None:
        for stream in self.streams:
            stream.cancel()
        await asyncio.gather(*self.streams, return_exceptions=True)
        await self.link.close()


class ListeningTransport(StreamableHttpTransport):
    """A client's own end over HTTP, which knows when its standing stream is open, or refused."""

    def __init__(self, spec: ServerSpec) -> None:
        super().__init__(spec)
        self.answered = asyncio.Event()

    async def _read_events(self, response: Any, stream: Any, request_id: int | None) -> None:
        if request_id is None:
            self.answered.set()
        await super()._read_events(response, stream, request_id)

    def _goes_on(self, exc: Any, failures: int) -> bool:
        self.answered.set()
        return super()._goes_on(exc, failures)


@contextlib.asynccontextmanager
async def connect(
    wire: Transport,
    version: str = "2025-11-25",
    *,
    listen: bool | Mapping[str, Any] = True,
    capabilities: Mapping[str, Any] | None = None,
    answers: Mapping[str, Answer] | None = None,
    log_level: str | None = None,
    name: str | None = "raw",
) -> AsyncGenerator[RawClient]:
    """A raw client on this wire, greeted and ready; `listen` may be what a modern client listens to."""
    heard: list[RawClient] = []

    def on_notification(method: str, params: Mapping[str, Any], _origin: int | None) -> None:
        if heard:
            heard[0].notifications.append((method, params))
            heard[0].heard.set()

    async def on_request(method: str, params: Mapping[str, Any], _origin: int | None) -> Any:
        return await heard[0].answer(method, params)

    link = JsonRpcPeer(wire, label="gateway", on_notification=on_notification, on_request=on_request)
    client = RawClient(link, version, capabilities or {}, answers or {}, log_level=log_level, name=name)
    heard.append(client)
    await wire.start(link)
    try:
        if client.modern:
            wire.on_negotiated("modern", version)
            client.hello = await client.request("server/discover")
            if listen:
                await client.listen(None if listen is True else listen)
        else:
            params = {
                "protocolVersion": version,
                "capabilities": dict(client.capabilities),
                "clientInfo": {"name": "raw", "version": "0"},
            }
            client.hello = await client.request("initialize", params)
            wire.on_negotiated("handshake", client.hello["protocolVersion"])
            await link.notify("notifications/initialized")
            if isinstance(wire, ListeningTransport) and listen:
                wire.listen(lambda: None)
                # A ping behind it is not enough of a proof.
                async with asyncio.timeout(LIMIT):
                    await wire.answered.wait()
        yield client
    finally:
        await client.close()


def unstamped(result: Mapping[str, Any], raw: RawClient) -> dict[str, Any]:
    """A result without what the modern era adds on this hop."""
    if not raw.modern:
        return dict(result)
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_INFO_KEY]["name"] == "pegboard"
    meta = {key: value for key, value in result["_meta"].items() if key != SERVER_INFO_KEY}
    rest = {key: value for key, value in result.items() if key not in {"resultType", "_meta"}}
    return rest | ({"_meta": meta} if meta else {})


def unattributed(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A question without what the gateway says of the server that asks, which it has to say wherever it can."""
    meta = dict(params["_meta"])
    server = meta.pop("pegboard/server")
    rest: dict[str, Any] = {key: value for key, value in params.items() if key != "_meta"}
    if meta:
        rest["_meta"] = meta
    if method == "elicitation/create":
        assert rest["message"].startswith(f"[{server}] ")
        rest["message"] = rest["message"].removeprefix(f"[{server}] ")
    return rest


def http_client(url: str, version: str = "2025-11-25", **options: Any) -> Any:
    """A raw client over HTTP, which may send `headers` of its own."""
    headers = options.pop("headers", {})
    spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=url, headers=headers)
    return connect(
        ListeningTransport(spec),
        version,
        **options,
    )


@contextlib.asynccontextmanager
async def process_client(spec: ServerSpec, version: str, **options: Any) -> AsyncGenerator[RawClient]:
    """A raw client of a process of its own."""
    keeper = OrphanReaper()
    try:
        async with connect(StdioTransport(spec, keeper), version, **options) as client:
            yield client
    finally:
        await asyncio.to_thread(keeper.close)


@contextlib.asynccontextmanager
async def stdio_client(
    config: Path,
    version: str = "2025-11-25",
    env: Mapping[str, str] | None = None,
    args: tuple[str, ...] = (),
    command: Sequence[str] = (),
    **options: Any,
) -> AsyncGenerator[RawClient]:
    """A raw client of `pegboard stdio` as a process of its own."""
    program, *first = command or warm_start()
    environment = {name: value for name, value in os.environ.items() if name.startswith("PEGBOARD_")}
    spec = ServerSpec(
        name="gateway",
        given_name="gateway",
        command=program,
        args=(*first, "stdio", "--config", str(config), *args),
        env={**environment, **(env or {})},
    )
    async with process_client(spec, version, **options) as client:
        yield client


async def seen(raw: RawClient, server: str) -> dict[str, Any]:
    """What a toy behind the gateway noticed."""
    return (await raw.call(f"{server}__seen"))["structuredContent"]


async def until_seen(raw: RawClient, server: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Wait until a toy behind the gateway noticed something."""
    async with asyncio.timeout(LIMIT):
        while not wanted(now := await seen(raw, server)):
            await asyncio.sleep(0.02)
    return now


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


def without_config(text: str) -> str:
    """A message of a command without the config file that its commands name."""
    return re.sub(r" --config [^\s`]+", "", text)
