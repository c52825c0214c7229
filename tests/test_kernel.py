"""The kernel: small things that every room uses, once."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.lru_dict import LruDict
from pegboard.task_set import TaskSet
from pegboard.text import one_line, quote_start, truncate


@pytest.mark.anyio
async def test_a_task_set_keeps_a_task_until_it_has_ended() -> None:
    """Nobody else holds it, and nothing is left of it afterwards."""
    tasks, go = TaskSet(), asyncio.Event()
    task = tasks.spawn(go.wait())
    assert set(tasks) == {task}
    go.set()
    assert await task is True
    await asyncio.sleep(0)
    assert not tasks


@pytest.mark.anyio
async def test_closing_a_task_set_ends_all_of_it() -> None:
    """Also a task that takes another step to end, and one that fails."""
    tasks, ended = TaskSet(), list[str]()

    async def linger() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("linger")

    async def fail() -> None:
        raise ValueError

    tasks.spawn(linger())
    tasks.spawn(fail())
    await asyncio.sleep(0)
    await tasks.close()
    assert ended == ["linger"]


def test_a_bounded_dict_drops_what_was_used_least_recently() -> None:
    """Setting a key and `use` count as use."""
    kept = LruDict[str, int](2)
    kept["a"], kept["b"] = 1, 2
    assert kept.use("a") == 1
    assert kept.use("none") is None
    kept["c"] = 3
    assert dict(kept) == {"a": 1, "c": 3}
    kept["a"] = 4
    kept["d"] = 5
    assert dict(kept) == {"a": 4, "d": 5}


def test_texts_are_cut_with_an_ellipsis() -> None:
    """Never longer than asked, and never cut where it fits."""
    assert truncate("four", 4) == "four"
    assert truncate("four and", 6) == "four…"
    assert quote_start("four ", 5) == "four "
    assert quote_start("four and", 5) == "four …"
    assert one_line(" a\n b\t") == "a b"
    assert one_line("a  b c", 5) == "a b c"
    assert one_line("a  b c d", 5) == "a b…"
    assert one_line("a" + " " * 1000, 5) == "a…"
    assert one_line("abc", 0) == ""
