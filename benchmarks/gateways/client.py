"""A client for everything but the load: opens a session in an era, lists tools, one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, cast

from benchmarks.gateways.echo import VERSIONS, Era
from benchmarks.gateways.exchanges import HttpWay, Sender, Way
from benchmarks.gateways.http1 import header
from benchmarks.gateways.requests import CLIENT, FIRST_NUMBER, Address, Wording, WrongReply, read_reply
from benchmarks.gateways.sse import SseWay

LIMIT = 30.0


class Client:
    """One client of a gateway."""

    def __init__(self, wording: Wording, way: Way) -> None:
        self.wording = wording
        self.way = way
        self._sender: Sender | None = None
        self._waiting: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._number = FIRST_NUMBER
        # What it said to `server/discover` if it does not know that; the other requests may work all the same.
        self.refusal = ""

    async def connect(self) -> None:
        """Connect, afresh if there was a connection before."""
        self.close()
        self._sender = await self.way.open(self._on_reply, self._on_lost)

    def close(self) -> None:
        """Hang up."""
        if self._sender is not None:
            self._sender.close()

    async def greet(self) -> None:
        """Get acquainted as the era has it."""
        if self.wording.era == "modern":
            try:
                await self.request("server/discover", {})
            except WrongReply as exc:
                self.refusal = str(exc)
                # Some hang up on what they do not understand.
                await self.connect()
            return
        hello = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}, "clientInfo": CLIENT}
        head, body = await self.exchange("initialize", hello)
        _result(read_reply(head, body))
        session = header(head, b"mcp-session-id")
        if session is not None:
            self.wording = replace(self.wording, session=session.decode())
        await self._send(self.wording.request("notifications/initialized", {}, None), None)

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A request's result."""
        head, body = await self.exchange(method, params)
        return _result(read_reply(head, body))

    async def exchange(self, method: str, params: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """A request's response as it came."""
        self._number += 1
        return await self._send(self.wording.request(method, params, self._number), self._number)

    async def tools(self) -> list[str]:
        """The names of all tools that are listed, over as many pages as there are."""
        return (await self.timed_tools())[0]

    async def timed_tools(self) -> tuple[list[str], float]:
        """The names of all tools, and the seconds until the answers were there, but not those to read them."""
        names: list[str] = []
        taken, params = 0.0, dict[str, Any]()
        while True:
            started = time.perf_counter()
            head, body = await self.exchange("tools/list", params)
            taken += time.perf_counter() - started
            page = _result(read_reply(head, body))
            names += [tool["name"] for tool in page["tools"]]
            if not page.get("nextCursor"):
                return names, taken
            params = {"cursor": page["nextCursor"]}

    async def leave(self) -> None:
        """End the session, if there is one."""
        if self.wording.session is not None:
            address, bearer = self.wording.address, self.wording.bearer
            proof = "" if bearer is None else f"Authorization: Bearer {bearer}\r\n"
            await self._send(
                f"DELETE {address.path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
                f"Mcp-Session-Id: {self.wording.session}\r\n{proof}"
                f"MCP-Protocol-Version: {VERSIONS['handshake']}\r\nContent-Length: 0\r\n\r\n".encode(),
                None,
            )

    async def _send(self, request: bytes, number: int | None) -> tuple[bytes, bytes]:
        assert self._sender is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._sender.send(request, number)
        async with asyncio.timeout(LIMIT):
            return await self._waiting

    def _on_reply(self, head: bytes, body: bytes) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result((head, body))

    def _on_lost(self, exc: BaseException) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc)


@contextlib.asynccontextmanager
async def connected(url: str, era: Era, sse: bool = False, bearer: str | None = None) -> AsyncGenerator[Client]:
    """A client that has been greeted; it may say who it is."""
    address = Address.of(url)
    way: Way = await SseWay.connected(address) if sse else HttpWay(address)
    client = Client(Wording(address, era, bearer=bearer), way)
    try:
        await client.connect()
        await client.greet()
        yield client
    finally:
        client.close()
        way.close()


def _result(reply: dict[str, Any]) -> dict[str, Any]:
    result = reply.get("result")
    if not isinstance(result, dict):
        raise WrongReply(f"an error: {reply.get('error')}")
    return cast("dict[str, Any]", result)
