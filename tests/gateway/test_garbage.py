"""Garbage collection of a gateway: short pauses, and nothing is kept for good that nobody needs."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import pytest

from forking import COLD_START
from harness import eventually, serving, stdio_client, toy, write_config
from pegboard.gateway import garbage
from pegboard.gateway.garbage import short_collections

pytestmark = pytest.mark.anyio

# Run by Python itself before anything else: writes down how much is frozen, once something is.
WATCH = """
import gc, os, threading, time
def watch():
    while not gc.get_freeze_count():
        time.sleep(0.02)
    with open(os.environ["FROZEN"], "w") as file:
        print(gc.get_freeze_count(), file=file)
threading.Thread(target=watch, daemon=True).start()
"""


class Ring:
    """Something that refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


def frozen_ring() -> weakref.ref[Ring]:
    """One that became garbage after it had survived a full collection."""
    ring = Ring()
    gc.collect()
    return weakref.ref(ring)


async def test_what_survived_a_full_collection_is_not_looked_at_by_the_next() -> None:
    """However much is kept, a collection looks only at what is new since the last one."""
    async with short_collections():
        kept = [[number] for number in range(100_000)]
        gc.collect()
        assert len(gc.get_objects()) < 10_000
        assert len(kept) == 100_000
    assert len(gc.get_objects()) > 100_000


async def test_garbage_among_what_was_set_aside_goes_when_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session, say, that lived through a full collection and ended after it."""
    monkeypatch.setattr(garbage, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(garbage, "_IDLE", 1000.0)
    async with short_collections():
        early = frozen_ring()
        await eventually(lambda: early() is None)
        gone = frozen_ring()
        gc.collect()
        assert gone() is not None
        grown = [[number] for number in range(sys.getallocatedblocks())]
        await eventually(lambda: gone() is None)
        assert grown


async def test_after_a_thorough_collection_the_next_one_is_not_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much that one looked at: what is new is looked at in small portions again."""
    monkeypatch.setattr(garbage, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(garbage, "_IDLE", 1000.0)
    kept = [[number] for number in range(400_000)]
    full: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            full.append(gc.get_count()[0])

    async with short_collections():
        gc.callbacks.append(count)
        try:
            await eventually(lambda: full)
            full.clear()
            new = [[number] for number in range(40_000)]
            assert len(full) > 1
        finally:
            gc.callbacks.remove(count)
    assert kept
    assert new


@pytest.mark.parametrize("command", ["serve", "stdio"])
async def test_a_gateway_sets_aside_what_it_has_started_with(tmp_path: Path, command: str) -> None:
    """Both commands do, since they are processes of their own; a program that uses the library decides for itself."""
    (tmp_path / "sitecustomize.py").write_text(WATCH, "utf-8")
    frozen = tmp_path / "frozen"
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    if command == "serve":
        with serving(config, command=COLD_START, PYTHONPATH=str(tmp_path), FROZEN=str(frozen)):
            await eventually(lambda: frozen.exists() and frozen.read_text())
    else:
        async with stdio_client(config, command=COLD_START, env={"PYTHONPATH": str(tmp_path), "FROZEN": str(frozen)}):
            await eventually(lambda: frozen.exists() and frozen.read_text())
    assert int(frozen.read_text()) > 10_000
