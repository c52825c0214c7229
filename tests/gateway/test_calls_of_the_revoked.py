"""Calls that are under way when their principal is over: revoked, they end on either path and are recorded; expired or
under other rules, they are answered."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from audit.readers import outcomes, records_of
from auth.asking import ask_modern, ask_session, ends, open_session, open_stream
from bearers import Headers, principal_of
from harness import LIMIT, Gateway, eventually, open_gateway, toy
from pegboard.gateway.fastpath.rules import PATIENCE, is_open
from pegboard.servers import raw_call

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

OWN: dict[str, Any] = {"audit": {}, "auth": {"required": True}}
CALL = {"name": "one__sleep", "arguments": {"seconds": 1}}
RULE: dict[str, Any] = {"inFlight": 5, "perServer": {"one": {"inFlight": 5}}}


async def call(http: httpx2.AsyncClient, gateway: Gateway, token: Headers, era: str) -> httpx2.Response:
    """A call that takes its server some time."""
    if era == "modern":
        return await ask_modern(http, gateway.mcp, token, "tools/call", **CALL)
    session = await open_session(http, gateway.mcp, token)
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL}
    return await http.post(gateway.mcp, json=message, headers={**session, **token})


def in_flight(gateway: Gateway, token: Headers) -> list[int]:
    """The calls of a token that are under way: in all, and at the server."""
    principal = principal_of(gateway, token)
    return [gateway.board.limits.in_flight(principal, server) for server in (None, "one")]


@pytest.mark.scenario("access: The calls of a revoked principal end and are recorded")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_ends_with_its_principal_and_is_recorded(tmp_path: Path, era: str) -> None:
    """Its client is refused, its server is told, and its place within the limits is free again."""
    async with open_gateway(tmp_path, {"one": toy()}, **OWN) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        token = await gateway.token("gone", **RULE)
        principal = principal_of(gateway, token)
        calling = asyncio.create_task(call(http, gateway, token, era))
        await eventually(lambda: in_flight(gateway, token) == [1, 1])
        await gateway.board.storage.tokens.remove("gone")
        await gateway.load_tokens()
        answer = await calling
        # A stream that the SDK has begun to answer with says why in the call's result.
        assert answer.status_code == 401 or answer.headers["content-type"].startswith("text/event-stream")
        assert "awake" not in answer.text
        assert "not valid any more" in answer.text
        limits = gateway.board.limits
        await eventually(lambda: not any(limits.in_flight(principal, server) for server in (None, "one")))
        assert outcomes(await records_of(gateway)) == [("one__sleep", "cancelled")]
        refused = [record.outcome for record in await records_of(gateway, "access")]
        assert refused == ["refused:invalid_token"] * (answer.status_code == 401)
        seen = (await gateway.board.calls.call_for_python("one__seen")).data
        assert seen is not None
        assert len(seen["structuredContent"]["cancelled"]) == 1


@pytest.mark.scenario("access: A rule that changes holds at once")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_finishes_under_other_rules(tmp_path: Path, era: str) -> None:
    """It was let in under the rules of its time; they do not hold for the next one."""
    async with open_gateway(tmp_path, {"one": toy()}, **OWN) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        token = await gateway.token("ruled", **RULE)
        calling = asyncio.create_task(call(http, gateway, token, era))
        await eventually(lambda: in_flight(gateway, token) == [1, 1])
        rules = [{"who": ["token:ruled"], "servers": []}]
        await gateway.configure({"one": toy()}, audit={}, auth={"required": True, "rules": rules})
        answer = await calling
        assert (answer.status_code, "awake" in answer.text) == (200, True), answer.text
        assert "Unknown tool" in (await call(http, gateway, token, era)).text


@pytest.mark.scenario("access: A call finishes whose token gets another secret")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_finishes_whose_token_gets_another_secret(tmp_path: Path, era: str) -> None:
    """The old secret lets nobody in from then on, and its streams end; the session goes on with the new one."""
    async with open_gateway(tmp_path, {"one": toy()}, **OWN) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        owner, token = await gateway.token("owner", admin=True), await gateway.token("rotated", **RULE)
        session = await open_session(http, gateway.mcp, token)
        streamed = {**session, **token, "accept": "text/event-stream"}
        async with open_stream(http, "GET", gateway.mcp, streamed) as stream:
            calling = asyncio.create_task(call(http, gateway, token, era))
            await eventually(lambda: in_flight(gateway, token) == [1, 1])
            answer = await http.post(f"{gateway.url}/api/tokens/rotated/rotate", headers=owner)
            other = {"authorization": f"Bearer {answer.json()['data']['token']}"}
            await ends(stream)
            answer = await calling
        assert (answer.status_code, "awake" in answer.text) == (200, True), answer.text
        assert (await call(http, gateway, token, "modern")).status_code == 401
        assert await ask_session(http, gateway.mcp, session, other) == 200
        assert outcomes(await records_of(gateway))[0] == ("one__sleep", "ok")


@pytest.mark.scenario("access: A call whose token expires meanwhile is answered")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_whose_token_expires_meanwhile_is_answered(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was let in, and its server does what it was asked to; the next one is refused."""
    async with open_gateway(tmp_path, {"one": toy()}, **OWN) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        token = await gateway.token("expiring", expires_at=time.time() + 3600, **RULE)
        # The watch would end the session of an idle one.
        monkeypatch.setattr(gateway.front.token_watch, "_on_expired", _leave_alone)
        calling = asyncio.create_task(call(http, gateway, token, era))
        await eventually(lambda: in_flight(gateway, token) == [1, 1])
        later = time.time() + 3601
        monkeypatch.setattr("pegboard.auth.tokens.time.time", lambda: later)
        answer = await calling
        assert (answer.status_code, "awake" in answer.text) == (200, True), answer.text
        assert (await call(http, gateway, token, "modern")).status_code == 401
        assert outcomes(await records_of(gateway)) == [("one__sleep", "ok")]


async def _leave_alone(_: object) -> None:
    """Nothing is done about it."""


@pytest.mark.scenario("audit: A call that nobody goes on with is recorded")
async def test_a_call_that_nobody_goes_on_with_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session is closed when the fast path hands it over: its server did it, or began to."""
    monkeypatch.setattr(raw_call, "_ORPHANED", 0.01)
    async with open_gateway(tmp_path, {"one": toy()}, **OWN) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        token = await gateway.token("leaving", **RULE)
        session = await open_session(http, gateway.mcp, token)
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL}
        calling = asyncio.create_task(http.post(gateway.mcp, json=message, headers={**session, **token}))
        await eventually(lambda: in_flight(gateway, token) == [1, 1])
        assert (await http.delete(gateway.mcp, headers={**session, **token})).status_code == 200
        await eventually(lambda: in_flight(gateway, token) == [0, 0])
        assert outcomes(await records_of(gateway)) == [("one__sleep", "cancelled")]
        # The server worked on it for as long as the fast path waits, at least where that is open.
        (record,) = await records_of(gateway)
        assert record.us > 0.9 * PATIENCE * 1_000_000 or not is_open()
        await asyncio.wait({calling})
