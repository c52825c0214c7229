"""Several writers at once, in one process and in two."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory.consistency import assert_consistent
from pegboard.result import Conflict, ToolFailure
from pegboard.storage.database import Database
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link, Memory

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture
def memories(database: Database) -> Memories:
    """Memories in the namespace that the other processes use."""
    return Memories(database)


async def run_writers(place: str, names: Sequence[str], what: str, times: int) -> None:
    """Processes that do the same at once, until all are done."""
    processes = [
        subprocess.Popen([sys.executable, str(WRITER), place, name, what, str(times)], stdout=subprocess.DEVNULL)
        for name in names
    ]
    codes = await asyncio.gather(*(asyncio.to_thread(process.wait, 60) for process in processes))
    assert codes == [0] * len(names)


async def test_updates_of_many_tasks_all_count(memories: Memories, database: Database) -> None:
    """Each change without a version is one version more, and the last words are those of one of them, whole."""
    await memories.add("a")
    await asyncio.gather(
        *(memories.update("a", summary=f"s{n}", text=f"t{n}", links=[Link(f"l{n}", "bug")]) for n in range(24))
    )
    memory = await memories.get("a")
    assert memory.version == 25
    assert memory.summary[1:] == memory.text[1:] == memory.links[0].key[1:]
    assert memory.meta.out_degree == 1
    await assert_consistent(database)


async def test_of_updates_from_one_version_one_wins(memories: Memories) -> None:
    """All others are refused, and change nothing."""
    await memories.add("a")
    tries = [memories.update("a", text=f"t{n}", version=1) for n in range(12)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Memory)]
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 11
    memory = await memories.get("a")
    assert (memory.version, memory.text) == (2, won.text)


async def test_of_adds_of_one_key_one_wins(memories: Memories, database: Database) -> None:
    """Where many add the same key, to a namespace that is new as well, one did it and the others are told why not."""
    adds = [memories.add("a", text=f"t{n}", namespace="new") for n in range(12)]
    outcomes = await asyncio.gather(*adds, return_exceptions=True)
    (won,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert all(isinstance(outcome, Conflict) for outcome in outcomes if outcome is not won)
    assert (await memories.get("a", namespace="new")).text == won[0].text
    await assert_consistent(database)


async def test_everything_at_once_stays_consistent(memories: Memories, database: Database) -> None:
    """Adds, replacements, renames, deletes, walks and searches of several tasks leave true counts and a true index."""

    async def work(task: int) -> None:
        for n in range(6):
            mine, shared = f"t{task}:{n}", f"shared{n % 3}"
            await memories.add(mine, "common words", f"word{n} 日本語", [Link(shared, "bug")])
            await memories.add(shared, f"by {task}", "common words", [Link(mine, "design")], replace=True)
            await memories.read_linked(shared, depth=2)
            await memories.search("common")
            await memories.rename(mine, f"{mine}:renamed")
            if n % 2:
                await memories.delete(f"{mine}:renamed")

    await asyncio.gather(*(work(task) for task in range(5)))
    assert (await memories.list()).total == 5 * 3 + 3
    for n in range(3):
        memory = await memories.get(f"shared{n}")
        assert memory.version == 10
    await assert_consistent(database)


async def test_two_processes_lose_no_update(memories: Memories, database: Database, place: str) -> None:
    """A number that two processes and a task raise by one, from the version that they read, is the sum in the end."""
    await memories.add("counter", text="0")

    async def here() -> None:
        for _ in range(15):
            while True:
                memory = await memories.get("counter")
                try:
                    await memories.update("counter", text=str(int(memory.text) + 1), version=memory.version)
                    break
                except Conflict:
                    continue

    await asyncio.gather(run_writers(place, ["a", "b"], "count", 15), here())
    memory = await memories.get("counter")
    assert (memory.text, memory.version) == ("45", 46)
    await assert_consistent(database)


async def test_two_processes_write_side_by_side(memories: Memories, database: Database, place: str) -> None:
    """Every memory is there and found, a shared one counts every change, and degrees are true."""
    await memories.add("shared")
    await run_writers(place, ["a", "b"], "grow", 20)
    page = await memories.list(limit=100)
    assert page.total == 41
    shared = await memories.get("shared")
    assert (shared.version, shared.meta.in_degree) == (41, 40)
    assert (await memories.search("shared words")).total == 41
    await assert_consistent(database)


async def test_a_refused_operation_leaves_the_next_one_alone(memories: Memories, database: Database) -> None:
    """Refusals and successes in turn, at once: what is refused has no effect on what is not."""
    await memories.add("a")

    async def one(n: int) -> None:
        if n % 2:
            await memories.add(f"m{n}", links=[Link("a", "bug")])
        else:
            with pytest.raises(ToolFailure):
                await memories.add("a", "other", links=[Link(f"m{n}", "bug")])

    await asyncio.gather(*(one(n) for n in range(16)))
    memory = await memories.get("a")
    assert (memory.summary, memory.version, memory.meta.in_degree, memory.meta.out_degree) == ("", 1, 8, 0)
    await assert_consistent(database)
