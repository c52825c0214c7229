"""The older HTTP+SSE transport on our own client: where messages go, and how the stream may be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from pegboard.config import ServerSpec
from pegboard.result import ToolFailure
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.transports.sse import SseTransport
from servers.listening import Asked, Listener, listening, ok, until

pytestmark = pytest.mark.anyio

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Old:
    """A server of that kind."""

    def __init__(self, endpoint: str, newline: bytes = b"\n") -> None:
        self.endpoint, self.newline = endpoint, newline
        self.stream: asyncio.StreamWriter | None = None

    async def script(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "GET":
            self.stream = writer
            writer.write(STREAM + self._event(b"endpoint", self.endpoint.encode()))
            return
        writer.write(ok(b"Accepted", status="202 Accepted"))
        assert self.stream is not None
        self.stream.write(self._event(b"message", b'{"jsonrpc":"2.0","id":1,\n"result":{"a":1}}'))

    def _event(self, name: bytes, data: bytes) -> bytes:
        lines = [b"event: " + name, *(b"data: " + line for line in data.split(b"\n")), b"", b": more", b""]
        return self.newline.join(lines)


@asynccontextmanager
async def linked(listener: Listener, userinfo: str = "") -> AsyncGenerator[JsonRpcPeer]:
    url = f"http://{userinfo}127.0.0.1:{listener.port}/sse"
    wire = SseTransport(ServerSpec(name="toy", given_name="toy", transport="sse", url=url))
    link = JsonRpcPeer(wire, label="toy")
    try:
        async with asyncio.timeout(20):
            await wire.start(link)
            yield link
    finally:
        await link.close()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_a_message_goes_out_by_post_and_its_answer_comes_over_the_stream(newline: bytes) -> None:
    """However the stream ends its lines, and in events of several lines."""
    old = Old("/messages?session=1", newline)
    async with listening(old.script) as listener, linked(listener) as link:
        assert await link.request("x", {}, timeout=20) == {"a": 1}
        assert listener.asked[1].line == "POST /messages?session=1 HTTP/1.1"


async def test_a_whole_address_is_fine_if_it_is_of_the_same_origin() -> None:
    """Who we are there goes along, though the server does not repeat it."""
    old = Old("")
    async with listening(old.script) as listener:
        old.endpoint = f"http://127.0.0.1:{listener.port}/messages"
        async with linked(listener, "me:secret@") as link:
            assert await link.request("x", {}, timeout=20) == {"a": 1}
        assert {each.headers["authorization"] for each in listener.asked} == {"Basic bWU6c2VjcmV0"}


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.2/messages", "https://127.0.0.1/messages", "//other/", "http://["]
)
async def test_messages_are_not_sent_to_another_origin(endpoint: str) -> None:
    """They would carry the server's credentials to somebody else."""
    async with listening(Old(endpoint).script) as listener:
        with pytest.raises(ToolFailure, match="another origin"):
            async with linked(listener):
                pass
        assert len(listener.asked) == 1


async def test_the_end_of_the_stream_is_the_end_of_the_conversation() -> None:
    """Whoever still waits is told."""
    old = Old("/messages")
    async with listening(old.script) as listener, linked(listener) as link:
        assert old.stream is not None
        old.stream.close()
        await until(link.lost.done)
        assert link.lost.result() == "it closed the stream"
