"""Two principals on one gateway at the same time: each answer is its own, whichever path and era it comes by."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bearers import Headers, bearer_client, bearer_http, principal_of
from harness import Gateway, RawClient, http_client, open_gateway, toy
from pegboard.access.limits import Limits

pytestmark = pytest.mark.anyio

CALLS = 10_000 if os.environ.get("PEGBOARD_LONG_TESTS") else 2_000
AT_ONCE = 12
OWN: dict[str, Any] = {"toolsets": ["discovery"]}


@dataclass
class Side:
    """One principal with its clients, and what it may call."""

    name: str
    server: str
    clients: list[RawClient]
    http: httpx2.AsyncClient
    made: int = 0
    refused: int = 0
    served: set[str] = field(default_factory=set[str])

    async def call(self, chance: random.Random) -> None:
        """One call by one of the ways, whose answer has to be the one to it; or to what is not there for it."""
        self.made += 1
        said = f"{self.name} {self.made}"
        tool = f"{self.server}__echo"
        asked: dict[str, Any] = {"name": tool, "arguments": {"said": said}}
        client = chance.choice(self.clients)
        match chance.randrange(5):
            case 0:
                asked["_meta"] = {"progressToken": said}
                result = await client.request("tools/call", asked)
            case 1:
                result = await client.request("tools/call", {"name": "tool_call", "arguments": asked})
            case 2:
                answer = (await self.http.post(f"/api/tools/{tool}/call", json={"arguments": {"said": said}})).json()
                refused: dict[str, Any] = {"isError": True, "content": [{"text": json.dumps(answer)}]}
                result = answer.get("data") or refused
            case _:
                result = await client.request("tools/call", asked)
        text = result["content"][0]["text"]
        if result.get("isError"):
            assert json.loads(text)["error"]["code"] == "RATE_LIMITED"
            self.refused += 1
        else:
            assert json.loads(text) == {"said": said}
            self.served.add(said)


async def run(sides: list[Side], count: int, seed: int) -> None:
    """So many calls, some of each at once."""
    numbers = iter(range(count))

    async def work(side: Side, chance: random.Random) -> None:
        for _ in numbers:
            await side.call(chance)

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(work(sides[number % len(sides)], random.Random(seed + number)))


@contextlib.asynccontextmanager
async def side_of(gateway: Gateway, name: str, server: str, headers: Headers) -> AsyncGenerator[Side]:
    """A principal with a client of each era."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(bearer_client(gateway, headers, version, name=name))
            for version in ("2025-11-25", "2026-07-28")
        ]
        http = await stack.enter_async_context(bearer_http(gateway, headers))
        yield Side(name, server, clients, http)


async def connect_servers(gateway: Gateway) -> None:
    async with http_client(gateway.mcp) as local:
        for server in ("one", "two"):
            await local.until_in("tools", f"{server}__echo")
            await local.call(f"{server}__echo", {})


@pytest.mark.scenario("access: Each answer is its principal's own")
async def test_each_answer_is_its_own(tmp_path: Path) -> None:
    """Mixed calls of two tokens with different rules; in the end nothing is in flight."""
    servers = {"one": toy(name="one"), "two": toy(name="two", era="modern")}
    async with open_gateway(tmp_path, servers, **OWN) as gateway:
        await connect_servers(gateway)
        ada = await gateway.token("ada", servers=["one"], inFlight=1000, perServer={"one": {"inFlight": 1000}})
        bob = await gateway.token("bob", servers=["two"], inFlight=1000)
        before = gateway.board.metrics.calls.copy()
        declined = gateway.board.metrics.declined.copy()
        async with side_of(gateway, "ada", "one", ada) as first, side_of(gateway, "bob", "two", bob) as second:
            assert (await first.clients[0].names())[-1] != (await second.clients[0].names())[-1]
            await run([first, second], CALLS, seed=19)
        limits = gateway.board.limits
        for token in (ada, bob):
            for server in (None, "one", "two"):
                assert limits.in_flight(principal_of(gateway, token), server) == 0
        assert (first.refused, second.refused) == (0, 0)
        assert (len(first.served), len(second.served)) == (first.made, second.made)
        assert first.made + second.made == CALLS
        counted = gateway.board.metrics.calls - before
        assert counted == {("one", "ok"): first.made, ("two", "ok"): second.made}
        # Both paths were taken, each by many.
        taken = gateway.board.metrics.declined - declined
        full = sum(taken.values())
        assert CALLS / 10 < full < CALLS


@pytest.mark.scenario("access: Limits are never exceeded")
async def test_limits_are_never_exceeded(tmp_path: Path) -> None:
    """By a clock that stands still, exactly so many calls go through as the rate allows; then as it comes back."""
    now = 1000.0
    servers = {"one": toy(name="one"), "two": toy(name="two", era="modern")}
    async with open_gateway(tmp_path, servers, **OWN) as gateway:
        await connect_servers(gateway)
        gateway.board.limits._clock = lambda: now
        ada = await gateway.token("ada", rate="100/m", perServer={"*": {"inFlight": 3}})
        bob = await gateway.token("bob", perServer={"two": {"rate": "40/m"}})
        async with side_of(gateway, "ada", "one", ada) as first, side_of(gateway, "bob", "two", bob) as second:
            most = watch(gateway.board.limits, principal_of(gateway, ada).id)
            await run([first, second], 600, seed=6)
            assert len(first.served) <= 100
            assert len(second.served) == 40
            assert 0 < most[0] <= 3
            while len(first.served) < 100:
                await first.call(random.Random(1))
            # Half a minute brings back half of them.
            now += 30.0
            first.served.clear()
            second.served.clear()
            for side, back in ((first, 50), (second, 20)):
                for _ in range(60):
                    await side.call(random.Random(side.made))
                assert len(side.served) == back


def watch(limits: Limits, principal: str) -> list[int]:
    """The most calls of a principal that are under way at server `one` at any time."""
    most = [0]
    admit = limits._admit

    def watching(whose: str, access: Any, server: str | None) -> Any:
        slot = admit(whose, access, server)
        if whose == principal:
            most[0] = max(most[0], limits._meters[whose, "one"].in_flight)
        return slot

    limits._admit = watching  # type: ignore[method-assign]
    return most
