"""uvicorn's protocol with bounds: what a connection may send, and how long it may keep us waiting.

uvicorn reads a head of any size, waits for ever for the rest of a request (slowloris), and keeps an answer for a client
that never reads it. Built on inner parts of its `HttpToolsProtocol`, which `tests/gateway` watches.
"""

from __future__ import annotations

import asyncio
import json
import math
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pegboard.clients.locality import share_holder
from pegboard.clients.peer_user import PEER_KEY, Peer
from pegboard.gateway.shares import Shares, files_limit
from pegboard.protocol.message import MAX_BODY
from pegboard.result import ToolError, ToolErrorCode, ToolResult

MAX_HEAD = 64 * 1024
MAX_HEADERS = 128
# Each costs as much as any other, however little is in it.
MAX_CHUNKS = 8192
# What a request may have on the wire, with all that comes between the parts of its body.
_MAX_MESSAGE = 8 * MAX_BODY
# Seconds. Longer than clients keep an idle connection (Go: 90), so that it is the client who closes it: a request that
# crosses our closing is lost.
KEEP_ALIVE = 120
SWEEP_EVERY = 5.0
# How many sweeps a client may take: for a head; for the next bytes of a body; for the next bytes of an answer.
_HEAD_SWEEPS, _BODY_SWEEPS, ANSWER_SWEEPS = 6, 6, 12
# Each of so many bytes of a body (with whatever is around it) makes its time longer by a sweep, up to five minutes.
LEAST_PROGRESS = 2500
MOST_BODY_SWEEPS = 60


class _Refused(Exception):  # noqa: N818  it says what became of the request
    """A request that is not read any further."""


class Connections:
    """Every open connection of a gateway."""

    def __init__(self) -> None:
        self.open: set[BoundedProtocol] = set()
        self.shares = Shares.of(files_limit())
        # The oldest first.
        self._held: dict[str, dict[BoundedProtocol, None]] = {}

    def admit(self, connection: BoundedProtocol) -> bool:
        """Count a new connection, if its address has any left. One that has sent no whole head makes room for it, or
        the one that is idle the longest."""
        held = self._held.setdefault(connection.holder, {})
        if len(held) >= self.shares.of_holder(connection.holder):
            idle = min((each for each in held if each.is_idle), key=lambda each: each.idle_until, default=None)
            giver = next((each for each in held if each.is_waiting), idle)
            if giver is None:
                return False
            self.remove(giver)
            giver.transport.abort()
            held = self._held.setdefault(connection.holder, {})
        held[connection] = None
        self.open.add(connection)
        return True

    def remove(self, connection: BoundedProtocol) -> None:
        """A connection is gone."""
        self.open.discard(connection)
        if (held := self._held.get(connection.holder)) is not None:
            held.pop(connection, None)
            if not held:
                del self._held[connection.holder]

    async def watch(self) -> None:
        """Sweep now and then, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            self.sweep()

    def sweep(self) -> None:
        """Close what has kept us waiting for too long. One look at all of them, so that a request sets no timer."""
        for connection in list(self.open):
            connection.sweep()


class BoundedProtocol(HttpToolsProtocol):
    """One connection; a request's trailers are dropped, since nobody may say in them what its head should have said."""

    all_connections: Connections
    # Whether a head is being read (it is from the moment of connecting), and whether a body is.
    _in_head, _in_body = True, False
    # Bytes of the read under way, of the reads behind the one in which the request began, and of all.
    _read_size = _later_size = _received = 0
    # How many chunks of a body have come, where it comes in chunks.
    _chunks = 0
    _refusal = HTTPStatus.BAD_REQUEST
    # Whose share of the connections it counts for, and whose it is.
    holder = ""
    peer: Peer
    # The request that the last sweep saw, and how many have seen its body.
    _scope_before: object = None
    _body_sweeps = 0
    # What the last sweep saw, and how many sweeps have seen no progress.
    _received_before = _unsent_before = _stalled_reads = _stalled_writes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A client has connected."""
        super().connection_made(transport)
        self.holder = share_holder(self.client[0] if self.client else "")
        self.peer = Peer(self.client, cast("tuple[str, int] | None", self.server))
        if not self.all_connections.admit(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.all_connections.remove(self)
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether no whole head has come of a first request."""
        return self._in_head and cast("Any", self.cycle) is None

    @property
    def is_idle(self) -> bool:
        """Whether it is kept for a next request."""
        return self.timeout_keep_alive_task is not None and not self._in_body

    @property
    def idle_until(self) -> float:
        """When it is closed if there is no next request."""
        return self.timeout_keep_alive_task.when() if self.timeout_keep_alive_task is not None else math.inf

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request, or of several."""
        self._read_size = size = len(data)
        self._later_size += size
        self._received += size
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as exc:
            self._read_without_upgrade(memoryview(data)[exc.args[0] :])
        except httptools.HttpParserError:
            self._refuse_nonsense()
        # A single header, or a trailer, is told of only once it is complete.
        if self._later_size > MAX_HEAD and (self._in_head or self._later_size > _MAX_MESSAGE):
            self._refuse(_HEAD_TOO_LARGE if self._in_head else _TOO_LARGE)

    def _read_without_upgrade(self, rest: memoryview) -> None:
        """Go on with a request that asks for an upgrade as if it did not (RFC 9110, section 7.8). The parser takes what
        comes behind its head for another protocol's, and uvicorn takes it for the next request; it is the body."""
        try:
            self._read_head_again()
            while rest:
                try:
                    self.parser.feed_data(rest)
                    return
                except httptools.HttpParserUpgrade as exc:
                    rest = rest[exc.args[0] :]
                    self._read_head_again()
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse_nonsense()

    def _read_head_again(self) -> None:
        """Read the head that is there once more, without its wish for another protocol."""
        parser, headers = cast("Any", self.parser), self.headers
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self.url, parser.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def _refuse_nonsense(self) -> None:
        self.logger.warning(_NO_HTTP)
        self.send_400_response(_NO_HTTP)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[PEER_KEY] = self.peer
        self._in_head, self._later_size, self._stalled_reads, self._chunks = True, 0, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; a trailer is none. What uvicorn does, without another call for each."""
        if not self._in_head:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """A head is there. One that asks for another protocol is read once more."""
        self.end_head()
        if not cast("Any", self.parser).should_upgrade():
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """A chunk of a body begins."""
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            self._refusal = _TOO_LARGE
            raise _Refused

    def on_message_complete(self) -> None:
        """A request is there."""
        self.end_body()
        if not cast("Any", self.parser).should_upgrade():
            super().on_message_complete()

    def end_head(self) -> None:
        """From here on a body is read; a head that is too large ends the request."""
        self._in_head, self._in_body, self._stalled_reads = False, True, 0
        if len(self.headers) > MAX_HEADERS or (
            self._later_size + self._read_size > MAX_HEAD and self._head_size() > MAX_HEAD
        ):
            self._refusal = _HEAD_TOO_LARGE
            raise _Refused

    def end_body(self) -> None:
        """From here on nothing is read, until the next request begins."""
        self._in_body = False
        self._later_size = 0

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one that is out of bounds, in the one shape of errors, and close."""
        self._refuse(self._refusal, msg)

    def _refuse(self, status: HTTPStatus, reason: str = "") -> None:
        if self.transport.is_closing():
            return
        reason = _REASONS.get(status, reason)
        if self._chunks > MAX_CHUNKS:
            reason = f"a request's body may come in {MAX_CHUNKS:,} chunks at most"
        code = ToolErrorCode.UNAVAILABLE if status == HTTPStatus.SERVICE_UNAVAILABLE else ToolErrorCode.INVALID_INPUT
        failure = ToolResult[None].failed(ToolError(code, reason)).to_dict()
        body = json.dumps(failure).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def sweep(self) -> None:
        """Close the connection if its client has not sent, or not read, anything for too long."""
        self._sweep_reads()
        self._sweep_writes()

    def _sweep_reads(self) -> None:
        moved, self._received_before = self._received != self._received_before, self._received
        # All of a head has one time limit: a byte now and then does not make it longer. It is our own doing that we
        # do not read on while another request of this connection is answered.
        stalled = self._in_head or (self._in_body and not moved)
        self._stalled_reads = self._stalled_reads + 1 if stalled and not self.flow.read_paused else 0
        if self._stalled_reads > (_HEAD_SWEEPS if self._in_head else _BODY_SWEEPS) or self._trickles():
            self._time_out()

    def _trickles(self) -> bool:
        """Whether a body has taken longer than all that came of it allows."""
        if self.scope is not self._scope_before:
            self._scope_before, self._body_sweeps = self.scope, 0
        if self._in_body and not self.flow.read_paused:
            self._body_sweeps += 1
        allowed = min(_BODY_SWEEPS + self._later_size // LEAST_PROGRESS, MOST_BODY_SWEEPS)
        return self._in_body and self._body_sweeps > allowed

    def _time_out(self) -> None:
        # Nobody reads an answer to nothing, and one that has begun, or is another request's, cannot become this one.
        cycle = cast("Any", self.cycle)
        is_another = self._in_head and cycle is not None and not cycle.response_complete
        if not self._received or is_another or (self._in_body and self._has_begun_answer()):
            self.transport.close()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _has_begun_answer(self) -> bool:
        """Whether the request whose body is read is being answered already."""
        cycle = cast("Any", self.cycle)
        return cycle is not None and cycle.response_started

    def _sweep_writes(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._stalled_writes = self._stalled_writes + 1 if unsent and unsent == self._unsent_before else 0
        self._unsent_before = unsent
        if self._stalled_writes > ANSWER_SWEEPS:
            # To close would be to wait for the client to read.
            self.transport.abort()

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


_NO_HTTP = "Invalid HTTP request received."
_HEAD_TOO_LARGE, _TOO_LARGE = HTTPStatus(431), HTTPStatus(413)
_REASONS = {
    _HEAD_TOO_LARGE: f"a request's head may have {MAX_HEADERS} headers and {MAX_HEAD:,} bytes at most",
    _TOO_LARGE: f"a request may have {MAX_BODY:,} bytes at most",
    HTTPStatus.SERVICE_UNAVAILABLE: "too many connections are open from this address: close some, or use them again",
    HTTPStatus.REQUEST_TIMEOUT: "the request did not come to its end in time",
}


def protocol_for(base: type[BoundedProtocol], **attributes: object) -> type[BoundedProtocol]:
    """A protocol for uvicorn, which makes an object of it for each connection."""
    return type(base.__name__, (base,), attributes)
