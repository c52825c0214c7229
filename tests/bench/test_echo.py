"""The benchmark's echo servers: the official client speaks with them in both eras, over both transports."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from benchmarks.gateways.client import connected
from benchmarks.gateways.echo import ERAS, VERSIONS, Echo, Era
from benchmarks.gateways.echo_http import EchoProtocol
from benchmarks.gateways.gateway import stdio_entry
from benchmarks.gateways.load import _Caller, _Run, load
from benchmarks.gateways.requests import WrongReply
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def listening(echo: Echo) -> AsyncGenerator[str]:
    """An echo server over HTTP in this process."""
    server = await asyncio.get_running_loop().create_server(lambda: EchoProtocol(echo), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


async def spoken_with(target: Any, version: str) -> None:
    """Whether a client of the SDK gets what it should."""
    async with Client(target) as client:
        assert client.protocol_version == version
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "tool_0001", "tool_0002"]
        result: Any = await client.call_tool("echo", {"text": 'a "b" ü\n'})
        assert result.content[0].text == 'a "b" ü\n'
        long: Any = await client.call_tool("echo", {"text": "start", "size": 1000})
        assert long.content[0].text == "start" + "x" * 995


@pytest.mark.parametrize("era", ERAS)
async def test_over_http(era: Era) -> None:
    """In the era that it was told to speak."""
    async with listening(Echo("s0", 3, era)) as url:
        await spoken_with(url, VERSIONS[era])


@pytest.mark.parametrize("era", ERAS)
async def test_over_stdio(era: Era) -> None:
    """As the program that gateways start."""
    entry: dict[str, Any] = stdio_entry("s0", 3, era)
    command = StdioServerParameters(command=entry["command"], args=entry["args"])
    await spoken_with(stdio_client(command, errlog=sys.stderr), VERSIONS[era])


async def test_headers_must_say_what_the_body_says() -> None:
    """A gateway that renames tools has to rename them in the header, too."""
    async with listening(Echo()) as url, connected(url, "modern") as client:
        head, _ = await client.exchange("tools/call", {"name": "echo", "arguments": {"text": "a"}})
        assert head.startswith(b"HTTP/1.1 200")
        request = client.wording.request("tools/call", {"name": "echo", "arguments": {}}, 1)
        assert b"Mcp-Name: echo" in request
        head, body = await client._send(request.replace(b"Mcp-Name: echo", b"Mcp-Name: s0__echo"), 1)
        assert head.startswith(b"HTTP/1.1 400")
        assert b"-32020" in body


@pytest.mark.parametrize("era", ERAS)
async def test_the_load_generator_checks_every_reply(era: Era) -> None:
    """And counts those that are right."""
    async with listening(Echo()) as url, connected(url, era) as client:
        for size in (0, 5000):
            loaded = await load(client.way, client.wording.call("echo", size), 3, 0.02, warm_up=0.01)
            assert loaded.calls >= 3
            assert loaded.p50 <= loaded.p99
        with pytest.raises(WrongReply, match="no tool"):
            await load(client.way, client.wording.call("nothing"), 1, 0.02, warm_up=0.01)


async def test_an_answer_of_another_call_is_noticed() -> None:
    """By its number, or by what it says."""
    async with listening(Echo()) as url, connected(url, "handshake") as client:
        form = client.wording.call("echo")
        head, body = await client._send(form.request(100_000_001), 100_000_001)
        form.check(100_000_001, head, body)
        with pytest.raises(WrongReply):
            form.check(100_000_002, head, body)
        with pytest.raises(WrongReply):
            form.check(100_000_001, head, body.replace(b'"text":"100000001"', b'"text":"100000002"'))


async def test_a_connection_that_is_done_may_be_closed() -> None:
    """Gateways hang up on idle connections, and callers that are done wait for slower ones."""
    async with listening(Echo()) as url, connected(url, "handshake") as client:
        run = _Run(client.wording.call("echo"), 1)
        caller = _Caller(run)
        caller.done.set_result(None)
        caller._fail(ConnectionResetError())
        assert run.failure is None
        caller = _Caller(run)
        caller._fail(ConnectionResetError())
        assert isinstance(run.failure, ConnectionResetError)
