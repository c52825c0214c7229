"""Discovery of prompts, resources and templates: with the tools where they come at once, and after them otherwise."""

import asyncio
from dataclasses import replace
from typing import Any

import anyio
import pytest

from catalog.sources import Build, House, Source
from pegboard.catalog import discovery as module
from pegboard.result import unavailable
from pegboard.storage import Storage

pytestmark = pytest.mark.anyio

OTHERS: dict[str, list[Any] | Exception] = {
    "prompts": [{"name": "greet"}],
    "resources": [{"uri": "x://1"}],
    "resourceTemplates": [{"uriTemplate": "x://{a}"}],
}


def shelves(here: House) -> list[list[str]]:
    library = here.library
    return [list(shelf.entries) for shelf in (library.prompts, library.resources, library.templates)]


async def test_what_a_server_has_besides_tools_is_there_with_them(house: Build, sqlite_storage: Storage) -> None:
    """Most servers answer all at once: whoever waited for the tools has everything, and so has the next start."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    here = house(source)
    await here.discovery.discover("git")
    assert shelves(here) == [["git__greet"], ["x://1"], ["x://{a}"]]
    (record,) = await sqlite_storage.catalog.load()
    assert [record.prompts, record.resources, record.templates] == list(OTHERS.values())
    after = house(Source("git"))
    await after.discovery.load()
    assert shelves(after) == shelves(here)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools do not wait for the others at all."""
    monkeypatch.setattr(module, "_OTHERS", 0.0)


@pytest.mark.usefixtures("no_patience")
async def test_a_server_that_is_slow_with_its_prompts_has_its_tools(house: Build, sqlite_storage: Storage) -> None:
    """The others follow on their own, are kept as well, and need not be asked for again."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    source.others_gate.clear()
    here = house(source)
    with anyio.fail_after(30):
        assert (await here.discovery.discover("git")).data == 1
    assert (here.names(), shelves(here)) == (["git__log"], [[], [], []])
    source.others_gate.set()
    await here.settle()
    assert shelves(here) == [["git__greet"], ["x://1"], ["x://{a}"]]
    (record,) = await sqlite_storage.catalog.load()
    assert (record.prompts, len(record.tools)) == (OTHERS["prompts"], 1)
    assert source.asked == 1


async def test_tools_are_there_before_the_others_are_waited_for(house: Build) -> None:
    """Whoever looks meanwhile sees them."""
    source = Source("git", "log")
    source.others_gate.clear()
    here = house(source)
    discovering = asyncio.create_task(here.discovery.discover("git"))
    with anyio.fail_after(30):
        while not here.names():
            await asyncio.sleep(0)
    source.others_gate.set()
    assert (await discovering).data == 1


async def test_prompts_that_are_known_are_not_waited_for(house: Build) -> None:
    """Whoever lists prompts waits only for servers whose prompts nobody has seen."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover("git")
    await here.settle()
    assert here.library.knows("git")
    source.others_gate.clear()
    here.discovery.soon("git")
    with anyio.fail_after(10):
        while not here.discovery._asking:
            await asyncio.sleep(0)
        await here.discovery.discover_resources(60)
    source.others_gate.set()
    await here.settle()


async def test_a_server_whose_tools_fail_has_its_prompts(house: Build) -> None:
    """One kind does not depend on another."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    source.error = unavailable("no tools today")
    here = house(source)
    assert not (await here.discovery.discover("git")).success
    await here.settle()
    assert shelves(here) == [["git__greet"], ["x://1"], ["x://{a}"]]


async def test_a_kind_that_cannot_be_had_now_stays_as_it_was(house: Build) -> None:
    """The others are replaced by what the server says now."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    here = house(source)
    await here.discovery.discover("git")
    source.others = {"prompts": unavailable("broken"), "resources": [{"uri": "x://2"}]}
    await here.discovery.discover("git")
    assert shelves(here) == [["git__greet"], ["x://2"], []]


@pytest.mark.usefixtures("no_patience")
@pytest.mark.parametrize("how", ["disabled", "removed", "moved"])
async def test_prompts_that_come_too_late_do_not_count(house: Build, how: str) -> None:
    """What a server says of them after it was disabled, removed or sent elsewhere is not taken."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    source.others_gate.clear()
    here = house(source)
    await here.discovery.discover("git")
    match how:
        case "disabled":
            source.change(enabled=False)
        case "removed":
            del here.sources["git"]
        case _:
            source.change(command="another")
    source.others_gate.set()
    await here.settle()
    assert shelves(here) == [[], [], []]


@pytest.mark.parametrize("how", ["disabled", "removed"])
async def test_a_server_that_goes_while_its_prompts_are_awaited_is_not_kept_without_its_tools(
    house: Build, sqlite_storage: Storage, how: str
) -> None:
    """Of one that was disabled its tools are still on disk for its return, of one that was removed nothing is."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover("git")
    source.others_gate.clear()
    asking = asyncio.create_task(here.discovery.discover("git"))
    while source.asked < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    spec = source.spec
    if how == "disabled":
        source.change(enabled=False)
        await here.discovery.put_away("git")
    else:
        del here.sources["git"]
        await here.discovery.forget(spec)
    source.others_gate.set()
    await asking
    await here.settle()
    kept = await sqlite_storage.catalog.load()
    assert [len(record.tools) for record in kept] == ([1] if how == "disabled" else [])


@pytest.mark.usefixtures("no_patience")
async def test_prompts_that_never_came_are_not_kept_as_none(house: Build, sqlite_storage: Storage) -> None:
    """A gateway that ends before they were there asks for them at its next start."""
    source = Source("git", "log")
    source.others_gate.clear()
    here = house(source)
    await here.discovery.discover("git")
    await here.discovery.close()
    (record,) = await sqlite_storage.catalog.load()
    assert record.prompts is None


async def test_a_server_that_was_never_asked_for_prompts_is_met_again(house: Build, sqlite_storage: Storage) -> None:
    """An older Pegboard kept only its tools: they are there at once, and the rest after the first need, once."""
    before = house(Source("git", "log"))
    await before.discovery.discover("git")
    (record,) = await sqlite_storage.catalog.load()
    await sqlite_storage.catalog.save(replace(record, prompts=None))

    source = Source("git", "log")
    source.others = dict(OTHERS)
    after = house(source)
    await after.discovery.load()
    assert (after.names(), shelves(after), source.asked) == (["git__log"], [[], [], []], 0)
    for _ in range(2):
        await after.discovery.discover_new(5)
    assert (shelves(after), source.asked) == ([["git__greet"], ["x://1"], ["x://{a}"]], 1)
    (record,) = await sqlite_storage.catalog.load()
    assert record.prompts == OTHERS["prompts"]


@pytest.mark.usefixtures("no_patience")
async def test_prompts_are_waited_for_only_where_none_are_known(house: Build) -> None:
    """At the first meeting a list of prompts waits for them; later it has those of before, at once."""
    source = Source("git", "log")
    source.others = dict(OTHERS)
    source.others_gate.clear()
    here = house(source)
    await here.discovery.discover("git")
    waiting = asyncio.create_task(here.discovery.discover_resources(600))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    source.others_gate.set()
    with anyio.fail_after(30):
        await waiting
    assert shelves(here)[0] == ["git__greet"]
    await here.settle()
    source.others_gate.clear()
    await here.discovery.discover("git")
    with anyio.fail_after(30):
        await here.discovery.discover_resources(600)
    source.others_gate.set()


@pytest.mark.usefixtures("no_patience")
async def test_closing_ends_what_is_asked_for_in_the_background(house: Build) -> None:
    """A server that never answers leaves no task behind."""
    source = Source("git", "log")
    source.others_gate.clear()
    here = house(source)
    await here.discovery.discover("git")
    asking = list(here.discovery._asking)
    assert len(asking) == 1
    await here.discovery.close()
    assert all(task.cancelled() for task in asking)
