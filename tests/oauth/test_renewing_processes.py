"""Processes that share a storage: however many find a token expired at once, one renews it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest

from auth.provider import open_provider
from forking import warm_start
from harness import LIMIT
from oauth.grant_stage import (
    KEY,
    Desk,
    TokenProxy,
    let_expire,
    make_spec,
    open_desk,
    protected_toy,
    send_through,
    sign_in,
    token_proxy,
)

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parent / "renewing_process.py"
ROUNDS = 100 if os.environ.get("PEGBOARD_LONG_TESTS") else 5
PROCESSES = 8
# Starting them all takes its time on a busy machine.
PATIENCE = 3 * LIMIT


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage on PostgreSQL wants one."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", KEY)


@pytest.fixture(scope="module")
def issuer() -> Generator[str]:
    """An authorization server that takes a refresh token which comes twice for stolen."""
    with open_provider() as issuer:
        yield issuer


@pytest.fixture
def proxy(issuer: str) -> Generator[TokenProxy]:
    """What stands before the token endpoint."""
    with token_proxy(f"{issuer}/token") as proxy:
        yield proxy


@pytest.fixture
async def desk(place: str, issuer: str, proxy: TokenProxy) -> AsyncGenerator[Desk]:
    """A gateway that is signed in, on each database in turn."""
    with protected_toy(issuer) as server:
        async with open_desk(place, make_spec(server.url)) as desk:
            await sign_in(desk)
            await send_through(desk, proxy)
            yield desk


class Renewer:
    """A gateway in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def do(self, command: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n".encode())
        with anyio.fail_after(PATIENCE):
            return (await self.process.stdout.readline()).decode().strip()


@contextlib.asynccontextmanager
async def start_renewers(desk: Desk, place: str, count: int, lease: float = 30.0) -> AsyncGenerator[list[Renewer]]:
    """So many of them, until the block ends."""
    arguments = (place, desk.specs["notes"].url or "", str(lease))
    pipe = asyncio.subprocess.PIPE
    started = [
        await asyncio.create_subprocess_exec(*warm_start(SCRIPT), *arguments, stdin=pipe, stdout=pipe)
        for _ in range(count)
    ]
    try:
        yield [Renewer(process) for process in started]
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.mark.scenario("grants: Processes that share a storage renew a grant once")
async def test_eight_processes_at_expiry_ask_once(desk: Desk, place: str, proxy: TokenProxy) -> None:
    """As many requests as rounds, none of them refused, and everybody has the same token."""
    async with start_renewers(desk, place, PROCESSES) as renewers:
        for number in range(1, ROUNDS + 1):
            await let_expire(desk)
            assert len(set(await asyncio.gather(*(each.do("look") for each in renewers)))) == PROCESSES
            tokens = set(await asyncio.gather(*(each.do("call") for each in renewers)))
            assert len(tokens) == 1, tokens
            assert (proxy.asked, proxy.errors) == (number, [])


@pytest.mark.parametrize("reaches", [False, True], ids=["before it was answered", "after it was answered"])
@pytest.mark.scenario("grants: A process that is killed while it renews keeps nobody waiting")
async def test_a_process_that_is_killed_keeps_nobody_waiting(
    desk: Desk, place: str, proxy: TokenProxy, reaches: bool
) -> None:
    """Killed while it renews, its lease runs out and another goes on; or, where the token was used up, says so."""
    await let_expire(desk)
    proxy.hold, proxy.drops = threading.Event(), not reaches
    async with start_renewers(desk, place, 2, lease=2.0) as (first, second):
        pid, _ = [int(await each.do("look")) for each in (first, second)]
        hung = asyncio.create_task(first.do("call"))
        await asyncio.to_thread(proxy.waiting.wait, PATIENCE)
        waits = asyncio.create_task(second.do("call"))
        os.kill(pid, signal.SIGKILL)
        await first.process.wait()
        proxy.hold.set()
        proxy.hold = None
        answer = await waits
        await hung
        (login,) = await desk.oauth.logins()
        if reaches:
            assert (answer, login.state, proxy.errors) == ("needs revoked", "revoked", ["invalid_grant"])
            assert "a renewal was interrupted" in login.reason
        else:
            assert (len(answer), login.state, proxy.errors) == (64, "live", [])
        assert proxy.asked == 2
