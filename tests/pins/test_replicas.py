"""Gateways on one storage: what is decided at one of them holds at the others."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from harness import eventually
from pegboard.config import ServerSpec
from pegboard.pins.pins import Pins
from pegboard.storage import open_storage
from pins.shifting import ShiftingGateway, open_shop, tool
from postgres import PostgresServer

pytestmark = pytest.mark.anyio

BUY, CHANGED = tool("buy", "Buys something."), tool("buy", "Buys everything.")


@pytest.fixture(params=["sqlite", "postgres"])
def storage_address(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """One storage for all."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'shared.db'}"
    else:
        yield request.getfixturevalue("postgres_url")


@contextlib.asynccontextmanager
async def open_two(tmp_path: Path, storage: str) -> AsyncGenerator[tuple[ShiftingGateway, ShiftingGateway]]:
    """Two gateways before the same server."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with open_shop(tmp_path / "one", BUY, changes="hold", storage=storage) as one:
        # The same command, so that it is the same server.
        own = {"changes": "hold", "storage": storage, "entry": one.server.entry}
        async with open_shop(tmp_path / "two", BUY, **own) as two:
            yield one, two


@pytest.mark.scenario("changes: All gateways on one storage follow a decision")
async def test_what_is_accepted_at_one_gateway_is_served_by_the_other(tmp_path: Path, storage_address: str) -> None:
    """Within a moment, without anybody asking."""
    async with open_two(tmp_path, storage_address) as (one, two):
        await one.release(CHANGED)
        await two.refresh()
        assert one.served() == two.served() == {"buy": "Buys something."}
        await one.post("/api/changes/shop/accept")
        await eventually(lambda: two.served() == {"buy": "Buys everything."})
        assert await two.waiting() == []


@pytest.mark.scenario("changes: All gateways on one storage follow a decision")
async def test_what_is_rejected_at_one_gateway_is_quiet_at_the_other(tmp_path: Path, storage_address: str) -> None:
    """It does not wait for anybody any more."""
    async with open_two(tmp_path, storage_address) as (one, two):
        await one.release(CHANGED)
        await two.refresh()
        await two.post("/api/changes/shop/reject")
        await eventually(lambda: one.gateway.board.decisions.count("shop") == {})
        assert one.served() == two.served() == {"buy": "Buys something."}


@pytest.mark.scenario("changes: The first sight of a server is its baseline")
async def test_the_first_sight_of_one_gateway_is_the_baseline_of_the_other(
    tmp_path: Path, storage_address: str
) -> None:
    """A gateway that comes later compares with what the first one saw."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with open_shop(tmp_path / "one", BUY, changes="hold", storage=storage_address) as one:
        entry = one.server.entry
        one.server.say(CHANGED)
        async with open_shop(tmp_path / "two", BUY, changes="hold", storage=storage_address, entry=entry) as two:
            assert two.served() == {"buy": "Buys something."}
            assert await two.waiting() == ["buy changed held"]


async def test_a_first_sight_that_cannot_be_stored_counts_all_the_same(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """It is stored as soon as that can be, and what the server says meanwhile is no baseline."""
    spec = ServerSpec(name="shop", given_name="shop", command="shop")
    storage = open_storage(postgres_url)
    await storage.open()
    try:
        pins = Pins(storage.pins, lambda _: "hold")
        await pins.open()
        async with postgres.away():
            assert (await pins.review(spec, "tool", [BUY])).served == [BUY]
            assert (await pins.review(spec, "tool", [CHANGED])).served == [BUY]
        await eventually(lambda: storage.problem is None)
        assert (await pins.review(spec, "tool", [CHANGED])).served == [BUY]
        later = Pins(storage.pins, lambda _: "hold")
        await later.open()
        assert (await later.review(spec, "tool", [CHANGED])).served == [BUY]
    finally:
        await storage.close()
