"""What a connection may send and how long it may keep the gateway waiting, on both paths."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import pytest

from auth.asking import open_session
from harness import LIMIT, Gateway, eventually, open_gateway, toy
from loopwatch import loopwatch
from pegboard.clients.locality import share_holder
from pegboard.gateway.bounds import (
    ANSWER_SWEEPS,
    LEAST_PROGRESS,
    MAX_CHUNKS,
    MAX_HEAD,
    MAX_HEADERS,
    MOST_BODY_SWEEPS,
    SWEEP_EVERY,
    BoundedProtocol,
)
from pegboard.gateway.shares import Shares
from pegboard.protocol.message import MAX_BODY

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]
SWEEPS = 20


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1000)
    own = writer.get_extra_info("sockname")[1]
    await eventually(lambda: own in {each.client[1] for each in gateway.front.connections.open if each.client})
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """The status and the error's code of an answer, after which the connection is closed."""
    async with asyncio.timeout(LIMIT):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


async def settled(gateway: Gateway) -> None:
    """Everything that was sent so far has been read."""
    async with connected(gateway) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(LIMIT):
            await reader.readline()


def sweep(gateway: Gateway) -> None:
    """As much time as any client has."""
    for _ in range(SWEEPS):
        gateway.front.connections.sweep()


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"X-%d: y\r\n" % number for number in range(MAX_HEADERS + 1)),
        b"X: " + b"y" * MAX_HEAD + b"\r\n",
        b"".join(b"X-%d: %b\r\n" % (number, b"y" * 1000) for number in range(100)),
    ],
    ids=["many", "one large", "large together"],
)
async def test_a_head_that_is_too_large_is_refused(tmp_path: Path, head: bytes) -> None:
    """431 in the one error shape, and the connection ends; up to the limit a request is answered."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        for path in (b"/mcp", b"/api/tools"):
            async with connected(gateway) as (reader, writer):
                writer.write(b"POST %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % (path, head))
                assert await answer(reader) == (431, "TOOL_INVALID_INPUT")
        async with connected(gateway) as (reader, writer):
            fine = b"".join(b"X-%d: y\r\n" % number for number in range(MAX_HEADERS - 1))
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % fine)
            assert b" 200 " in await reader.readline()


async def test_a_head_that_never_ends_takes_no_memory(tmp_path: Path) -> None:
    """One header that goes on and on is cut off, although the parser tells of it only at its end; so is a trailer."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        for beginning, most in (
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", 2**20),
            (b"POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", 2**26),
        ):
            async with connected(gateway) as (_, writer):
                writer.write(beginning)
                for _ in range(2 * most // 2**16):
                    writer.write(b"y" * 2**16)
                    # The gateway lives on the same loop; once it has closed, the transport does.
                    await asyncio.sleep(0)
                    if writer.transport.is_closing():
                        break
                assert writer.transport.is_closing()


@pytest.mark.parametrize(
    "sent", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: localh", b"POST /api/tools/x/call HTTP/1.1\r\n"]
)
async def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path, sent: bytes) -> None:
    """Slowloris: also a byte now and then buys no time. A connection that never sent anything is just closed."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(sent)
            await settled(gateway)
            for _ in range(5 if sent else 0):
                gateway.front.connections.sweep()
                writer.write(b"x")
                await settled(gateway)
            # Two more are enough for a head, and not for the next bytes of a body.
            for _ in range(2 if sent else SWEEPS):
                gateway.front.connections.sweep()
            async with asyncio.timeout(LIMIT):
                got = await reader.read()
            assert got[:12] == (b"HTTP/1.1 408" if sent else b"")


@pytest.mark.parametrize("path", [b"/mcp", b"/api/tools/one__echo/call"])
async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, path: bytes) -> None:
    """One that comes slowly is; what it had to spare does not let it stand still for any longer."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(
                b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n"
                b"Accept: application/json, text/event-stream\r\n\r\n" % path
            )
            for part in [LEAST_PROGRESS] * SWEEPS + [SWEEPS * LEAST_PROGRESS]:
                writer.write(b" " * part)
                await settled(gateway)
                gateway.front.connections.sweep()
            for _ in range(7):
                gateway.front.connections.sweep()
            assert (await answer(reader))[0] == 408
        # Nothing is left of the request that was given up.
        await eventually(lambda: not gateway.front.connections.open)


@pytest.mark.parametrize("path", [b"/mcp", b"/api/tools/one__echo/call"])
@pytest.mark.parametrize("beginning", [b"", b"1;extension=", b"0\r\nTrailer: "], ids=["chunks", "extension", "trailer"])
async def test_a_body_that_trickles_is_not_waited_for(tmp_path: Path, path: bytes, beginning: bytes) -> None:
    """A byte now and then, wherever it belongs to, buys no time."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(
                b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%b"
                % (path, beginning)
            )
            for _ in range(7):
                writer.write(b"x" if beginning else b"1\r\n \r\n")
                await settled(gateway)
                gateway.front.connections.sweep()
            assert (await answer(reader))[0] == 408


@pytest.mark.scenario("access: A request's body has five minutes")
@pytest.mark.parametrize("path", [b"/mcp", b"/api/tools/one__echo/call"])
async def test_a_body_has_five_minutes(tmp_path: Path, path: bytes) -> None:
    """However it dribbles in; 4 MiB have as much time as any other."""
    assert MOST_BODY_SWEEPS * SWEEP_EVERY == 300
    part = MAX_BODY // MOST_BODY_SWEEPS
    message = b'{"arguments": {"x": "%b"}}'
    body = message % (b"x" * (MAX_BODY - len(message) + 2))
    head = (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"Accept: application/json, text/event-stream\r\n\r\n" % (path, len(body))
    )
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(head)
            for number in range(MOST_BODY_SWEEPS):
                writer.write(body[number * part : (number + 1) * part])
                await settled(gateway)
                gateway.front.connections.sweep()
            writer.write(body[MOST_BODY_SWEEPS * part :])
            async with asyncio.timeout(LIMIT):
                # What is no MCP message is refused in time, too.
                assert (await reader.readline()).split()[1] == (b"400" if path == b"/mcp" else b"200")
        async with connected(gateway) as (reader, writer):
            writer.write(head)
            for _ in range(MOST_BODY_SWEEPS + 1):
                writer.write(b" " * LEAST_PROGRESS * 2)
                await settled(gateway)
                gateway.front.connections.sweep()
            assert await answer(reader) == (408, "TOOL_INVALID_INPUT")


@pytest.mark.scenario("access: A request's body has five minutes")
async def test_a_body_that_does_not_come_is_not_waited_for_behind_another_request(tmp_path: Path) -> None:
    """A connection that has answered something has no more time than a new one."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        session = await open_session(http, gateway.mcp, {})
        named = "".join(f"{name}: {value}\r\n" for name, value in session.items()).encode()
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b" % named
        ping = b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
        request = head + b"Content-Length: %d\r\n\r\n" % len(ping)
        async with connected(gateway) as (reader, writer):
            writer.write(request + ping)
            async with asyncio.timeout(LIMIT):
                await reader.readuntil(b"}")
            writer.write(request + ping[:1])
            await settled(gateway)
            sweep(gateway)
            async with asyncio.timeout(LIMIT):
                assert b" 408 " in await reader.read()


@pytest.mark.scenario("access: What comes behind a head is its body")
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("path", [b"/mcp", b"/api/tools/one__echo/call"])
async def test_the_body_of_a_request_for_an_upgrade_is_its_body(tmp_path: Path, path: bytes, protocol: bytes) -> None:
    """And never another request, which a proxy in front would take for somebody else's."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        session = await open_session(http, gateway.mcp, {})
        named = "".join(f"{name}: {value}\r\n" for name, value in session.items()).encode()
        inner = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        arguments = json.dumps({"arguments": {"said": "hello"}, "name": "one__echo"})
        body = arguments.encode()
        if path == b"/mcp":
            body = b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": %b}' % body
        else:
            body = b'{"arguments": {"said": "hello"}}'
        for sent in (body, inner):
            async with connected(gateway) as (reader, writer):
                writer.write(
                    b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b"
                    b"Connection: Upgrade\r\nUpgrade: %b\r\nContent-Length: %d\r\n\r\n"
                    % (path, named, protocol, len(sent))
                )
                await settled(gateway)
                writer.write(sent + b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                async with asyncio.timeout(LIMIT):
                    said = await reader.read()
            assert b'"status":"ok"' not in said
            assert (b"hello" in said) == (sent is body), said
            assert (said.count(b"HTTP/1.1 "), b"HTTP/1.1 404" in said) == (2, True), said


async def test_the_time_for_a_body_begins_anew_with_each_request(tmp_path: Path) -> None:
    """A client that sends one request after another on its connection is never out of time."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as (reader, writer):
        for _ in range(SWEEPS):
            writer.write(
                b"POST /api/tools/one__echo/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 2\r\n\r\n{"
            )
            await settled(gateway)
            gateway.front.connections.sweep()
            writer.write(b"}")
            async with asyncio.timeout(LIMIT):
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            assert b" 200 " in head


async def test_an_address_has_its_share_of_the_connections(tmp_path: Path) -> None:
    """Whoever opens more is told so at once; when one of them is closed, there is room again."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, contextlib.AsyncExitStack() as stack:
        gateway.front.connections.shares = Shares(local=3, remote=2)
        opened = [await stack.enter_async_context(connected(gateway)) for _ in range(3)]
        # All of them are in the midst of a request.
        for _, writer in opened:
            writer.write(b"POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        parts = urlsplit(gateway.url)
        for _ in range(2):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            assert await answer(reader) == (503, "TOOL_UNAVAILABLE")
            writer.close()
        opened[0][1].close()
        await eventually(lambda: len(gateway.front.connections.open) == 2)
        await settled(gateway)
        for _, writer in opened:
            writer.close()
        await eventually(lambda: not gateway.front.connections.open)
        assert not gateway.front.connections._held, "nothing is remembered of an address that has no connection"


async def test_a_connection_that_has_sent_no_head_makes_room_for_another(tmp_path: Path) -> None:
    """Half a head in each of its connections shuts nobody out who has the same address."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, contextlib.AsyncExitStack() as stack:
        gateway.front.connections.shares = Shares(local=3, remote=2)
        opened = [await stack.enter_async_context(connected(gateway)) for _ in range(3)]
        for _, writer in opened:
            writer.write(b"GET / HT")
        await settled(gateway)
        async with asyncio.timeout(LIMIT):
            assert await opened[0][0].read() == b""
        assert len(gateway.front.connections.open) <= 3


@pytest.mark.parametrize("request_line", [b"GET /health HTTP/1.1", b"POST /mcp HTTP/1.1"])
async def test_the_connection_that_is_idle_the_longest_makes_room_for_another(
    tmp_path: Path, request_line: bytes
) -> None:
    """Whoever keeps connections for later shuts nobody out who has the same address; those in use stay."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, contextlib.AsyncExitStack() as stack:
        gateway.front.connections.shares = Shares(local=3, remote=2)
        opened = [await stack.enter_async_context(connected(gateway)) for _ in range(3)]
        opened[0][1].write(b"POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        for reader, writer in opened[1:]:
            writer.write(request_line + b"\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            async with asyncio.timeout(LIMIT):
                await reader.readuntil(b"\r\n\r\n")
        await eventually(lambda: sum(each.is_idle for each in gateway.front.connections.open) == 2)
        await settled(gateway)
        async with asyncio.timeout(LIMIT):
            await opened[1][0].read()
        assert not opened[0][0].at_eof()
        assert not opened[2][0].at_eof()


def test_every_share_leaves_files_for_the_rest() -> None:
    """This machine's own clients have the largest; an address of IPv6 shares with its network."""
    assert Shares.of(1024) == Shares(local=768, remote=128)
    assert Shares.of(120) == Shares(local=90, remote=15)
    assert Shares.of(2**20) == Shares(local=4096, remote=512)
    assert share_holder("2001:db8:0:1::5") == share_holder("2001:db8:0:1:ffff::1") != share_holder("2001:db8:0:2::5")
    assert share_holder("::ffff:192.0.2.1") == share_holder("192.0.2.1") != share_holder("192.0.2.2")
    assert share_holder("127.0.0.1") == share_holder("::1") == share_holder("")


async def test_a_request_that_takes_long_and_a_connection_between_requests_are_left_alone(tmp_path: Path) -> None:
    """The limits are the client's, for what it sends and reads; what the gateway takes is its own matter."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            body = b'{"arguments": {"seconds": 0.5}}'
            request = (
                b"POST /api/tools/one__sleep/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            for _ in range(2):
                writer.write(request)
                await settled(gateway)
                sweep(gateway)
                async with asyncio.timeout(LIMIT):
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                    await reader.readexactly(length)
                assert b" 200 " in head
                sweep(gateway)


async def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    """A client that asks for much and reads nothing holds neither memory nor a connection."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (_, writer):
            body = b'{"arguments": {"how": "huge", "size": 20000000}}'
            writer.write(
                b"POST /api/tools/one__misbehave/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            mine = next(iter(gateway.front.connections.open))
            await eventually(lambda: mine.transport.get_write_buffer_size() > 1_000_000)
            sweep(gateway)
            await eventually(lambda: not gateway.front.connections.open)


class Unread:
    """A transport whose client reads as much as it is told to."""

    def __init__(self) -> None:
        self.unsent, self.aborted = 1000, False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


def test_a_client_that_reads_a_little_has_the_whole_time_again() -> None:
    """It is aborted after so many sweeps without any progress, and not one earlier."""
    connection = BoundedProtocol.__new__(BoundedProtocol)
    connection.transport = unread = cast("Any", Unread())
    for _ in range(2):
        unread.unsent -= 1
        for _ in range(ANSWER_SWEEPS + 1):
            connection._sweep_writes()
        assert not unread.aborted
    connection._sweep_writes()
    assert unread.aborted


async def test_idle_connections_are_kept_longer_than_clients_keep_them(tmp_path: Path) -> None:
    """A client that closes first cannot lose a request to our closing."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(LIMIT):
                await reader.readuntil(b"\r\n\r\n")
            [connection] = gateway.front.connections.open
            await eventually(lambda: connection.timeout_keep_alive_task is not None)
            timer = connection.timeout_keep_alive_task
            assert timer is not None
            assert timer.when() - asyncio.get_running_loop().time() > 95


async def test_what_is_no_http_is_refused_in_the_one_error_shape(tmp_path: Path) -> None:
    """And an upgrade to WebSocket is a request like any other."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with connected(gateway) as (reader, writer):
            writer.write(b"\x16\x03\x01 what is this\r\n\r\n")
            assert await answer(reader) == (400, "TOOL_INVALID_INPUT")
        for path, status in ((b"/mcp", b"400"), (b"/nothing", b"404")):
            async with connected(gateway) as (reader, writer):
                writer.write(
                    b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" % path
                )
                async with asyncio.timeout(LIMIT):
                    assert status in await reader.readline() or status == b"400"


async def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """4 MiB of `[]` hold the loop for no longer than any other request, and text with the same characters is fine."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        await settled(gateway)
        many = b"[]," * (MAX_BODY // 3 - 100) + b"[]"
        text = json.dumps({"arguments": {"a": '[],{}, \\ " ' * 200_000}}).encode()
        for path, body, status in (
            ("/api/tools/one__echo/call", b'{"arguments": {"a": [%b]}}' % many, 413),
            (
                "/mcp",
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[%b]}}' % many,
                413,
            ),
            ("/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[%b]}}' % many[: MAX_BODY // 6 - 1], 413),
            ("/api/tools/one__echo/call", text, 200),
        ):
            with loopwatch() as watch:
                assert await asyncio.to_thread(post, gateway, path, body) == status
            watch.check()


@pytest.mark.parametrize(("path", "read"), [("/mcp", b" 400 "), ("/api/tools/one__echo/call", b" 200 ")])
async def test_a_body_in_chunks_of_one_byte_holds_nobody_up(tmp_path: Path, path: str, read: bytes) -> None:
    """Whichever way it takes: up to a limit, for which the empty last one counts, they are read; beyond it, refused."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Method: tools/call\r\n"
        "Mcp-Protocol-Version: 2026-07-28\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        await settled(gateway)
        for chunks, said in ((MAX_CHUNKS - 1, read), (MAX_CHUNKS, b" 413 "), (600_000, b"")):
            request = head.encode() + b"1\r\n \r\n" * chunks + b"0\r\n\r\n"
            with loopwatch() as watch:
                answered = await asyncio.to_thread(beginning_of_answer, gateway, request)
            assert said in answered
            watch.check()


def beginning_of_answer(gateway: Gateway, request: bytes) -> bytes:
    """How the answer begins to a request that another thread sends; nothing, if it is ended before it is all sent."""
    parts = urlsplit(gateway.url)
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=60) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(request)
        return connection.recv(16)
    return b""


def post(gateway: Gateway, path: str, body: bytes) -> int:
    """The status of a request that another thread sends."""
    parts = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    with contextlib.closing(connection):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
