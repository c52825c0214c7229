"""Who comes first at what a server asks: principals take turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from pegboard.servers import question_owners as module
from servers.leaping import LeapingLoop
from servers.stage import LIMIT, Call, Client, Stage, residue, settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """All of this happens in leaping time."""
    return "asyncio", {"loop_factory": LeapingLoop}


@pytest.fixture
async def stage() -> AsyncGenerator[Stage]:
    """A pipe to one server; in the end nothing of it is left."""
    stage = Stage()
    async with asyncio.timeout(LIMIT):
        yield stage
    await stage.clear()
    assert residue(stage.parties) == (0, 0, 0)


def introduce(stage: Stage, name: str, principal: str) -> None:
    """A client of a principal."""
    stage.clients[name] = Client(name)
    stage.clients[name].principal_id = principal


async def known_to_ask(stage: Stage, subject: str) -> None:
    """Have something asked once, so that it is leased to one client at a time."""
    call = await stage.call("first", subject)
    await (await stage.ask()).answer()
    await call.end()


async def test_principals_take_turns_at_what_asks(stage: Stage) -> None:
    """Whoever has many calls waiting, of many clients, does not keep another principal's one waiting for all."""
    await known_to_ask(stage, "asks")
    introduce(stage, "b", "bob")
    calls: list[Call] = []
    for number in range(5):
        introduce(stage, f"a{number}", "ada")
        calls.append(await stage.call(f"a{number}", "asks"))
    one = await stage.call("b", "asks")
    assert [call.here for call in (*calls, one)] == [True, False, False, False, False, False]
    for number in range(2):
        if not one.here:
            await calls[number].end()
            await settle()
    assert one.here
    assert sum(call.here for call in calls) <= 2


async def test_whoever_calls_one_after_the_other_lets_another_principal_come_between(stage: Stage) -> None:
    """Calls of one client go side by side, but not for ever while somebody else waits."""
    await known_to_ask(stage, "asks")
    introduce(stage, "a", "ada")
    introduce(stage, "b", "bob")
    first = await stage.call("a", "asks")
    beside = await stage.call("a", "asks")
    assert beside.here
    waiting = await stage.call("b", "asks")
    later = await stage.call("a", "asks")
    assert (waiting.here, later.here) == (False, False)
    await first.end()
    await beside.end()
    await settle()
    assert (waiting.here, later.here) == (True, False)
    await waiting.end()
    await settle()
    assert later.here


async def test_whoever_lets_another_come_between_does_not_wait_for_ever(stage: Stage) -> None:
    """A call may need another one of the same client to go on."""
    await known_to_ask(stage, "asks")
    introduce(stage, "a", "ada")
    introduce(stage, "b", "bob")
    await stage.call("a", "asks")
    waiting = await stage.call("b", "asks")
    later = await stage.call("a", "asks")
    await asyncio.sleep(module.FIRST_USE + 0.1)
    assert (waiting.here, later.here) == (False, True)
