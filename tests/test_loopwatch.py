"""The watch on the event loop sees who holds it."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from loopwatch import in_thread, loopwatch, served_during

pytestmark = pytest.mark.anyio


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_a_callback_that_takes_long_is_seen() -> None:
    """By the CPU time that it takes, whatever else runs on the machine."""
    with loopwatch() as watch:
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(_work, 0.2)
        await asyncio.sleep(0.01)
    assert watch.longest >= 0.2
    with pytest.raises(AssertionError, match="_work"):
        watch.check()


async def test_a_thread_that_keeps_the_gil_is_seen() -> None:
    """A regular expression holds the GIL: no callback is long, but none gets its turn."""
    text = "a" * 25_000
    with loopwatch() as watch:
        await asyncio.sleep(0.02)
        await in_thread(lambda: re.search(r"(?:a*)b", text))
        await asyncio.sleep(0.02)
    with pytest.raises(AssertionError, match="got no turn"):
        watch.check()


async def test_others_are_counted_while_an_attack_is_under_way() -> None:
    """Whoever is served meanwhile is counted, and an attack that fails is over."""

    async def attack() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)
        raise ValueError

    with loopwatch() as watch:
        assert await served_during(attack(), lambda: asyncio.sleep(0)) > 1
    watch.check()
