"""A listener for tests of the HTTP client: answers with the very bytes that a test wants to see on the wire."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]


Script = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Listener:
    """Where it listens, and what it was asked."""

    script: Script
    port: int = 0
    connections: int = 0
    asked: list[Asked] = field(default_factory=list[Asked])
    # Connections that the client has ended, or that broke.
    ended: int = 0
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests until the connection ends."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        number = self.connections
        try:
            while (asked := await _request(reader, number)) is not None:
                self.asked.append(asked)
                await self.script(asked, writer)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            # It is over, one way or the other: streams complain about whatever else becomes of this.
            pass
        finally:
            self.ended += 1
            self._open.discard(task)
            writer.transport.abort()

    async def end(self) -> None:
        """End what is still open."""
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def listening(script: Script | bytes, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Listener]:
    """A listener on loopback, until the test is over."""
    listener = Listener(always(script) if isinstance(script, bytes) else script)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, ssl=tls)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await listener.end()


def always(answer: bytes) -> Script:
    """The same answer to whatever is asked."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return script


def in_turn(*answers: bytes) -> Script:
    """One answer after the other; the last one for the rest."""
    left = list(answers)

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return script


def ok(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An answer with a length."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def end(writer: asyncio.StreamWriter) -> None:
    """Say what was written, and close."""
    writer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let everybody else run until something is the case."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def _request(reader: asyncio.StreamReader, number: int) -> Asked | None:
    with suppress(asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8")
        line, *rest = head.split("\r\n")[:-2]
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Asked(line, headers, body, number)
    return None
