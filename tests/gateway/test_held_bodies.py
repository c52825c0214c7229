"""A request whose body is held back: who sends it is asked again when it is whole, on both paths and in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from auth.asking import ask_session, modern_request, open_session
from bearers import Headers
from harness import LIMIT, Gateway, eventually, open_gateway, toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

AUTH: dict[str, Any] = {"required": True}
CALL: dict[str, Any] = {"name": "one__echo", "arguments": {"text": "hello"}}


@dataclass
class HeldRequest:
    """A request whose head has come, and of its body the first byte."""

    gateway: Gateway
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def settle(self) -> None:
        """Wait until the gateway has read all that was sent."""
        own = self.writer.get_extra_info("sockname")[1]

        def is_read() -> bool:
            connections = [each for each in self.gateway.front.connections.open if each.client]
            return any(each.client[1] == own and each._in_body for each in connections if each.client)

        await eventually(is_read)

    async def finish(self) -> tuple[int, str]:
        """Send the rest; the status, and all of the answer."""
        self.writer.write(self.body[1:])
        return await self.answer()

    async def answer(self) -> tuple[int, str]:
        """The status and the body of what the gateway says before it closes the connection."""
        async with asyncio.timeout(LIMIT):
            answer = await self.reader.read()
        return int(answer.split()[1]), answer.decode()


@contextlib.asynccontextmanager
async def hold(gateway: Gateway, path: str, headers: Mapping[str, str], body: object) -> AsyncGenerator[HeldRequest]:
    """Send a request, and keep back all but the first byte of its body."""
    text, port = json.dumps(body).encode(), int(gateway.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    named = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(text)),
        "Connection": "close",
        **headers,
    }
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"{head}\r\n".encode() + text[:1])
    request = HeldRequest(gateway, text, reader, writer)
    try:
        await request.settle()
        yield request
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def hold_call(gateway: Gateway, token: Headers, way: str) -> AsyncGenerator[HeldRequest]:
    """Send a call by one of the ways there are, and keep back its body."""
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL}
        path, headers = "/mcp", dict(token)
        if way == "handshake":
            session = await open_session(http, gateway.mcp, token)
            # The fast path takes what it knows from here on.
            assert await ask_session(http, gateway.mcp, session, token) == 200
            headers |= session
        elif way == "modern":
            message, own = modern_request("tools/call", **CALL)
            headers |= own
        else:
            path, message = "/api/tools/one__echo/call", {"arguments": CALL["arguments"]}
        async with hold(gateway, path, headers, message) as request:
            yield request


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway that lets in nobody without a credential, in front of one server."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}, auth=AUTH) as opened:
        await opened.board.refresh()
        yield opened


async def remove(gateway: Gateway, name: str) -> None:
    """Remove a token, as somebody else does."""
    await gateway.board.storage.tokens.remove(name)
    await gateway.load_tokens()


@pytest.mark.scenario("access: Who sends a request is asked again when its body is whole")
@pytest.mark.parametrize("way", ["handshake", "modern", "rest"])
async def test_a_call_whose_token_is_removed_before_its_body_came_is_refused(gateway: Gateway, way: str) -> None:
    """Without waiting for the body where somebody waits for it; its server hears nothing of it."""
    token = await gateway.token("gone")
    async with hold_call(gateway, token, way) as request:
        await remove(gateway, "gone")
        status, text = await request.finish()
    assert (status, "hello" in text) == (401, False), text


@pytest.mark.scenario("access: Who sends a request is asked again when its body is whole")
@pytest.mark.parametrize("way", ["handshake", "modern", "rest"])
async def test_a_call_whose_rule_changes_before_its_body_came_is_judged_by_the_new_one(
    gateway: Gateway, way: str
) -> None:
    """As if there were no such tool, where that is what the rule says by now."""
    token = await gateway.token("ruled")
    async with hold_call(gateway, token, way) as request:
        rules = [{"who": ["token:ruled"], "servers": []}]
        await gateway.configure({"one": toy()}, audit={}, auth={**AUTH, "rules": rules})
        _, text = await request.finish()
    assert "hello" not in text
    assert "nknown tool" in text or "TOOL_NOT_FOUND" in text, text


@pytest.mark.scenario("access: Who sends a request is asked again when its body is whole")
@pytest.mark.parametrize("way", ["handshake", "modern", "rest"])
async def test_a_call_whose_token_expires_before_its_body_came_is_refused(
    gateway: Gateway, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was let in is the call, and there is none yet."""
    token = await gateway.token("expiring", expires_at=time.time() + 3600)
    async with hold_call(gateway, token, way) as request:
        later = time.time() + 3601
        monkeypatch.setattr(time, "time", lambda: later)
        status, text = await request.finish()
    assert (status, "has expired" in text) == (401, True), text


@pytest.mark.parametrize("way", ["handshake", "modern", "rest"])
async def test_a_body_that_comes_later_is_obeyed_while_nothing_changes(gateway: Gateway, way: str) -> None:
    """Also if other rules changed meanwhile, and other tokens."""
    token = await gateway.token("stays")
    await gateway.token("gone")
    async with hold_call(gateway, token, way) as request:
        await remove(gateway, "gone")
        rules = [{"who": ["token:other"], "servers": []}]
        await gateway.configure({"one": toy()}, audit={}, auth={**AUTH, "rules": rules})
        status, text = await request.finish()
    assert (status, "hello" in text) == (200, True), text


@pytest.mark.scenario("access: Nothing is kept for whoever is not known")
@pytest.mark.parametrize(
    "path", ["/health", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
async def test_what_is_open_to_everybody_takes_no_body(gateway: Gateway, path: str, method: str, length: str) -> None:
    """It is refused by its head, and the connection closed."""
    port = int(gateway.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(LIMIT):
        answer = await reader.read()
    writer.close()
    assert answer.split()[1] == b"413"
    assert b"TOOL_INVALID_INPUT" in answer


def _demote(gateway: Gateway) -> Callable[[], Any]:
    async def change() -> None:
        rules = [{"who": ["token:boss"], "servers": ["one"]}]
        await gateway.configure({"one": toy()}, audit={}, auth={**AUTH, "rules": rules})

    return change


def _dismiss(gateway: Gateway) -> Callable[[], Any]:
    return lambda: remove(gateway, "boss")


@pytest.mark.scenario("access: Who sends a request is asked again when its body is whole")
@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/tokens", {"name": "again"}), ("/api/servers", {"name": "two", "entry": {"command": "true"}})],
    ids=["tokens", "servers"],
)
@pytest.mark.parametrize(("how", "status"), [(_dismiss, 401), (_demote, 403)], ids=["removed", "demoted"])
async def test_what_is_for_admins_is_refused_to_whoever_was_one_at_the_head(
    gateway: Gateway, path: str, body: Mapping[str, Any], how: Callable[[Gateway], Callable[[], Any]], status: int
) -> None:
    """Nobody makes themselves a new token, or runs a program, with a request that they began in time."""
    token = await gateway.token("boss", admin=True)
    async with hold(gateway, path, token, body) as request:
        await how(gateway)()
        assert (await request.finish())[0] == status
    await gateway.load_tokens()
    known = [token.name for token in gateway.front.authenticator.tokens.list_all()]
    assert known == (["boss"] if status == 403 else [])
    assert set(gateway.board.settings.servers) == {"one"}
