"""The gateway over stdio: a client's own process, with nothing but protocol on its output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pegboard.auth.authenticator import Authenticator
from pegboard.board import Board
from pegboard.clients.cache import ClientCache
from pegboard.clients.endpoint import Endpoint, PipeEndpoint
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.entrance import late_entrance
from pegboard.gateway.fastpath.pipe import PipeFastPath
from pegboard.gateway.fastpath.rules import FastPath, is_open
from pegboard.gateway.garbage import short_collections
from pegboard.gateway.mcp import McpHandlers
from pegboard.gateway.pipe_client import PipeClient
from pegboard.pins.watch import PinWatch
from pegboard.protocol.message import MAX_BODY


async def serve_stdio(
    board: Board, config_path: Path, endpoint: Endpoint, login_command: Callable[[str], str] | None = None
) -> None:
    """Serve one client until it closes our input, or a signal says stop. `login_command` signs in to a server from any
    shell: nobody can from here."""
    if login_command is not None:
        board.sign_in_advice.login_command = login_command
    out = _claim_output()
    config = ConfigFile(board, config_path)
    # Whoever starts us is the user that we run as, for whom there may be a rule.
    authenticator = Authenticator(
        lambda: board.settings, on_successor=board.relay.sessions.bind, sight_of=board.discovery.own.sight
    )
    board.on_apply = authenticator.apply
    pipe = PipeEndpoint(endpoint, lambda: authenticator.local)
    async with board, short_collections():
        front = McpHandlers(board)
        fast_path = PipeFastPath(front, ClientCache(), FastPath(board, front), pipe) if is_open() else None
        client = PipeClient(_Writer(out).write, late_entrance(front, pipe), fast_path, before_sdk=True)
        serving = asyncio.get_running_loop().create_task(client.serve())
        watching = asyncio.get_running_loop().create_task(config.watch())
        following = asyncio.get_running_loop().create_task(PinWatch(board.pins, board.review_definitions).run())
        reading = asyncio.get_running_loop().create_task(_read_input(client))
        _stop_on_signal(serving)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await serving
        finally:
            for task in (watching, following, reading):
                task.cancel()


async def _read_input(client: PipeClient) -> None:
    """Lines from a thread: input may be a pipe, a terminal or a file, and only a thread can read all three."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(maxsize=256)

    def read() -> None:
        source = sys.stdin.buffer
        while line := source.readline(MAX_BODY + 1):
            if len(line) > MAX_BODY and not line.endswith(b"\n"):
                while (rest := source.readline(MAX_BODY)) and not rest.endswith(b"\n"):
                    pass
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()

    def read_until_closed() -> None:
        # The loop may end while a line is on its way.
        with contextlib.suppress(RuntimeError, asyncio.CancelledError, ValueError, OSError):
            read()

    threading.Thread(target=read_until_closed, name="stdin", daemon=True).start()
    try:
        while line := await lines.get():
            if len(line) > MAX_BODY:
                await client.too_long()
            elif line.strip():
                await client.line(line)
    finally:
        # Whatever goes wrong here, nobody is left waiting.
        await client.end()


def _claim_output() -> int:
    """Keep the client's end for ourselves: a stray print, ours or a library's, must not end up in the protocol."""
    private = os.dup(1)
    os.set_inheritable(private, False)
    os.dup2(2, 1)
    return private


class _Writer:
    """Writes from a thread of its own, which nobody waits for: a client that does not read must not hold us up."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    async def write(self, text: bytes) -> None:
        """Write one line; returns once the client's end has taken it."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((text, written))
        await written

    def _run(self) -> None:
        # The loop may be gone by the time a line is through, and so may the client.
        with contextlib.suppress(RuntimeError, OSError):
            while True:
                text, written = self._lines.get()
                data = memoryview(text + b"\n")
                while data:
                    data = data[os.write(self._out, data) :]
                self._loop.call_soon_threadsafe(_settle, written)


def _settle(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _stop_on_signal(task: asyncio.Task[None]) -> None:
    if sys.platform == "win32":
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A background job is started with SIGINT ignored, one under nohup with SIGHUP.
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
