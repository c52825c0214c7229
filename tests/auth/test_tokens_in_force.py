"""Tokens of a running gateway: who has one is let in. Whoever's is removed, rotated or expired is refused on the next
request on every path, and loses streams and sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from auth.asking import ask_modern, ask_session, ends, modern_request, open_session, open_stream
from harness import LIMIT, Gateway, eventually, open_gateway, toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

LISTEN = {"notifications": {"toolsListChanged": True}}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway that lets in nobody without a credential, in front of one server."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as opened:
        await opened.board.refresh()
        yield opened


@pytest.fixture
async def http() -> AsyncGenerator[httpx2.AsyncClient]:
    """Connections to it."""
    async with httpx2.AsyncClient(timeout=LIMIT) as client:
        yield client


async def add(gateway: Gateway, name: str = "ci", expires: str | None = None, **rule: Any) -> dict[str, str]:
    """The header of a new token, made as REST makes it."""
    _, text = await registry(gateway).add(name, rule, expires)
    return bearer(text)


def registry(gateway: Gateway) -> Any:
    """What REST changes tokens with."""
    from pegboard.auth.token_registry import TokenRegistry

    return TokenRegistry(gateway.board.storage.tokens, gateway.front.token_watch.load)


def bearer(text: str) -> dict[str, str]:
    """The header of a token."""
    return {"Authorization": f"Bearer {text}"}


async def call(http: httpx2.AsyncClient, gateway: Gateway, credentials: Mapping[str, str]) -> int:
    """The status of a call."""
    arguments = {"text": "hello"}
    answer = await ask_modern(http, gateway.mcp, credentials, "tools/call", name="one__echo", arguments=arguments)
    return answer.status_code


async def test_who_has_a_token_is_let_in_and_nobody_else(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """In both eras, again and again; without one, or with a secret that was never given out, nobody is."""
    credentials = await add(gateway)
    wrong = {"Authorization": credentials["Authorization"][:-1] + "~"}
    other = {"Authorization": credentials["Authorization"][:-5] + "AAAAA"}
    session = await open_session(http, gateway.mcp, credentials)
    for _ in range(3):
        assert await call(http, gateway, credentials) == 200
        assert await ask_session(http, gateway.mcp, session, credentials) == 200
        for nobody in ({}, wrong, other):
            assert await call(http, gateway, nobody) == 401
            assert await ask_session(http, gateway.mcp, session, nobody) == 401


@pytest.mark.scenario("access: A token that is over is refused and its streams end")
@pytest.mark.parametrize("how", ["removed", "rotated", "expired"])
async def test_a_token_that_is_over_is_refused_and_its_streams_end(
    gateway: Gateway, http: httpx2.AsyncClient, how: str
) -> None:
    """The standing stream of a session, and that of subscriptions."""
    credentials = await add(gateway, expires="2s" if how == "expired" else None)
    session = await open_session(http, gateway.mcp, credentials)
    assert await call(http, gateway, credentials) == 200
    assert await ask_session(http, gateway.mcp, session, credentials) == 200
    message, headers = modern_request("subscriptions/listen", **LISTEN)
    listening = {**headers, **credentials}
    async with (
        open_stream(http, "GET", gateway.mcp, {**session, **credentials}) as standing,
        open_stream(http, "POST", gateway.mcp, listening, json=message) as subscribed,
    ):
        assert not standing.done()
        assert not subscribed.done()
        if how == "removed":
            await registry(gateway).remove("ci")
        elif how == "rotated":
            await registry(gateway).rotate("ci", None)
        await asyncio.gather(ends(standing), ends(subscribed))
    assert await call(http, gateway, credentials) == 401
    assert await ask_session(http, gateway.mcp, session, credentials) == 401


async def test_a_removed_token_loses_its_sessions_and_others_keep_theirs(
    gateway: Gateway, http: httpx2.AsyncClient
) -> None:
    """Nothing of whoever it was is left in the gateway."""
    gone, stays = await add(gateway, "gone"), await add(gateway, "stays")
    await open_session(http, gateway.mcp, gone)
    kept = await open_session(http, gateway.mcp, stays)
    assert len(gateway.front._manager._server_instances) == 2
    await registry(gateway).remove("gone")
    await eventually(lambda: len(gateway.front._manager._server_instances) == 1)
    assert await ask_session(http, gateway.mcp, kept, stays) == 200


async def test_an_expired_token_loses_its_sessions(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """Without anybody doing anything; it is listed as expired until it is removed."""
    await open_session(http, gateway.mcp, await add(gateway, expires="1s"))
    assert len(gateway.front._manager._server_instances) == 1
    await eventually(lambda: len(gateway.front._manager._server_instances) == 0)
    (token,) = await registry(gateway).list()
    assert token.is_expired(time.time())


@pytest.mark.scenario("access: A session belongs to its principal")
async def test_a_session_goes_on_with_the_secret_that_a_token_gets(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """A client that is given the new one stays who it is."""
    before = await add(gateway)
    session = await open_session(http, gateway.mcp, before)
    _, text = await registry(gateway).rotate("ci", None)
    assert await ask_session(http, gateway.mcp, session, before) == 401
    assert await ask_session(http, gateway.mcp, session, bearer(text)) == 200


@pytest.mark.scenario("access: A session belongs to its principal")
async def test_a_session_of_one_token_is_not_anothers(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """Its id alone is worth nothing: it is as if there were no such session."""
    one, two = await add(gateway, "one"), await add(gateway, "two")
    session = await open_session(http, gateway.mcp, one)
    assert await ask_session(http, gateway.mcp, session, one) == 200
    assert await ask_session(http, gateway.mcp, session, two) == 404
    assert await ask_session(http, gateway.mcp, session, one) == 200


async def test_a_use_is_written_down_and_not_each(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """The first soon, and no other within a minute."""
    credentials = await add(gateway)
    writes: list[dict[str, float]] = []
    store = gateway.board.storage.tokens
    touch = store.touch

    async def count(used: Mapping[str, float]) -> None:
        writes.append(dict(used))
        await touch(used)

    store.touch = count  # type: ignore[method-assign]
    for _ in range(3):
        assert await call(http, gateway, credentials) == 200
    await eventually(lambda: writes)
    assert await call(http, gateway, credentials) == 200
    # The next look is over when it has asked for the version twice.
    asked = asyncio.Event()
    version, times = store.version, iter((False, False, True))

    async def see() -> int:
        if next(times, True):
            asked.set()
        return await version()

    store.version = see  # type: ignore[method-assign]
    await asyncio.wait_for(asked.wait(), LIMIT)
    assert len(writes) == 1
    (token,) = await registry(gateway).list()
    assert token.last_used_at is not None
    assert abs(time.time() - token.last_used_at) < LIMIT
