"""A thin HTTP/1.1 client for one origin: kept connections, and answers that come by callbacks, without a task each."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

import httptools

# Connections to one server at most; who comes when all are busy waits for the next that is free.
MAX_CONNECTIONS = 256
_MAX_IDLE = 64
_IDLE_LIMIT = 30.0
_MAX_HEAD = 64 * 1024
_MAX_INFLATED_AT_ONCE = 1024 * 1024
_NO_MORE = "the connection was closed before the answer came"


class Broken(Exception):  # noqa: N818  it says what the exchange is
    """An exchange that came to nothing: no connection could be made (`refused`), or it broke."""

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


class Taker(Protocol):
    """Who takes the answer of one exchange; after `done` or `failed` nothing more comes."""

    def head(self, status: int, headers: dict[str, str]) -> None: ...

    def data(self, part: bytes) -> None: ...

    def done(self) -> None: ...

    def failed(self, error: Broken) -> None: ...


class Exchange:
    """One request that was handed to a pool."""

    __slots__ = ("data", "line", "over", "taker")

    def __init__(self, data: bytes, taker: Taker) -> None:
        self.data = data
        self.taker = taker
        self.line: Line | None = None
        self.over = False

    def abandon(self) -> None:
        """Nobody wants the answer any more: the connection that it would come on is closed."""
        if not self.over:
            self.over = True
            if self.line is not None:
                self.line.abort()

    def pause(self) -> None:
        """Let the other end wait with what it sends."""
        if self.line is not None:
            self.line.pause()

    def resume(self) -> None:
        """Take up what it sends again."""
        if self.line is not None:
            self.line.resume()

    def fail(self, error: Broken) -> None:
        """Tell the taker that nothing comes of it."""
        if not self.over:
            self.over = True
            self.taker.failed(error)


class Line(asyncio.Protocol):
    """One connection, with one exchange on it at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._in_body = False
        # zlib has no public name for its type.
        self._inflating: Any = None
        self._paused = False
        self.idle_until = 0.0

    @property
    def usable(self) -> bool:
        """Whether another request can go out on it."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, exchange: Exchange) -> None:
        """Send a request; its answer goes to its taker."""
        assert self._transport is not None
        self._exchange = exchange
        exchange.line = self
        self._transport.write(exchange.data)
        # The bytes are on their way: what waits for the answer need not hold them.
        exchange.data = b""

    def abort(self) -> None:
        """Close at once."""
        self._exchange = None
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close what nobody uses."""
        if self._transport is not None:
            self._transport.close()

    def pause(self) -> None:
        """Read no further."""
        if self.usable and not self._paused:
            self._paused = True
            cast("asyncio.Transport", self._transport).pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self.usable and self._paused:
            self._paused = False
            cast("asyncio.Transport", self._transport).resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; an answer without a length ends with it."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not exchange.over:
            if self._in_body and exc is None and self._ends_with_connection():
                exchange.over = True
                exchange.taker.done()
            else:
                exchange.fail(Broken(str(exc) if exc is not None and str(exc) else _NO_MORE))
        self._transport = None
        self._pool.gone(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer; what nobody asked for ends the connection."""
        if self._exchange is None:
            self.abort()
            return
        if not self._in_body:
            self._head_size += len(data)
            if self._head_size > _MAX_HEAD and b"\r\n\r\n" not in data:
                self._spoiled("its headers do not end")
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, zlib.error) as exc:
            self._spoiled(f"it does not speak HTTP/1.1 ({type(exc).__name__})")

    def on_message_begin(self) -> None:
        """An answer begins."""
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; of one that comes more than once, all values count."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        before = self._headers.get(key)
        self._headers[key] = text if before is None else f"{before}\n{text}" if key == "set-cookie" else before

    def on_headers_complete(self) -> None:
        """The answer's head is there."""
        status = self._parser.get_status_code()
        if status < 200 or self._exchange is None:
            # "Go on" and its like: the answer proper is still to come.
            return
        self._in_body = True
        coding = self._headers.get("content-encoding", "").strip().lower()
        self._inflating = zlib.decompressobj(47) if coding in {"gzip", "x-gzip", "deflate"} else None
        self._exchange.taker.head(status, self._headers)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._exchange is None or not self._in_body:
            return
        if self._inflating is None:
            self._exchange.taker.data(body)
            return
        exchange = self._exchange
        while body and not exchange.over:
            part = self._inflating.decompress(body, _MAX_INFLATED_AT_ONCE)
            body = self._inflating.unconsumed_tail
            if part:
                exchange.taker.data(part)

    def on_message_complete(self) -> None:
        """The answer is complete; the connection is free for the next one."""
        if not self._in_body:
            return
        self._in_body, self._head_size = False, 0
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        self.resume()
        if self._parser.should_keep_alive() and self.usable:
            self._pool.freed(self, _kept_for(self._headers))
        else:
            self.close()
        if not exchange.over:
            exchange.over = True
            exchange.taker.done()

    def _ends_with_connection(self) -> bool:
        return "content-length" not in self._headers and "chunked" not in self._headers.get("transfer-encoding", "")

    def _spoiled(self, reason: str) -> None:
        exchange, self._exchange = self._exchange, None
        self.abort()
        if exchange is not None:
            exchange.fail(Broken(reason))


class Pool:
    """The connections to one origin."""

    def __init__(
        self, host: str, port: int, *, tls: Callable[[], ssl.SSLContext] | None, connect_timeout: float | None
    ) -> None:
        self._host, self._port = host, port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._loop = asyncio.get_running_loop()
        self._lines: set[Line] = set()
        self._idle: list[Line] = []
        self._waiting: deque[Exchange] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    def send(self, data: bytes, taker: Taker) -> Exchange:
        """Send a request on a connection that is free, or as soon as one is."""
        exchange = Exchange(data, taker)
        if self._closed:
            raise Broken("the connection was closed by Pegboard")
        while self._idle:
            # The one that was used last is the least likely to have been given up by the other end.
            line = self._idle.pop()
            if line.usable and self._loop.time() < line.idle_until:
                line.begin(exchange)
                return exchange
            line.close()
        self._waiting.append(exchange)
        if len(self._lines) + len(self._connecting) < MAX_CONNECTIONS:
            self._connect()
        return exchange

    def freed(self, line: Line, kept_for: float) -> None:
        """A connection can take the next request."""
        if (exchange := self._next()) is not None:
            line.begin(exchange)
        elif self._closed or len(self._idle) >= _MAX_IDLE:
            line.close()
        else:
            line.idle_until = self._loop.time() + kept_for
            self._idle.append(line)
            if self._sweep is None:
                self._sweep = self._loop.call_later(_IDLE_LIMIT, self._drop_old)

    def gone(self, line: Line) -> None:
        """A connection has ended; whoever waits for one needs another."""
        self._lines.discard(line)
        if line in self._idle:
            self._idle.remove(line)
        if self._waiting and not self._closed and len(self._connecting) < len(self._waiting):
            self._connect()

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for task in list(self._connecting):
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        for line in list(self._lines):
            line.close() if line in self._idle else line.abort()
        while (exchange := self._next()) is not None:
            exchange.fail(Broken("the connection was closed by Pegboard"))

    def _next(self) -> Exchange | None:
        while self._waiting:
            exchange = self._waiting.popleft()
            if not exchange.over:
                return exchange
        return None

    def _connect(self) -> None:
        task = self._loop.create_task(self._connected())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connected(self) -> None:
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, line = await self._loop.create_connection(
                    lambda: Line(self),
                    self._host,
                    self._port,
                    ssl=self._tls() if self._tls is not None else None,
                    server_hostname=self._host if self._tls is not None else None,
                )
        except (OSError, TimeoutError) as exc:
            words = "no connection in time" if isinstance(exc, TimeoutError) else str(exc) or type(exc).__name__
            if (exchange := self._next()) is not None:
                exchange.fail(Broken(words, refused=True))
            return
        self._lines.add(line)
        self.freed(line, _IDLE_LIMIT)

    def _drop_old(self) -> None:
        self._sweep = None
        now = self._loop.time()
        for line in [line for line in self._idle if line.idle_until <= now]:
            self._idle.remove(line)
            line.close()
        if self._idle:
            self._sweep = self._loop.call_later(_IDLE_LIMIT, self._drop_old)


def _kept_for(headers: dict[str, str]) -> float:
    """How long the other end keeps a connection, less a moment for the way there."""
    for word in headers.get("keep-alive", "").split(","):
        name, _, value = word.strip().partition("=")
        if name.lower() == "timeout":
            with contextlib.suppress(ValueError):
                return min(max(float(value) - 1.0, 0.0), _IDLE_LIMIT)
    return _IDLE_LIMIT
