"""The fast path over HTTP: what is plain is answered where it comes in, and nobody can tell from the wire."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from harness import LIMIT, Gateway, eventually, open_gateway, toy
from pegboard.gateway.fastpath import rules
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.fastpath.uvicorn_protocol import FastPathProtocol
from servers.toy import Settings
from servers.toy_http import http_toy

pytestmark = pytest.mark.anyio

GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}


class Wire:
    """A connection on which a client says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self.reader, self.writer = reader, writer
        self._host = host
        self.session = ""

    def post(self, body: bytes, **headers: str) -> bytes:
        """The bytes of a request."""
        lines = {
            "Host": self._host,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
            **({"Mcp-Session-Id": self.session} if self.session else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next response: status, headers and body."""
        async with asyncio.timeout(LIMIT):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
            if headers.get("transfer-encoding") == "chunked":
                parts: list[bytes] = []
                while size := int(await self.reader.readline(), 16):
                    parts.append((await self.reader.readexactly(size + 2))[:-2])
                await self.reader.readline()
                return int(head[0].split()[1]), headers, b"".join(parts)
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return int(head[0].split()[1]), headers, body

    async def greet(self) -> None:
        await self.send(self.post(request(0, "initialize", GREETING)))
        self.session = (await self.answer())[1]["mcp-session-id"]
        await self.send(self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
        await self.answer()


def request(number: int, method: str, params: dict[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()


def echo(number: int, **more: Any) -> bytes:
    return request(number, "tools/call", {"name": "one__echo", "arguments": {"n": number}, **more})


def message(body: bytes) -> dict[str, Any]:
    """The last JSON-RPC message of a body, be it JSON or a stream."""
    if body.startswith(b"{"):
        return json.loads(body)
    return json.loads([line for line in body.split(b"\r\n") if line.startswith(b"data: {")][-1][6:])


@contextlib.asynccontextmanager
async def connected(gateway: Gateway, *, greeted: Wire | None = None) -> AsyncGenerator[Wire]:
    parts = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    wire = Wire(reader, writer, parts.netloc)
    try:
        if greeted is None:
            await wire.greet()
            await eventually(lambda: gateway.board.relay.sessions.get(wire.session) is not None)
            # The first call connects the server, which is no plain matter.
            await wire.send(wire.post(echo(0)))
            await wire.answer()
        else:
            wire.session = greeted.session
        yield wire
    finally:
        writer.close()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every request that took the fast path."""
    used: list[Any] = []
    before = rules.FastPath.begin

    def begin(self: rules.FastPath, *args: Any) -> Any:
        begun = before(self, *args)
        used.extend([begun] if not isinstance(begun, Decline) else [])
        return begun

    monkeypatch.setattr(rules.FastPath, "begin", begin)
    return used


async def test_a_request_may_come_in_any_pieces(tmp_path: Path, lanes: list[Any]) -> None:
    """Byte by byte, or several at once: each is answered once, in order."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        for byte in wire.post(echo(1)):
            wire.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert message((await wire.answer())[2])["id"] == 1
        await wire.send(b"".join(wire.post(echo(number)) for number in range(2, 12)))
        assert [message((await wire.answer())[2])["id"] for _ in range(10)] == list(range(2, 12))
        assert len(lanes) >= 2
        # Whatever comes behind a request that is under way on the same connection takes the full path.
        assert gateway.board.metrics.declined["connection"] >= 1


async def test_what_comes_behind_waits_for_its_turn(tmp_path: Path) -> None:
    """A slow plain call, one with progress, a notification and a quick one, all sent at once on one connection."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        sleep = {"name": "one__sleep", "arguments": {"seconds": 0.2}}
        progress = {"name": "one__progress", "arguments": {"steps": 2}, "_meta": {"progressToken": "t"}}
        await wire.send(
            wire.post(request(1, "tools/call", sleep))
            + wire.post(request(2, "tools/call", progress))
            + wire.post(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
            + wire.post(echo(3))
            + wire.post(request(4, "tools/list"))
        )
        first, second, third, fourth, fifth = [await wire.answer() for _ in range(5)]
        assert message(first[2])["result"]["content"][0]["text"] == "awake"
        assert second[2].count(b"notifications/progress") == 2
        assert third[0] == 202
        assert message(fourth[2])["id"] == 3
        assert message(fifth[2])["id"] == 4


async def test_a_call_that_is_handed_over_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream is complete before the next answer begins."""
    monkeypatch.setattr(rules, "PATIENCE", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        sleep = {"name": "one__sleep", "arguments": {"seconds": 0.3}}
        await wire.send(wire.post(request(1, "tools/call", sleep)) + wire.post(echo(2)))
        slow, quick = await wire.answer(), await wire.answer()
        assert slow[1]["content-type"].startswith("text/event-stream")
        assert message(slow[2])["id"] == 1
        assert message(quick[2])["id"] == 2


async def test_the_head_of_an_answer_is_complete(tmp_path: Path) -> None:
    """With its type, its length, the session and the date that every answer has."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        await wire.send(wire.post(echo(1)))
        status, headers, body = await wire.answer()
        assert status == 200
        assert headers.pop("date")
        assert headers == {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "mcp-session-id": wire.session,
        }


async def test_a_connection_is_closed_when_the_client_wants_that(tmp_path: Path) -> None:
    """After its answer, which says so."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        await wire.send(wire.post(echo(1), Connection="close"))
        _, headers, body = await wire.answer()
        assert headers["connection"] == "close"
        assert message(body)["id"] == 1
        assert await wire.reader.read() == b""


async def test_a_client_that_waits_to_be_asked_for_its_body_is(tmp_path: Path) -> None:
    """`Expect: 100-continue` is uvicorn's business."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        whole = wire.post(echo(1), Expect="100-continue")
        head, _, body = whole.partition(b"\r\n\r\n")
        await wire.send(head + b"\r\n\r\n")
        assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        await wire.send(body)
        assert message((await wire.answer())[2])["id"] == 1


@pytest.mark.parametrize("size", [100_000, 1_500_000])
async def test_a_large_request_arrives_whole(tmp_path: Path, size: int) -> None:
    """Whether it is small enough for the lane or has to leave it."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        call = {"name": "one__echo", "arguments": {"text": "x" * size}}
        await wire.send(wire.post(request(1, "tools/call", call)))
        answered = message((await wire.answer())[2])
        assert len(answered["result"]["content"][0]["text"]) == size + len('{"text": ""}')


async def test_a_body_in_chunks_is_as_good(tmp_path: Path) -> None:
    """Not every client knows how much it will say."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        body = echo(1)
        head = wire.post(b"", **{"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:]))
        await wire.send(head + chunks + b"0\r\n\r\n")
        assert message((await wire.answer())[2])["id"] == 1


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """The limit is the same on both paths."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        wire.writer.write(wire.post(b" " * (5 * 1024 * 1024)))
        assert (await wire.answer())[0] == 413


async def test_an_older_http_is_spoken_too(tmp_path: Path) -> None:
    """Without being asked to keep the connection, it is closed."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        await wire.send(wire.post(echo(1)).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        status, _, _ = await wire.answer()
        assert status == 200


async def test_nonsense_gets_the_answer_that_uvicorn_has_for_it(tmp_path: Path) -> None:
    """Also behind a plain request."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        await wire.send(wire.post(echo(1)))
        await wire.answer()
        await wire.send(b"\x00\x01 nonsense\r\n\r\n")
        assert (await wire.answer())[0] == 400


async def test_a_client_that_goes_away_harms_nobody(tmp_path: Path) -> None:
    """In the middle of its body, or while its call is under way."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        async with connected(gateway, greeted=wire) as half:
            await half.send(half.post(echo(1))[:-5])
        async with connected(gateway, greeted=wire) as gone:
            await gone.send(gone.post(request(2, "tools/call", {"name": "one__sleep", "arguments": {"seconds": 0.2}})))
            await eventually(lambda: bool(gateway.front._fast_path._calls))
        await eventually(lambda: not gateway.front._fast_path._calls)
        await wire.send(wire.post(echo(3)))
        assert message((await wire.answer())[2])["id"] == 3


async def test_a_session_that_loses_its_connection_keeps_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the handshake era going away is no cancellation; the call goes on to its end."""
    monkeypatch.setattr(rules, "PATIENCE", 0.2)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        calls = gateway.board.metrics.calls
        before = calls["one", "ok"]
        async with connected(gateway, greeted=wire) as gone:
            await gone.send(gone.post(request(2, "tools/call", {"name": "one__sleep", "arguments": {"seconds": 0.6}})))
            await eventually(lambda: bool(gateway.front._fast_path._calls))
        await eventually(lambda: calls["one", "ok"] == before + 1)
        await wire.send(wire.post(request(3, "tools/call", {"name": "one__seen", "arguments": {}})))
        seen = json.loads(message((await wire.answer())[2])["result"]["content"][0]["text"])
        assert seen["cancelled"] == []


async def test_a_client_that_does_not_read_is_not_read_from(tmp_path: Path) -> None:
    """Answers that nobody takes do not pile up: the next request waits until they are taken."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, connected(gateway) as wire:
        call = request(1, "tools/call", {"name": "one__echo", "arguments": {"text": "x" * 400_000}})
        sending = asyncio.create_task(wire.send(wire.post(call) * 100))
        await asyncio.sleep(0.5)
        assert not sending.done()
        for _ in range(100):
            assert message((await wire.answer())[2])["id"] == 1
        await sending


class Recorder:
    """A transport that keeps what it is given."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.written: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, pieces: list[Any]) -> None:
        self.written += pieces
        self._transport.writelines(pieces)


@pytest.mark.parametrize("size", [1000, 10_000])
async def test_a_list_is_written_from_the_text_that_is_kept(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy for each request would be a large piece of memory, taken and given back every time; be it cut or not."""
    recorders: list[Recorder] = []
    before = FastPathProtocol.connection_made

    def connection_made(self: FastPathProtocol, transport: Any) -> None:
        recorders.append(Recorder(transport))
        before(self, cast("Any", recorders[-1]))

    monkeypatch.setattr(FastPathProtocol, "connection_made", connection_made)
    tools = [{"name": f"t{n}", "description": "x" * size, "inputSchema": {"type": "object"}} for n in range(200)]
    with http_toy(Settings(raw_tools=tools)) as server:
        servers = {"one": {"url": server.url}}
        async with open_gateway(tmp_path, servers) as gateway, connected(gateway) as wire:
            await wire.send(wire.post(request(1, "tools/list")))
            assert len(message((await wire.answer())[2])["result"]["tools"]) > 200
            pieces = (await gateway.board.list_tools()).handshake_pieces
            kept = [each for each in map(memoryview, recorders[-1].written) if any(each.obj is one for one in pieces)]
            assert b"".join(kept) == b"".join(pieces)


def test_uvicorn_is_as_the_lane_expects_it() -> None:
    """The inner parts that it is built on; whoever updates uvicorn finds here what has changed."""
    for name in ("on_headers_complete", "on_body", "on_message_complete", "on_response_complete", "connection_lost"):
        assert callable(getattr(HttpToolsProtocol, name))
    used = HttpToolsProtocol.on_headers_complete.__code__.co_names + HttpToolsProtocol.shutdown.__code__.co_names
    assert {"cycle", "pipeline", "flow", "response_complete", "keep_alive"} <= set(used)
    assert set(RequestResponseCycle.__init__.__code__.co_varnames) >= {
        "scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers", "message_event",
        "expect_100_continue", "keep_alive", "on_response",
    }  # fmt: skip
