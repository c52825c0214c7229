"""Gateways on one storage: what is decided at one of them holds at the others."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from time import monotonic

import pytest

from harness import eventually
from pegboard.config import ServerSpec
from pegboard.pins import news_pace, watch
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


async def test_gateways_do_not_drive_each_other(
    tmp_path: Path, storage_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that says something else each time is asked by whoever wants to, and not because others have noticed
    it."""
    looks = {"one": 0, "two": 0}
    monkeypatch.setattr(watch, "_LOOK_EVERY", 0.02)
    counted = tmp_path / "counted"
    async with open_two(tmp_path, storage_address) as (one, two):
        one.server.say(BUY, counted=str(counted))
        for shop in (one, two, one, two):
            await shop.refresh()
        version = await one.gateway.board.storage.pins.version()
        assert counted.stat().st_size == 4
        for name, shop in (("one", one), ("two", two)):
            monkeypatch.setattr(shop.gateway.board.pins, "has_news", _count(shop.gateway.board.pins, looks, name))
        await eventually(lambda: min(looks.values()) > 40)
        assert counted.stat().st_size == 4
        assert await one.gateway.board.storage.pins.version() == version


def _count(pins: Pins, looks: dict[str, int], name: str) -> Callable[[], Awaitable[bool]]:
    has_news = pins.has_news

    async def look() -> bool:
        looks[name] += 1
        return await has_news()

    return look


async def test_news_of_one_server_are_kept_and_told_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it says something else; and the last state is kept and told in the end."""
    most, pause = 3, 0.5
    monkeypatch.setattr(news_pace, "_MOST", most)
    monkeypatch.setattr(news_pace, "_PAUSE", pause)
    spec = ServerSpec(name="shop", given_name="shop", command="shop")
    storage = open_storage(f"sqlite:{tmp_path / 'x.db'}")
    await storage.open()
    told: list[str] = []
    try:
        pins = Pins(storage.pins, lambda _: "hold")
        pins.on_news = lambda _spec, _state, changes: told.extend(change.said for change in changes)
        await pins.review(spec, "tool", [BUY])
        version, began = await storage.pins.version(), monotonic()
        for number in range(100):
            await pins.review(spec, "tool", [tool("buy", f"Buys {number}.")])
        said = pins.state(spec).said["tool"]["buy"].digest
        bound = most + 1 + (monotonic() - began) / pause
        assert len(told) <= bound < 100
        assert await storage.pins.version() - version <= bound
        await eventually(lambda: told[-1] == said)
        later = Pins(storage.pins, lambda _: "hold")
        await later.open()
        assert later.state(spec).pins.is_noticed("tool", "buy", said)
        await pins.close()
    finally:
        await storage.close()


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
