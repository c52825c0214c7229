"""The connection pool of one origin: a thin HTTP/1.1 client whose answers come by callbacks, without a task each."""

from __future__ import annotations

import asyncio
import select
import ssl
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast

import httptools

from pegboard.servers.backlog import Backlog
from pegboard.servers.fair_queue import FairQueue
from pegboard.servers.http.decompress import CODINGS, Decompressor
from pegboard.servers.http.happy_eyeballs import Admit, connect, describe_failure
from pegboard.servers.http.repeated_headers import join_header
from pegboard.servers.limit import Limit
from pegboard.task_set import TaskSet

# Connections to one server at most; who comes when all are busy waits for the next that is free. Principals take turns.
MAX_CONNECTIONS = 256
# Those that a burst has opened are closed when they have been idle for a while, not at its first lull.
_MAX_IDLE = MAX_CONNECTIONS
_IDLE_LIMIT = 30.0
_MAX_HEAD = 64 * 1024
# As much is parsed in one step: a chunk of the other end's may be a single byte.
_PORTION = 16 * 1024
_NO_MORE = "the connection was closed before the answer came"
_CLOSED = "the connection was closed by Pegboard"


class ConnectionFailed(Exception):  # noqa: N818  it says what the exchange is
    """An exchange that came to nothing: no connection could be made (`refused`), or it broke."""

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


class ResponseHandler(Protocol):
    """Who takes the answer of one exchange; after `done` or `failed` nothing more comes.

    What is to be done about a part of its body is an iterator of small steps.
    """

    @property
    def principal_id(self) -> str:
        """Whom the request is for; empty for one of Pegboard's own."""
        ...

    def on_head(self, status: int, headers: dict[str, str]) -> None: ...

    def on_data(self, part: bytes) -> Iterable[object]: ...

    def on_complete(self) -> None: ...

    def on_failure(self, error: ConnectionFailed) -> None: ...


class _Nobody:
    """Handles what still comes of an exchange that is over."""

    principal_id = ""

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        """Nobody looks."""

    def on_data(self, part: bytes) -> Iterable[object]:
        """Nobody reads."""
        del part
        return ()

    def on_complete(self) -> None:
        """It is over already."""

    def on_failure(self, error: ConnectionFailed) -> None:
        """It is over already."""


_NOBODY = _Nobody()


class Exchange:
    """One request that was handed to a pool."""

    __slots__ = ("connection", "data", "handler", "over")

    def __init__(self, data: bytes, handler: ResponseHandler) -> None:
        self.data = data
        self.handler = handler
        self.connection: HttpConnection | None = None
        self.over = False

    def abandon(self) -> None:
        """Nobody wants the answer any more: the connection that it would come on is closed."""
        if not self.over:
            self.over = True
            # It may stand in the queue for a while yet, and need not hold its request there.
            self.data = b""
            if self.connection is not None:
                self.connection.abort()

    def pause(self) -> None:
        """Let the other end wait with what it sends."""
        if self.connection is not None and not self.over:
            self.connection.pause()

    def resume(self) -> None:
        """Take up what it sends again; once it is over, the connection is another's business."""
        if self.connection is not None and not self.over:
            self.connection.resume()

    def finish(self) -> None:
        """Tell the handler that it has all of the answer."""
        if not self.over:
            self._settle().on_complete()

    def fail(self, error: ConnectionFailed) -> None:
        """Tell the handler that nothing comes of it."""
        if not self.over:
            self._settle().on_failure(error)

    def _settle(self) -> ResponseHandler:
        """It is over. A handler knows its exchange: each would keep the other until the garbage collector comes."""
        self.over = True
        handler, self.handler = self.handler, _NOBODY
        return handler


class HttpConnection(asyncio.Protocol):
    """One connection, with one exchange on it at a time."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        # Tells whether bytes have come that the loop has yet to read.
        self._incoming: select.poll | None = None
        self._exchange: Exchange | None = None
        self._headers: dict[str, str] = {}
        # How much came since the last byte that anybody was given.
        self._unheard = 0
        self._in_body = False
        self._complete = False
        self._keeps_alive = False
        self._inflating: Decompressor | None = None
        # Parts of the body that were parsed, but not yet handed on.
        self._parts: list[bytes] = []
        self._backlog = Backlog(self._pause_reading, self._resume_reading)
        self.idle_until = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether another request can go out on it."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come that the loop has yet to see: on a kept connection, that is its end."""
        return self._incoming is None or not self._incoming.poll(0)

    def begin(self, exchange: Exchange) -> None:
        """Send a request; its answer goes to its handler."""
        assert self._transport is not None
        self._exchange = exchange
        exchange.connection = self
        self._transport.write(exchange.data)
        # The bytes are on their way: what waits for the answer need not hold them.
        exchange.data = b""

    def abort(self) -> None:
        """Close at once."""
        self._exchange = None
        self._backlog.clear()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close what nobody uses."""
        if self._transport is not None:
            self._transport.close()

    def break_off(self, reason: str) -> None:
        """Close at once, and tell whoever waits for the answer why."""
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.fail(ConnectionFailed(reason))

    def pause(self) -> None:
        """Read no further."""
        self._backlog.hold()

    def resume(self) -> None:
        """Read on."""
        self._backlog.release()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        if sys.platform != "win32":
            self._incoming = select.poll()
            self._incoming.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; whoever waits for an answer hears of it after all that came."""
        self._backlog.then(lambda: self._end(exc))
        self._transport = None
        self._pool.discard(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer; what nobody asked for ends the connection."""
        if self._exchange is None:
            self.abort()
            return
        if len(data) > _PORTION or not self._backlog.is_idle:
            self._backlog.add(self._parse_in_steps(data))
            return
        # One step, which nearly always is all of the answer: it needs no turn of its own.
        error = self._parse(data)
        work = self._pass_body()
        if work or not self._backlog.is_idle:
            self._backlog.add(self._conclude_after(work, error))
        else:
            self._conclude(error, is_last=True)

    def on_message_begin(self) -> None:
        """An answer begins; one that nobody asked for must never be taken for that of the next request."""
        if self._complete:
            raise httptools.HttpParserError("more than was asked for")
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; of one that comes more than once, the first counts, but all cookies and challenges do."""
        if self._in_body:
            # What comes behind the body has no say about it.
            return
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip()
        self._headers[key] = join_header(key, self._headers.get(key), text)

    def on_headers_complete(self) -> None:
        """The answer's head is there."""
        status = self._parser.get_status_code()
        if status < 200 or self._exchange is None:
            # "Go on" and its like: the answer proper is still to come.
            return
        self._in_body, self._unheard = True, 0
        self._inflating = Decompressor() if self._headers.get("content-encoding", "").lower() in CODINGS else None
        self._exchange.handler.on_head(status, self._headers)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._unheard = 0
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """The answer is complete; what is done about it has to wait until all bytes that came were looked at."""
        if self._in_body:
            self._complete, self._keeps_alive = True, self._parser.should_keep_alive()

    def _parse_in_steps(self, data: bytes) -> Iterator[object]:
        """Parse what came, in steps, each with the work that it makes."""
        for start in range(0, len(data), _PORTION):
            error = self._parse(data if len(data) <= _PORTION else data[start : start + _PORTION])
            yield from self._pass_body()
            yield None
            if self._conclude(error, is_last=start + _PORTION >= len(data)):
                return

    def _conclude_after(self, work: Iterable[object], error: Exception | None) -> Iterator[object]:
        yield from work
        yield None
        self._conclude(error, is_last=True)

    def _parse(self, portion: bytes) -> Exception | None:
        """Parse a portion; what is wrong with it is said once all that came before was handed on."""
        self._unheard += len(portion)
        try:
            self._parser.feed_data(portion)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            return exc
        return None

    def _conclude(self, error: Exception | None, *, is_last: bool) -> bool:
        """End the exchange, if it is over or cannot go on; whether it did."""
        if self._exchange is None:
            return True
        if self._complete:
            # What came behind it, nobody asked for.
            self._release(reusable=self._keeps_alive and error is None and is_last)
            return True
        if error is not None or self._unheard > _MAX_HEAD:
            said = f"it does not speak HTTP/1.1 ({type(error).__name__})" if error else "its headers do not end"
            self.break_off(said)
            return True
        return False

    def _pass_body(self) -> Iterable[object]:
        """Hand on what was parsed of the body; the work that is to be done about it."""
        if not self._parts or self._exchange is None:
            return ()
        parts, self._parts = self._parts, []
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._exchange.handler.on_data(body) if self._inflating is None else self._inflate(self._inflating, body)

    def _inflate(self, inflating: Decompressor, body: bytes) -> Iterator[object]:
        exchange = self._exchange
        assert exchange is not None
        try:
            for part in inflating.feed(body):
                yield from exchange.handler.on_data(part)
                yield None
                if exchange.over:
                    return
        except zlib.error:
            self.break_off("its compressed answer cannot be unpacked")

    def _end(self, exc: Exception | None) -> None:
        """The connection was lost; an answer without a length ends with it."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._in_body and exc is None and self._ends_with_connection():
            self._finish(exchange)
        else:
            exchange.fail(ConnectionFailed(str(exc) if exc is not None and str(exc) else _NO_MORE))

    def _pause_reading(self) -> None:
        if self.is_usable:
            cast("asyncio.Transport", self._transport).pause_reading()

    def _resume_reading(self) -> None:
        if self.is_usable:
            cast("asyncio.Transport", self._transport).resume_reading()

    def _release(self, *, reusable: bool) -> None:
        """The answer is there: the connection is free for the next one, unless something is odd about it."""
        exchange, self._exchange = self._exchange, None
        self._complete = self._in_body = False
        self._unheard = 0
        self._backlog.release()
        # A request that was answered before all of it was sent may never be read to its end.
        if reusable and self.is_usable and not cast("asyncio.Transport", self._transport).get_write_buffer_size():
            self._pool.release(self, keep_alive_seconds(self._headers))
        else:
            self.close()
        if exchange is not None:
            self._finish(exchange)

    def _finish(self, exchange: Exchange) -> None:
        if self._inflating is None or self._inflating.is_whole:
            exchange.finish()
        else:
            exchange.fail(ConnectionFailed("its compressed answer is incomplete"))

    def _ends_with_connection(self) -> bool:
        coding = self._headers.get("transfer-encoding", "").lower()
        return "content-length" not in self._headers and "chunked" not in coding


class ConnectionPool:
    """The connections to one origin."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: Callable[[], ssl.SSLContext] | None,
        connect_timeout: float | None,
        admit: Admit | None = None,
    ) -> None:
        self._host, self._port = host, port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._admit = admit
        self._loop = asyncio.get_running_loop()
        self._connections: set[HttpConnection] = set()
        self._idle: list[HttpConnection] = []
        self._waiting: FairQueue[Exchange] = FairQueue()
        self._connecting = TaskSet()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None

    def send(self, data: bytes, handler: ResponseHandler) -> Exchange:
        """Send a request on a connection that is free, or as soon as one is."""
        if self._closed:
            raise ConnectionFailed(_CLOSED)
        exchange = Exchange(data, handler)
        while self._idle:
            # The one that was used last is the least likely to have been given up by the other end.
            line = self._idle.pop()
            if line.is_usable and self._loop.time() < line.idle_until and line.is_quiet:
                line.begin(exchange)
                return exchange
            line.close()
        self._waiting.put(handler.principal_id, exchange)
        self._open_more()
        return exchange

    def release(self, line: HttpConnection, kept_for: float) -> None:
        """A connection can take the next request."""
        if (exchange := self._next()) is not None:
            line.begin(exchange)
        elif self._closed or len(self._idle) >= _MAX_IDLE:
            line.close()
        else:
            line.idle_until = self._loop.time() + kept_for
            self._idle.append(line)
            if self._sweep is None:
                self._sweep = self._loop.call_later(_IDLE_LIMIT, self._close_idle)

    def discard(self, line: HttpConnection) -> None:
        """A connection has ended; whoever waits for one needs another."""
        self._connections.discard(line)
        if line in self._idle:
            self._idle.remove(line)
        if self._emptied is not None and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)
        self._open_more()

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        await self._connecting.close()
        for line in list(self._connections):
            line.break_off(_CLOSED)
        while (exchange := self._next()) is not None:
            exchange.fail(ConnectionFailed(_CLOSED))
        if self._connections:
            self._emptied = self._loop.create_future()
            await self._emptied

    def _next(self) -> Exchange | None:
        while self._waiting:
            exchange = self._waiting.get()
            if not exchange.over:
                return exchange
        return None

    def _open_more(self) -> None:
        """Begin as many connections as are waited for, and allowed."""
        while (
            not self._closed
            and len(self._connecting) < len(self._waiting)
            and len(self._connections) + len(self._connecting) < MAX_CONNECTIONS
        ):
            # Whatever comes of it, others may still wait, and nobody else would begin a connection for them.
            self._connecting.spawn(self._connect()).add_done_callback(lambda _: self._open_more())

    async def _connect(self) -> None:
        try:
            tls = self._tls() if self._tls is not None else None
            name = self._host if tls is not None else None
            async with Limit(self._connect_timeout):
                sock = await connect(self._host, self._port, self._admit)
                _, line = await self._loop.create_connection(
                    lambda: HttpConnection(self), sock=sock, ssl=tls, server_hostname=name
                )
        except Exception as exc:
            # Of whatever kind it is, somebody waits to hear of it.
            self._fail_next(describe_failure(exc))
            return
        if line.is_usable:
            self._connections.add(line)
            self.release(line, _IDLE_LIMIT)
        else:
            self._fail_next("the connection was closed as soon as it was open")

    def _fail_next(self, reason: str) -> None:
        if (exchange := self._next()) is not None:
            exchange.fail(ConnectionFailed(reason, refused=True))

    def _close_idle(self) -> None:
        self._sweep = None
        now = self._loop.time()
        for line in [line for line in self._idle if line.idle_until <= now]:
            self._idle.remove(line)
            line.close()
        if self._idle:
            self._sweep = self._loop.call_later(_IDLE_LIMIT, self._close_idle)


def keep_alive_seconds(headers: dict[str, str]) -> float:
    """How long the other end keeps a connection, less a moment for the way there."""
    for word in headers.get("keep-alive", "").split(","):
        name, _, value = word.strip().partition("=")
        if name.lower() == "timeout" and value.isdecimal():
            return min(max(float(value) - 1.0, 0.0), _IDLE_LIMIT)
    return _IDLE_LIMIT
