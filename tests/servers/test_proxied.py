"""Proxies that the environment names: who goes through them, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pegboard.config import ServerSpec
from pegboard.servers.errors import RpcError
from pegboard.servers.http import client
from pegboard.servers.http.client import DirectClient, Unreachable, is_unacted, make_client
from pegboard.servers.http.proxied import ProxiedClient
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from servers.certificates import Authority
from servers.listening import Asked, in_turn, listening, ok
from servers.protected import Door, Grant
from servers.toy import Settings
from servers.toy_http import Manners, http_toy

pytestmark = pytest.mark.anyio

JSON = "content-type: application/json"


def spec(url: str) -> ServerSpec:
    return ServerSpec(name="toy", given_name="toy", transport="http", url=url)


@dataclass
class Proxy:
    """A proxy of both kinds: requests with whole addresses, and tunnels."""

    port: int = 0
    lines: list[str] = field(default_factory=list[str])
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.split(b"\r\n")[0].decode()
            self.lines.append(line)
            method, target, _ = line.split(" ")
            authority = target if method == "CONNECT" else target.split("/")[2]
            host, _, port = authority.rpartition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                far_writer.write(head)
            try:
                await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
            finally:
                far_writer.transport.abort()
        writer.transport.abort()
        self._open.discard(task)

    async def end(self) -> None:
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    raise ConnectionError


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Authority]:
    """An authority that we trust."""
    trusted = Authority.new(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", trusted.file)
    client._tls.cache_clear()
    yield trusted
    client._tls.cache_clear()


@contextlib.asynccontextmanager
async def proxying() -> AsyncGenerator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()


@contextlib.asynccontextmanager
async def linked(url: str) -> AsyncGenerator[JsonRpcPeer]:
    wire = StreamableHttpTransport(spec(url))
    link = JsonRpcPeer(wire, label="toy")
    await wire.start(link)
    # Without a connection of our own nothing is plain.
    assert not wire.is_ready
    try:
        yield link
    finally:
        await link.close()


@pytest.mark.parametrize(
    ("settings", "url", "proxied"),
    [
        ({}, "http://h/", False),
        ({"HTTP_PROXY": "http://p:1"}, "http://h/", True),
        ({"HTTP_PROXY": "http://p:1"}, "https://h/", False),
        ({"https_proxy": "http://p:1"}, "https://h/", True),
        ({"ALL_PROXY": "http://p:1"}, "http://h/", True),
        ({"HTTP_PROXY": ""}, "http://h/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h"}, "http://h:8/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "other,.example.com"}, "http://a.example.com/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:8"}, "http://h:8/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:80"}, "http://h/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:8"}, "http://h:9/", True),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://h/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "::1"}, "http://[::1]:9/", False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, "http://other.com/", True),
    ],
)
async def test_the_environment_says_who_goes_through_a_proxy(
    settings: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch, *, proxied: bool
) -> None:
    """By scheme, for all, and not for those that it excepts."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    made = make_client(spec(url))
    assert isinstance(made, ProxiedClient if proxied else DirectClient)
    await made.close()


async def test_a_plain_server_is_asked_for_by_its_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cookies, compression and the server's errors are the same behind a proxy."""
    answers = (
        ok(
            gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'),
            JSON,
            "content-encoding: gzip",
            "set-cookie: a=1",
        ),
        ok(b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}', JSON, status="400 No"),
    )
    async with listening(in_turn(*answers)) as listener, proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with linked(listener.url) as link:
            assert await link.request("x", {}, timeout=20) == {"a": 1}
            with pytest.raises(RpcError):
                await link.request("x", {}, timeout=20)
        assert proxy.lines[0] == f"POST {listener.url} HTTP/1.1"
        assert listener.asked[1].headers["cookie"] == "a=1"


async def test_a_server_behind_tls_is_reached_through_a_tunnel(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees neither request nor answer, and cannot stand for the server."""
    answer = ok(b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', JSON)
    async with proxying() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with listening(answer, tls=authority.server("127.0.0.1")) as listener:
            async with linked(listener.url.replace("http:", "https:")) as link:
                assert await link.request("x", {}, timeout=20) == {"a": 1}
            assert proxy.lines == [f"CONNECT 127.0.0.1:{listener.port} HTTP/1.1"]
        async with listening(answer, tls=authority.server("127.0.0.2")) as listener:
            async with linked(listener.url.replace("http:", "https:")) as link:
                with pytest.raises(Unreachable) as caught:
                    await link.request("x", {}, timeout=20)
                assert is_unacted(caught.value)
            assert not listener.asked


async def test_what_goes_wrong_behind_a_proxy_is_told_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that cannot be unpacked or breaks off, and a proxy that is not there."""

    async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{")
        await writer.drain()
        writer.close()

    async with proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        for script in (ok(b"not packed", JSON, "content-encoding: gzip"), cut):
            async with listening(script) as listener, linked(listener.url) as link:
                with pytest.raises(Unreachable) as caught:
                    await link.request("x", {}, timeout=20)
                assert not is_unacted(caught.value)
    async with linked("http://127.0.0.1:1/mcp") as link:
        with pytest.raises(Unreachable) as caught:
            await link.request("x", {}, timeout=20)
        assert is_unacted(caught.value)


async def test_token_of_a_sign_in_goes_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy requests carry the token, too, and a refused one is renewed and the request repeated."""
    door = Door()
    grant = Grant(door.current, "expired")
    with http_toy(Settings(era="handshake"), Manners(door=door)) as toy:
        async with proxying() as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
            async with linked(toy.url) as link:
                link.transport.sign_by(grant, lambda _: None)
                door.issue()
                info = {"name": "a", "version": "1"}
                params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
                assert await link.request("initialize", params, timeout=10)
            assert proxy.lines
    assert (door.refused["initialize"], door.admitted["initialize"], grant.fetched) == (1, 1, 1)
