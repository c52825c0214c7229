"""The bridge: `pegboard stdio` beside a running `pegboard serve` hands its bytes on and does nothing else.

The gateway listens on a loopback port of its own for this, and takes only whoever knows the token that it
wrote into a file which the user alone can read. This side imports nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.front.lineway import LineWay
    from pegboard.protocol.client import Address
    from pegboard.protocol.gateway import GatewayServer
    from pegboard.protocol.lines import LineClient

_MAX_LINE = 4 * 1024 * 1024


@contextlib.asynccontextmanager
async def bridgehead(
    server: GatewayServer, shortcut: Callable[[Address], LineWay | None]
) -> AsyncGenerator[dict[str, object]]:
    """The gateway's side: gives what a bridge has to know."""
    token = secrets.token_hex(16)
    clients: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(_serve(server, shortcut, token, reader, writer))
        clients.add(task)
        task.add_done_callback(clients.discard)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_MAX_LINE)
    try:
        yield {"bridge": listener.sockets[0].getsockname()[1], "token": token}
    finally:
        listener.close()
        for task in list(clients):
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


async def _serve(
    server: GatewayServer,
    shortcut: Callable[[Address], LineWay | None],
    token: str,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    from pegboard.front.entrance import entrance
    from pegboard.names import is_board_name
    from pegboard.protocol.client import Address
    from pegboard.protocol.lines import LineClient

    async def write(text: bytes) -> None:
        writer.write(text + b"\n")
        await writer.drain()

    try:
        async with asyncio.timeout(5):
            if not await _acquainted(token, reader, writer):
                return
            said = json.loads(await reader.readline())
        name, workspace = said.get("board"), said.get("workspace")
        query = {"workspace": workspace} if isinstance(workspace, str) else {}
        address = Address(query, name if isinstance(name, str) and is_board_name(name) else None)
        client = LineClient(write, entrance(server, address), shortcut(address))
        reading = asyncio.get_running_loop().create_task(_read(client, reader))
        try:
            await client.serve()
        finally:
            reading.cancel()
    except (TimeoutError, ConnectionError, ValueError, AttributeError):
        pass
    finally:
        writer.close()


async def _acquainted(token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Each side proves that it knows the token, and neither says it."""
    challenge = (await reader.readline()).strip()
    own = secrets.token_hex(16).encode()
    writer.write(_proof(token, b"gateway", challenge) + b" " + own + b"\n")
    await writer.drain()
    return hmac.compare_digest((await reader.readline()).strip(), _proof(token, b"bridge", own))


def _proof(token: str, side: bytes, challenge: bytes) -> bytes:
    return hmac.new(token.encode(), side + b" " + challenge, "sha256").hexdigest().encode()


async def _read(client: LineClient, reader: asyncio.StreamReader) -> None:
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


def cross(run_file: Path, board: str | None = None, workspace: str | None = None) -> bool:
    """The client's side: hand bytes on until one end closes; false if there is no gateway to hand them to."""
    link = _reach(run_file, {"board": board, "workspace": workspace})
    if link is None:
        return False
    threading.Thread(target=_pump_input, args=(link,), daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        while data := link.recv(65536):
            view = memoryview(data)
            while view:
                view = view[os.write(out, view) :]
    return True


def _reach(run_file: Path, said: dict[str, str | None]) -> socket.socket | None:
    """A gateway that proves to be the one which wrote the file: its port may be somebody else's by now."""
    try:
        known = json.loads(run_file.read_text("utf-8"))
        link = socket.create_connection(("127.0.0.1", int(known["bridge"])), timeout=2)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    try:
        token, challenge = str(known["token"]), secrets.token_hex(16).encode()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(challenge + b"\n")
        proof, _, theirs = _first_line(link).partition(b" ")
        if not hmac.compare_digest(proof, _proof(token, b"gateway", challenge)):
            raise OSError("somebody else answers there")
        link.sendall(_proof(token, b"bridge", theirs) + b"\n" + json.dumps(said).encode() + b"\n")
        link.settimeout(None)
    except (OSError, KeyError):
        link.close()
        return None
    return link


def _first_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < 200:
        part = link.recv(1)
        if not part:
            break
        line += part
    return line.strip()


def _pump_input(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(sys.stdin.fileno(), 65536):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)
