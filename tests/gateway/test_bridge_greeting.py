"""The gateway's side of the bridge: who knocks, and what they say first."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from pathlib import Path

import pytest

from harness import Gateway, open_gateway
from pegboard.gateway.bridge import _MAX_GREETING, _MOST_UNPROVEN
from pegboard.gateway.proof import prove

pytestmark = pytest.mark.anyio


async def knock(gateway: Gateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A bridge that has proved to know the token and now says who it is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.front.bridge)
    writer.write(secrets.token_hex(16).encode() + b"\n")
    theirs = (await reader.readline()).split()[1]
    writer.write(prove(gateway.front.token, "bridge", theirs) + b"\n")
    return reader, writer


@pytest.mark.parametrize(
    "said",
    [b"[" * 20_000, b'{"board":' * 3000, b"no JSON", b"[]", b'"x"', b"x" * (_MAX_GREETING + 1), b"\xff"],
    ids=["deep", "deep objects", "no JSON", "a list", "a text", "long", "no UTF-8"],
)
async def test_an_odd_greeting_ends_the_connection_and_nothing_else(
    tmp_path: Path, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is closed at once, no task fails, and the next one is served."""
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    async with open_gateway(tmp_path, {}) as gateway:
        reader, writer = await knock(gateway)
        writer.write(said + b"\n")
        async with asyncio.timeout(4):
            assert await reader.read() == b""
        writer.close()
        reader, writer = await knock(gateway)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        writer.write(b'{"board": null}\n' + json.dumps(ping).encode() + b"\n")
        async with asyncio.timeout(10):
            assert json.loads(await reader.readline())["id"] == 1
        writer.close()
    del reader, writer
    assert failures == []
    assert "never retrieved" not in caplog.text


async def test_those_who_prove_nothing_are_bounded_and_keep_nobody_out(tmp_path: Path) -> None:
    """Of more connections than may be unproven the oldest are closed at once, and whoever knows the token is served."""
    async with open_gateway(tmp_path, {}) as gateway:
        address = ("127.0.0.1", gateway.front.bridge)
        silent = [await asyncio.open_connection(*address) for _ in range(_MOST_UNPROVEN)]
        reader, writer = await knock(gateway)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        writer.write(b'{"board": null}\n' + json.dumps(ping).encode() + b"\n")
        # Those that say nothing are closed after five seconds anyway.
        async with asyncio.timeout(4):
            with contextlib.suppress(ConnectionError):
                assert await silent[0][0].read() == b""
            assert json.loads(await reader.readline())["id"] == 1
        assert not silent[-1][0].at_eof()
        for _, each in [*silent, (reader, writer)]:
            each.close()
