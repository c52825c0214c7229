"""A door that is closed: whoever came in without a credential is not in any more, and their streams end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from auth.asking import ask_modern, ask_session, ends, modern_request, open_session, open_stream
from harness import LIMIT, Gateway, open_gateway, toy
from pegboard.auth.proof import PROOF_HEADER, make_proof

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ELSEWHERE = {"x-forwarded-for": "203.0.113.9"}
SHUT: dict[str, Any] = {"required": True}
WAYS = {"shut": SHUT, "remote": {"required": "remote"}}
RULES = {"required": False, "rules": [{"who": ["anonymous"], "servers": []}]}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway that wants a credential of nobody, in front of one server."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": False}) as opened:
        await opened.board.refresh()
        yield opened


@pytest.fixture
async def http() -> AsyncGenerator[httpx2.AsyncClient]:
    """Connections to it."""
    async with httpx2.AsyncClient(timeout=LIMIT) as client:
        yield client


@contextlib.asynccontextmanager
async def both_streams(
    http: httpx2.AsyncClient, gateway: Gateway, headers: Mapping[str, str]
) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """The standing stream of a session, and that of subscriptions."""
    session = await open_session(http, gateway.mcp, headers)
    message, own = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    async with (
        open_stream(http, "GET", gateway.mcp, {**session, **headers}) as standing,
        open_stream(http, "POST", gateway.mcp, {**own, **headers}, json=message) as subscribed,
    ):
        yield [standing, subscribed]


@pytest.mark.scenario("access: Streams end when the door is closed")
@pytest.mark.parametrize("auth", [*WAYS.values(), RULES], ids=[*WAYS, "a rule"])
async def test_the_streams_of_whoever_is_unknown_end_when_the_door_is_closed(
    gateway: Gateway, http: httpx2.AsyncClient, auth: Mapping[str, Any]
) -> None:
    """Or when a rule is made for them; those of a token go on."""
    token = await gateway.token("known")
    async with both_streams(http, gateway, ELSEWHERE) as ending, both_streams(http, gateway, token) as lasting:
        assert not any(stream.done() for stream in (*ending, *lasting))
        await gateway.configure({"one": toy()}, auth=auth)
        await asyncio.gather(*map(ends, ending))
        # A rule that changes is another principal for subscriptions; the session's own goes on.
        assert not lasting[0].done()


@pytest.mark.scenario("access: Streams end when the door is closed")
async def test_the_streams_of_this_machines_user_end_when_a_credential_is_wanted_of_them(
    gateway: Gateway, http: httpx2.AsyncClient
) -> None:
    """Not so where they go on being let in, nor those that proved whose they are."""
    port = int(gateway.url.rpartition(":")[2])
    proof = {PROOF_HEADER: make_proof(gateway.front.token, port)}
    async with both_streams(http, gateway, {}) as own, both_streams(http, gateway, proof) as proven:
        await gateway.configure({"one": toy()}, auth={"required": "remote"})
        assert (await ask_modern(http, gateway.mcp, {}, "tools/list")).status_code == 200
        assert not any(stream.done() for stream in (*own, *proven))
        await gateway.configure({"one": toy()}, auth=SHUT)
        await asyncio.gather(*map(ends, own))
        assert (await ask_modern(http, gateway.mcp, {}, "tools/list")).status_code == 401
        assert not proven[0].done()


@pytest.mark.scenario("access: Streams end when the door is closed")
async def test_a_call_of_whoever_is_unknown_ends_when_the_door_is_closed(
    gateway: Gateway, http: httpx2.AsyncClient
) -> None:
    """Its server is told; a session from before is worth nothing."""
    session = await open_session(http, gateway.mcp, ELSEWHERE)
    params = {"name": "one__sleep", "arguments": {"seconds": 60}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    calling = asyncio.create_task(http.post(gateway.mcp, json=message, headers={**session, **ELSEWHERE}))
    async with asyncio.timeout(LIMIT):
        while "tools/call" not in (await seen(gateway))["meta"]:
            await asyncio.sleep(0.01)
        await gateway.configure({"one": toy()}, auth=SHUT)
        assert "awake" not in (await calling).text
        while not (await seen(gateway))["cancelled"]:
            await asyncio.sleep(0.01)
    assert await ask_session(http, gateway.mcp, session, ELSEWHERE) == 401


async def seen(gateway: Gateway) -> dict[str, Any]:
    """What the server noticed."""
    answer = (await gateway.board.calls.call_for_python("one__seen")).data
    assert answer is not None
    return answer["structuredContent"]
