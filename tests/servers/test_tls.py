"""TLS: a server is who it says it is, or nothing is said to it."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Generator
from pathlib import Path

import pytest

from pegboard.config import ServerSpec
from pegboard.servers.http import client
from pegboard.servers.http.client import DirectClient, make_client, read_body
from pegboard.servers.http.pool import ConnectionFailed
from servers.certificates import Authority
from servers.listening import Asked, listening, ok, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """On both loops that Pegboard runs on."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Authority]:
    """An authority that we trust."""
    trusted = Authority.new(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", trusted.file)
    client._tls.cache_clear()
    yield trusted
    client._tls.cache_clear()


async def get(port: int, host: str = "127.0.0.1", times: int = 1) -> list[bytes]:
    url = f"https://{host}:{port}/mcp"
    made = make_client(ServerSpec(name="toy", given_name="toy", transport="http", url=url))
    assert isinstance(made, DirectClient)
    bodies: list[bytes] = []
    try:
        for _ in range(times):
            async with made.stream("GET", url, {}, None) as response:
                bodies.append(await read_body(response, "toy"))
    finally:
        await made.close()
        assert not made._pool._connections
    return bodies


async def test_a_server_that_shows_who_it_is_is_used_and_kept(authority: Authority) -> None:
    """On one connection, whose end leaves nothing behind."""
    async with listening(ok(b"hello"), tls=authority.server("127.0.0.1")) as listener:
        assert await get(listener.port, times=3) == [b"hello"] * 3
        assert listener.connections == 1
        await until(lambda: listener.ended == 1)


async def test_a_large_answer_comes_whole(authority: Authority) -> None:
    """And an answer that ends with the connection, too."""
    text = b"x" * 3_000_000

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + text)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with listening(script, tls=authority.server("127.0.0.1")) as listener:
        assert await get(listener.port) == [text]


@pytest.mark.parametrize("fault", ["another's name", "another address", "signed by itself", "unknown", "expired"])
async def test_a_server_that_is_somebody_else_is_refused(authority: Authority, fault: str, tmp_path: Path) -> None:
    """It hears nothing of the request, which can thus be sent again without harm."""
    other = tmp_path / "other"
    other.mkdir()
    host = "localhost" if fault == "another's name" else "127.0.0.1"
    shown = {
        "another's name": lambda: authority.server("example.com"),
        "another address": lambda: authority.server("127.0.0.2"),
        "signed by itself": lambda: authority.server("127.0.0.1", itself=True),
        "unknown": lambda: Authority.new(other).server("127.0.0.1"),
        "expired": lambda: authority.server("127.0.0.1", end=dt.datetime(2021, 1, 1, tzinfo=dt.UTC)),
    }[fault]()
    async with listening(ok(b"hello"), tls=shown) as listener:
        with pytest.raises(ConnectionFailed) as caught:
            await get(listener.port, host)
        assert caught.value.refused
        assert not listener.asked


async def test_we_speak_the_one_protocol_that_we_know(authority: Authority) -> None:
    """A server that could do HTTP/2 is told not to."""
    shown = authority.server("127.0.0.1")
    shown.set_alpn_protocols(["h2", "http/1.1"])
    chosen: list[str | None] = []

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        chosen.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(ok(b"hello"))

    async with listening(script, tls=shown) as listener:
        assert await get(listener.port) == [b"hello"]
    assert chosen == ["http/1.1"]
