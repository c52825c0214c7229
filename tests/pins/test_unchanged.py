"""A list that is as it was, to the byte, is not compared again; everything else is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard.config import ServerSpec
from pegboard.config.settings import ChangePolicy
from pegboard.pins import review
from pegboard.pins.pins import Pins
from pegboard.storage import Storage, open_storage

pytestmark = pytest.mark.anyio

SPEC = ServerSpec(name="shop", given_name="shop", command="shop")


def tools(description: str = "Buys.") -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}}
    return [
        {"name": "buy", "description": description, "inputSchema": schema},
        {"name": "sell", "description": "Sells.", "inputSchema": schema, "title": ""},
    ]


class Counted:
    """Counts the definitions whose digests are made."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = review.digest_of_definition

    def __call__(self, definition: Any, *, has_hints: bool = False) -> str:
        self.count += 1
        return self._digest(definition, has_hints=has_hints)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    count = Counted()
    monkeypatch.setattr(review, "digest_of_definition", count)
    return count


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncGenerator[Storage]:
    opened = open_storage(f"sqlite:{tmp_path}/pins.db")
    await opened.open()
    yield opened
    await opened.close()


async def opened(storage: Storage, policy: ChangePolicy = "hold") -> Pins:
    """The pins of a gateway that starts."""
    pins = Pins(storage.pins, lambda _: policy)
    await pins.open()
    return pins


@pytest.mark.scenario("changes: A list that is as it was is not compared again")
async def test_a_restart_compares_nothing_where_nothing_changed(storage: Storage, counted: Counted) -> None:
    await (await opened(storage)).review(SPEC, "tool", tools())
    assert counted.count == 2
    again = await opened(storage)
    assert (await again.review(SPEC, "tool", tools())).served == tools()
    assert counted.count == 2
    # What it says is known all the same: a change is found, and held.
    changed = await again.review(SPEC, "tool", tools("Buys everything."))
    assert changed.served == tools()
    assert [change.name for change in changed.changes] == ["buy"]


@pytest.mark.scenario("changes: A list that is as it was is not compared again")
async def test_what_is_of_no_account_is_compared_once(storage: Storage, counted: Counted) -> None:
    """Another order, an empty title less: nothing differs, and the next start knows it."""
    await (await opened(storage)).review(SPEC, "tool", tools())
    said = [{key: item for key, item in tool.items() if item} for tool in reversed(tools())]
    assert (await (await opened(storage)).review(SPEC, "tool", said)).changes == ()
    assert counted.count == 4
    assert (await (await opened(storage)).review(SPEC, "tool", said)).served == said
    assert counted.count == 4


@pytest.mark.scenario("changes: A list that is as it was is not compared again")
@pytest.mark.parametrize("policy", ["tell", "hold", "locked"])
@pytest.mark.parametrize(
    "change",
    [
        lambda said: said[0].update(description="Buys everything."),
        lambda said: said[0].update(description="Buys.", _meta={"x": 1}),
        lambda said: said.pop(),
        lambda said: said.append({"name": "steal", "inputSchema": {"type": "object"}}),
        lambda said: said[0].update(name="buys"),
    ],
    ids=["a word", "a member", "gone", "new", "renamed"],
)
async def test_a_change_over_a_restart_is_found(
    storage: Storage, policy: ChangePolicy, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    said = tools()
    change(said)
    await (await opened(storage)).review(SPEC, "tool", tools())
    assert (await (await opened(storage, policy)).review(SPEC, "tool", said)).changes


@pytest.mark.scenario("changes: A list that is as it was is not compared again")
async def test_a_decision_makes_the_same_list_another_one(storage: Storage) -> None:
    """What was as approved is not, once something else is approved."""
    pins = await opened(storage)
    await pins.review(SPEC, "tool", tools())
    review_of_new = await pins.review(SPEC, "tool", tools("Buys everything."))
    await pins.decide(SPEC, review_of_new.changes, accept=True)
    before = await (await opened(storage)).review(SPEC, "tool", tools())
    assert [change.what for change in before.changes] == ["changed"]
    assert before.served == tools("Buys everything.")
