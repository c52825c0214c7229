"""What is taken over from disk is registered in slices, and never in place of what is newer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import open_board, toy, write_config
from pegboard import pace
from pegboard.config import read_settings

pytestmark = pytest.mark.anyio
NAMES = [f"t{number}" for number in range(300)]


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Every step of work in slices rests; how often that was."""
    monkeypatch.setattr(pace, "SLICE", 0.0)
    count, rest = 0, pace.Pace.rest

    async def counting(self: pace.Pace) -> None:
        nonlocal count
        count += 1
        await rest(self)

    monkeypatch.setattr(pace.Pace, "rest", counting)
    return lambda: count


async def test_a_start_and_a_server_that_is_enabled_again_keep_nobody_waiting(
    tmp_path: Path, rests: Callable[[], int]
) -> None:
    """Tools from disk are judged one by one, with turns for others in between."""
    entry = toy(tools=NAMES)
    async with open_board(tmp_path, {"one": entry}) as board:
        assert (await board.refresh()).success
    before = rests()
    async with open_board(tmp_path, {"one": entry}) as board:
        assert rests() - before >= len(NAMES)
        for enabled in (False, True):
            before = rests()
            path = write_config(tmp_path / "pegboard.json", {"one": {**entry, "enabled": enabled}})
            await board.apply(read_settings(path, os.environ))
        assert rests() - before >= len(NAMES)
        assert board.registry.get("one__t299") is not None


async def test_what_a_server_says_meanwhile_is_not_replaced_by_what_is_on_disk(
    tmp_path: Path, rests: Callable[[], int]
) -> None:
    """The newer list stays."""
    async with open_board(tmp_path, {"one": toy(tools=NAMES)}) as board:
        assert (await board.refresh()).success
        await board.discovery.put_away("one")
        before = rests()
        restoring = asyncio.ensure_future(board.discovery.restore("one"))
        while rests() == before:
            await asyncio.sleep(0)
        board.registry.register_mcp_tools("one", [{"name": "new", "inputSchema": {"type": "object"}}])
        await restoring
        known = board.registry.server("one")
        assert known is not None
        assert list(known.tools) == ["one__new"]
