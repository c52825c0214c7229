"""How what others decide is taken over, server by server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness import eventually
from pegboard.config import ServerSpec
from pegboard.pins import watch
from pegboard.pins.pins import Pins
from pegboard.storage import open_storage
from pins.shifting import tool

pytestmark = pytest.mark.anyio

SPECS = [ServerSpec(name=name, given_name=name, command=name) for name in ("a", "b", "c")]


async def test_a_server_that_hangs_or_fails_keeps_nothing_of_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided about the others holds at once; these are given up after a time, and tried again."""
    monkeypatch.setattr(watch, "_LOOK_EVERY", 0.01)
    storage = open_storage(f"sqlite:{tmp_path / 'x.db'}")
    await storage.open()
    begun: list[str] = []
    taken: set[str] = set()

    async def take_over(name: str) -> None:
        begun.append(name)
        if name == "a" and "c" not in taken:
            await asyncio.Event().wait()
        if name == "b" and begun.count("b") < 2:
            raise OSError
        taken.add(name)

    try:
        one, other = (Pins(storage.pins, lambda _: "hold") for _ in range(2))
        await other.open()
        watching = asyncio.create_task(watch.PinWatch(other, take_over).run())
        for spec in SPECS:
            await one.review(spec, "tool", [tool("buy")])
        await eventually(lambda: taken == {"c"})
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

        monkeypatch.setattr(watch, "_LONGEST", 0.05)
        monkeypatch.setattr(watch, "_AGAIN_AFTER", 0.01)
        taken.clear()
        begun.clear()
        later = Pins(storage.pins, lambda _: "hold")
        watching = asyncio.create_task(watch.PinWatch(later, take_over).run())
        await eventually(lambda: taken == {"a", "b", "c"})
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    finally:
        await storage.close()
