"""Several gateways on one storage, and a storage that is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import structlog

from auth.asking import ask_modern, ends, modern_request, open_session, open_stream
from harness import LIMIT, Gateway, eventually, open_gateway, toy
from pegboard.auth import token_watch
from pegboard.auth.token_registry import TokenRegistry
from pegboard.storage import open_storage
from postgres import PostgresServer

pytestmark = pytest.mark.anyio
CLOSED = {"auth": {"required": True}}


async def status(http: httpx2.AsyncClient, gateway: Gateway, text: str) -> int:
    """Of a request with this token."""
    return (await ask_modern(http, gateway.mcp, {"Authorization": f"Bearer {text}"}, "tools/list")).status_code


async def until(http: httpx2.AsyncClient, gateway: Gateway, text: str, wanted: int) -> None:
    """Wait until a request with this token has that status."""
    async with asyncio.timeout(LIMIT):
        while await status(http, gateway, text) != wanted:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def follow(http: httpx2.AsyncClient, gateway: Gateway, text: str) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """The standing stream of a session, and that of subscriptions."""
    credentials = {"Authorization": f"Bearer {text}"}
    session = await open_session(http, gateway.mcp, credentials)
    asked, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    async with (
        open_stream(http, "GET", gateway.mcp, {**session, **credentials}) as standing,
        open_stream(http, "POST", gateway.mcp, {**headers, **credentials}, json=asked) as subscribed,
    ):
        assert not standing.done()
        assert not subscribed.done()
        yield [standing, subscribed]


@pytest.mark.scenario("access: All gateways on one storage notice a change of tokens")
@pytest.mark.both_paths
async def test_what_one_gateway_changes_holds_at_the_other(tmp_path: Path, place: str) -> None:
    """Added, rotated and removed; streams and sessions of the other end, too. It looks twice a second."""
    assert token_watch._LOOK_EVERY <= 0.5
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(open_gateway(tmp_path / name, {"one": toy()}, storage=place, **CLOSED))
            for name in ("a", "b")
        ]
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=LIMIT))
        tokens = TokenRegistry(one.board.storage.tokens, one.front.token_watch.load)
        _, text = await tokens.add("ci", {}, None)
        assert await status(http, one, text) == 200
        await until(http, two, text, 200)
        async with follow(http, two, text) as streams:
            _, other = await tokens.rotate("ci", None)
            await asyncio.gather(*map(ends, streams))
        await until(http, two, other, 200)
        assert await status(http, two, text) == 401
        async with follow(http, two, other) as streams:
            await tokens.remove("ci")
            await asyncio.gather(*map(ends, streams))
        await eventually(lambda: not two.front._manager._server_instances)
        assert await status(http, two, other) == 401


async def test_another_process_changes_tokens_on_the_same_storage(tmp_path: Path, place: str) -> None:
    """As a command does where it does not find the gateway."""
    async with open_gateway(tmp_path, {}, storage=place, **CLOSED) as gateway, httpx2.AsyncClient() as http:
        storage = open_storage(place)
        await storage.open()
        try:
            _, text = await TokenRegistry(storage.tokens).add("ci", {}, None)
            await until(http, gateway, text, 200)
            await TokenRegistry(storage.tokens).remove("ci")
            await until(http, gateway, text, 401)
        finally:
            await storage.close()


@pytest.mark.scenario("access: All gateways on one storage notice a change of tokens")
async def test_while_storage_is_away_the_tokens_known_stay_in_force(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    """It is said once, and what changed meanwhile is noticed when it is back."""
    with structlog.testing.capture_logs() as lines:
        structlog.configure(cache_logger_on_first_use=False)
        async with open_gateway(tmp_path, {}, storage=postgres_url, **CLOSED) as gateway, httpx2.AsyncClient() as http:
            tokens = TokenRegistry(gateway.board.storage.tokens, gateway.front.token_watch.load)
            _, text = await tokens.add("ci", {}, None)
            async with postgres.away():
                await eventually(lambda: [line for line in lines if line["event"] == "tokens.storage.away"])
                assert await status(http, gateway, text) == 200
                assert await status(http, gateway, text[:-5] + "AAAAA") == 401
            await eventually(lambda: [line for line in lines if line["event"] == "tokens.storage.back"])
            _, other = await tokens.add("later", {}, None)
            assert await status(http, gateway, other) == 200
            assert await status(http, gateway, text) == 200
    events = [line["event"] for line in lines]
    assert events.count("tokens.storage.away") == 1
    assert text not in json.dumps(lines, default=str)


async def test_a_token_that_cannot_be_read_is_said_once_and_lets_nobody_in(tmp_path: Path) -> None:
    """The gateway starts, and the other tokens are in force."""
    place = f"sqlite:{tmp_path / 'tokens.db'}"
    storage = open_storage(place)
    await storage.open()
    _, strange = await TokenRegistry(storage.tokens).add("strange", {}, None)
    _, plain = await TokenRegistry(storage.tokens).add("plain", {}, None)
    query = "UPDATE tokens SET rule = ? WHERE name = 'strange'"
    await storage.database.write(lambda connection: connection.execute(query, '{"newer": true}'))
    await storage.close()
    with structlog.testing.capture_logs() as lines:
        async with open_gateway(tmp_path, {}, storage=place, **CLOSED) as gateway, httpx2.AsyncClient() as http:
            assert await status(http, gateway, strange) == 401
            assert await status(http, gateway, plain) == 200
            await TokenRegistry(gateway.board.storage.tokens, gateway.front.token_watch.load).remove("plain")
    said = [line for line in lines if line["event"] == "token.invalid"]
    assert [(line["token"], "its rule cannot be read" in line["reason"]) for line in said] == [("strange", True)]
