"""The bridge: `pegboard stdio` beside a running `pegboard serve` hands its bytes on and does nothing else.

The gateway listens on a loopback port of its own for this, and takes only whoever knows the token that it
wrote into a file which the user alone can read. This side imports next to nothing: it has to be there at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import re
import secrets
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pegboard.gateway.proof import prove
from pegboard.task_set import TaskSet

if TYPE_CHECKING:
    from pegboard.access.principal import Principal
    from pegboard.clients.endpoint import PipeEndpoint
    from pegboard.gateway.fastpath.pipe import PipeFastPath
    from pegboard.gateway.pipe_client import PipeClient
    from pegboard.sdk.server import GatewayServer

_MAX_LINE = 4 * 1024 * 1024
_MAX_WAITING = 10_000
_HEAD = 512
# The answers to a batch, as one line, may begin with those to messages that were none.
_BATCH_HEAD = 64 * 1024
_ANSWER = re.compile(rb'\{"jsonrpc":\s*"2\.0",\s*"id":\s*("(?:[^"\\]|\\.)*"|-?\d+),\s*"(?:result|error)"')
# As in `protocol/message.py`, which would take too long to load.
_BATCH_VERSION = "2025-03-26"
_MAX_BATCH = 100
# A folder's name has 4,096 bytes at most, each of them up to six characters of JSON.
_MAX_GREETING = 32 * 1024
# Connections that have not proved yet to know the token.
_MOST_UNPROVEN = 64


@contextlib.asynccontextmanager
async def bridgehead(
    server: GatewayServer,
    fast_path: Callable[[PipeEndpoint], PipeFastPath | None],
    token: str,
    lines: set[PipeClient],
    principal: Callable[[], Principal],
) -> AsyncGenerator[int]:
    """The gateway's side, which takes whoever knows the token: gives its port; who is connected is among the lines."""
    clients = TaskSet()
    unproven: dict[asyncio.StreamWriter, None] = {}

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The oldest has to go: whoever knows the token has proved it within milliseconds.
        while len(unproven) >= _MOST_UNPROVEN:
            oldest = next(iter(unproven))
            del unproven[oldest]
            oldest.transport.abort()
        unproven[writer] = None
        clients.spawn(_serve(server, fast_path, lines, token, principal, unproven, reader, writer))

    listener = await asyncio.start_server(on_connect, "127.0.0.1", 0, limit=_MAX_LINE)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await clients.close()


async def _serve(
    server: GatewayServer,
    fast_path: Callable[[PipeEndpoint], PipeFastPath | None],
    lines: set[PipeClient],
    token: str,
    principal: Callable[[], Principal],
    unproven: dict[asyncio.StreamWriter, None],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    from pegboard.clients.endpoint import Endpoint, PipeEndpoint
    from pegboard.gateway.entrance import entrance
    from pegboard.gateway.pipe_client import PipeClient
    from pegboard.names import is_board_name

    async def write(text: bytes) -> None:
        writer.write(text + b"\n")
        await writer.drain()

    try:
        async with asyncio.timeout(5):
            if not await _prove_both(token, reader, writer):
                return
            unproven.pop(writer, None)
            said = json.loads(await _short_line(reader))
        name, workspace = said.get("board"), said.get("workspace")
        query = {"workspace": workspace} if isinstance(workspace, str) else {}
        board = name if isinstance(name, str) and is_board_name(name) else None
        endpoint = PipeEndpoint(Endpoint(query, board, private=True), principal)
        client = PipeClient(write, entrance(server, endpoint), fast_path(endpoint))
        reading = asyncio.get_running_loop().create_task(_read(client, reader))
        lines.add(client)
        try:
            await client.serve()
        finally:
            lines.discard(client)
            reading.cancel()
    except (TimeoutError, ConnectionError, EOFError, ValueError, AttributeError, RecursionError):
        pass
    finally:
        unproven.pop(writer, None)
        writer.close()


async def _prove_both(token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Each side proves that it knows the token, and neither says it."""
    challenge = await _short_line(reader)
    own = secrets.token_hex(16).encode()
    writer.write(prove(token, "gateway", challenge) + b" " + own + b"\n")
    await writer.drain()
    return hmac.compare_digest(await _short_line(reader), prove(token, "bridge", own))


async def _short_line(reader: asyncio.StreamReader) -> bytes:
    """A line of the greeting; whoever says more than anybody has to is not listened to."""
    line = bytearray()
    # Byte by byte: what stands behind it is the client's first message.
    while not line.endswith(b"\n"):
        if len(line) >= _MAX_GREETING:
            raise ValueError("a line of the greeting is too long")
        line += await reader.readexactly(1)
    return bytes(line).strip()


async def _read(client: PipeClient, reader: asyncio.StreamReader) -> None:
    try:
        while True:
            try:
                line = await reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            except asyncio.LimitOverrunError:
                await client.too_long()
                break
            if line.strip():
                await client.line(line)
    finally:
        # Whatever goes wrong here, nobody is left waiting.
        await client.end()


def cross(config: Path, board: str | None = None, workspace: str | None = None) -> bool | None:
    """The client's side: hand bytes on until one end closes. `None` if there is no gateway to hand them to; else
    whether the client was the one that left."""
    link = _reach(config, {"board": board, "workspace": workspace})
    if link is None:
        return None
    traffic = _Traffic()
    threading.Thread(target=_pump_input, args=(link, traffic), daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        while data := link.recv(65536):
            _write(out, data)
            traffic.note_received(data)
    if not traffic.input_ended:
        # A client that waits for an answer would wait for ever.
        with contextlib.suppress(OSError):
            _write(out, traffic.farewell())
    return traffic.input_ended


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


class _Traffic:
    """Which requests of the client have no answer yet. It looks on: what passes is not changed, nor held up."""

    def __init__(self) -> None:
        self.input_ended = False
        # Those that were sent as one batch, which are answered as one, have the same tuple.
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._takes_batches = False
        self._line = b""
        self._head = b""

    def note_sent(self, data: bytes) -> None:
        """The client has sent this."""
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > _MAX_LINE:
            self._line = b""
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                requests = self._requests(json.loads(line))
                self._waiting.update(dict.fromkeys(requests, requests))
        while len(self._waiting) > _MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def note_received(self, data: bytes) -> None:
        """The gateway has sent this. Its answers begin with their id, so that their beginning is enough."""
        first, *others = data.split(b"\n")
        self._head = _beginning(self._head + first[:_BATCH_HEAD])
        for line in others:
            self._settle(self._head.lstrip())
            self._head = _beginning(line)

    def _requests(self, message: object) -> tuple[str, ...]:
        """The ids of the requests in what is said at once."""
        if not isinstance(message, list):
            self._takes_batches = self._takes_batches or _wants_batches(message)
            request_id = _request_id(message)
            return () if request_id is None else (request_id,)
        batch = cast("list[object]", message)
        # Others are refused as a whole.
        if not self._takes_batches or len(batch) > _MAX_BATCH:
            return ()
        return tuple(request_id for each in batch if (request_id := _request_id(each)) is not None)

    def _settle(self, head: bytes) -> None:
        is_batch = head.startswith(b"[")
        for answer in _ANSWER.finditer(head) if is_batch else filter(None, [_ANSWER.match(head)]):
            requests = self._waiting.get(json.dumps(json.loads(answer[1])))
            if requests is not None:
                for each in requests:
                    self._waiting.pop(each, None)
                # What stands behind it may only look like an answer.
                return

    def farewell(self) -> bytes:
        """An error for each request that nobody will answer any more, each on a line; those of a batch on one."""
        error = {"code": -32000, "message": "the Pegboard gateway has ended; this request may have been carried out"}
        lines: dict[tuple[str, ...], list[dict[str, object]]] = {}
        for request_id, requests in list(self._waiting.items()):
            answer: dict[str, object] = {"jsonrpc": "2.0", "id": json.loads(request_id), "error": error}
            lines.setdefault(requests, []).append(answer)
        said = [json.dumps(line if len(requests) > 1 else line[0]).encode() for requests, line in lines.items()]
        return b"".join([b"\n"[: len(self._head)], *(line + b"\n" for line in said)])


def _beginning(line: bytes) -> bytes:
    return line[: _BATCH_HEAD if line.lstrip().startswith(b"[") else _HEAD]


def _wants_batches(message: object) -> bool:
    found = cast("dict[str, object]", message) if isinstance(message, dict) else {}
    params = found.get("params")
    wanted = cast("dict[str, object]", params).get("protocolVersion") if isinstance(params, dict) else None
    return found.get("method") == "initialize" and wanted == _BATCH_VERSION


def _request_id(message: object) -> str | None:
    """The id of a request, as JSON; `None` if it is none."""
    found = cast("dict[str, object]", message) if isinstance(message, dict) else {}
    request_id = found.get("id")
    return json.dumps(request_id) if "method" in found and isinstance(request_id, (str, int)) else None


def _reach(config: Path, said: dict[str, str | None]) -> socket.socket | None:
    """A gateway that proves to be the one which wrote its run file: its port may be somebody else's by now."""
    from pegboard.config.runfile import find_gateways, forget

    for file, gateway in find_gateways(config):
        try:
            link = socket.create_connection(("127.0.0.1", gateway.bridge), timeout=2)
        except ConnectionRefusedError:
            forget(file)
            continue
        except (OSError, OverflowError):
            continue
        try:
            _introduce(link, gateway.token, said)
        except OSError:
            link.close()
            continue
        return link
    return None


def _introduce(link: socket.socket, token: str, said: dict[str, str | None]) -> None:
    challenge = secrets.token_hex(16).encode()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(challenge + b"\n")
    proof, _, theirs = _first_line(link).partition(b" ")
    if not hmac.compare_digest(proof, prove(token, "gateway", challenge)):
        raise OSError("another program answers there")
    link.sendall(prove(token, "bridge", theirs) + b"\n" + json.dumps(said).encode() + b"\n")
    link.settimeout(None)


def _first_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < 200:
        part = link.recv(1)
        if not part:
            break
        line += part
    return line.strip()


def _pump_input(link: socket.socket, traffic: _Traffic) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(sys.stdin.fileno(), 65536):
            # Noted before it is sent: the answer may be there before we are back.
            traffic.note_sent(data)
            link.sendall(data)
        traffic.input_ended = True
        link.shutdown(socket.SHUT_WR)
