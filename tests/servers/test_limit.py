"""A time limit measures the server, not our own busy loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import open_board
from pegboard.servers.limit import Limit
from servers.leaping import LeapingLoop
from servers.toy import Settings
from servers.toy_http import http_toy


def test_a_limit_ends_what_takes_longer() -> None:
    """After the time it gives, and not before."""

    async def wait() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TimeoutError):  # noqa: PT012  it may take longer than one of the two
            async with Limit(30):
                await asyncio.sleep(29.9)
                await asyncio.sleep(29.9)
        return loop.time() - began

    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        assert runner.run(wait()) == pytest.approx(30)


def test_it_can_begin_anew() -> None:
    """As progress makes it."""

    async def wait() -> None:
        async with Limit(30) as limit:
            for _ in range(5):
                await asyncio.sleep(29)
                limit.restart(30)

    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        runner.run(wait())


def test_what_has_arrived_when_it_ends_is_read() -> None:
    """An answer that was there all the time counts, however long the loop was held meanwhile."""

    async def wait() -> bytes:
        server = await asyncio.start_server(_greet, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        loop = asyncio.get_running_loop()
        # Far longer than the limit; the answer is on its way already.
        loop.call_soon(time.sleep, 1.0)
        async with Limit(0.5):
            answer = await reader.readline()
        writer.close()
        server.close()
        return answer

    assert asyncio.run(wait()) == b"hello\n"


@pytest.mark.anyio
async def test_a_server_that_answers_at_once_is_connected_and_called_while_the_loop_is_busy(tmp_path: Path) -> None:
    """A loop that can read only twenty times a second has a connection all the same, and the answer of a call."""
    with http_toy(Settings(era="handshake")) as server:
        entry = {"url": server.url, "connectTimeout": 0.25, "timeout": 0.25}
        async with open_board(tmp_path, {"one": entry}) as board:
            stop = _keep_busy(0.05)
            try:
                result = await board.call("one__echo", {"text": "hello"})
            finally:
                stop()
            assert result.error is None
            assert result.data is not None
            assert result.data["content"][0]["text"] == '{"text": "hello"}'


def _keep_busy(seconds: float) -> Callable[[], None]:
    """Hold the loop that long in every turn, until it is stopped."""
    loop = asyncio.get_running_loop()
    stopped = False

    def hold() -> None:
        time.sleep(seconds)
        if not stopped:
            loop.call_soon(hold)

    def stop() -> None:
        nonlocal stopped
        stopped = True

    loop.call_soon(hold)
    return stop


async def _greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Only once the loop has been held: the first thing that it does then is to end the limit, if that counts.
    await asyncio.sleep(0)
    writer.write(b"hello\n")
    writer.close()
