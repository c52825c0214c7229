"""A board whose server is signed in to: its calls go on through every expiry, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from auth.provider import browse, open_provider
from harness import LIMIT, open_board, toy
from oauth.grant_stage import REDIRECT, protected_toy, wait_for
from pegboard.board import Board
from pegboard.configured_servers import may_try
from pegboard.gateway.rest.rows import needs_login
from pegboard.servers.server_state import ServerState
from servers.toy_http import HttpToy

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def issuer() -> Generator[str]:
    """Its access tokens last for two seconds."""
    with open_provider(2) as issuer:
        yield issuer


@pytest.fixture
def server(issuer: str) -> Generator[HttpToy]:
    """A server that wants its tokens."""
    with protected_toy(issuer) as toy:
        yield toy


async def sign_in(board: Board) -> None:
    flow = await board.oauth.sign_ins.begin(board.servers["notes"].spec, "", redirect_uri=REDIRECT)
    done = await board.oauth.sign_ins.finish(await browse(flow.url or ""), principal_id=None)
    assert done.state == "done", done.reason


async def call(board: Board) -> Any:
    result = await board.call("notes__echo", {"text": "hello"})
    assert result.success, result.error
    return result


async def test_a_server_is_there_once_somebody_signed_in(tmp_path: Path, server: HttpToy) -> None:
    """It says that it wants a sign-in, has its tools after one, and keeps them after the sign-out."""
    async with open_board(tmp_path, {"notes": {"url": server.url}}) as board:
        refused = await board.refresh(["notes"])
        assert refused.error is not None
        assert "pegboard login notes" in refused.error.message
        assert board.servers["notes"].state is ServerState.NEEDS_AUTH
        await sign_in(board)
        await wait_for(lambda: board.registry.server("notes") is not None)
        await call(board)
        assert await board.oauth.logout("notes", "")
        await wait_for(lambda: board.servers["notes"].state is ServerState.NEEDS_AUTH)
        assert board.registry.server("notes") is not None
        failed = await board.call("notes__echo", {"text": "hello"})
        assert failed.error is not None
        assert "pegboard login notes" in failed.error.message


@pytest.mark.scenario("grants: A token is renewed ahead while it is used")
async def test_calls_go_on_through_expiries_and_a_restart(tmp_path: Path, server: HttpToy) -> None:
    """Sixteen callers without a pause, tokens of two seconds: no call fails; the next start needs nobody."""
    servers = {"notes": {"url": server.url}}
    async with open_board(tmp_path, servers) as board:
        await sign_in(board)
        await wait_for(lambda: board.registry.server("notes") is not None)
        token = board.oauth.authorize(board.servers["notes"].spec, None)
        assert token is not None
        last = token.version + 3

        async def go_on() -> None:
            while token.version < last:
                await call(board)
                await asyncio.sleep(0.02)

        with anyio.fail_after(2 * LIMIT):
            await asyncio.gather(*(go_on() for _ in range(16)))
        assert {outcome for _, outcome in board.metrics.oauth_refreshes} == {"ok"}
    await asyncio.sleep(2.2)
    async with open_board(tmp_path, servers) as board:
        await call(board)
        assert board.metrics.oauth_refreshes == {("notes", "ok"): 1}


async def test_a_board_without_sign_ins_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sealed, asked or watched where nobody signs in."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", "no key at all")
    async with open_board(tmp_path, {"own": toy()}) as board:
        assert (await board.call("own__echo", {"text": "hello"})).success
        assert board.oauth._grants._watching is None
        assert board.oauth._vault._sealer is None
    assert not list(tmp_path.rglob("*.key"))


async def test_the_next_start_knows_that_a_server_waits(tmp_path: Path, server: HttpToy) -> None:
    """It is not taken for one that is away, its name is said once, and it is asked again when somebody lists."""
    servers = {"notes": {"url": server.url}}
    async with open_board(tmp_path, servers) as board:
        await board.refresh(["notes"])
    async with open_board(tmp_path, servers) as board:
        notes = board.servers["notes"]
        assert (notes.state, notes.last_error) == (ServerState.NEEDS_AUTH, "wants a sign-in: pegboard login notes")
        assert needs_login(notes)
        assert may_try(notes)
        assert board.discovery.list_starting() == []
        await board.discovery.discover_new(LIMIT)
        assert (notes.state, may_try(notes)) == (ServerState.NEEDS_AUTH, False)
