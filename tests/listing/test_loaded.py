"""Loaded tools of named boards: what was acknowledged is kept, and what storage refused has not happened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pegboard.listing import loaded as loaded_module
from pegboard.listing.loaded import LoadedTools, board_key, session_board_key
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.storage import Storage

pytestmark = pytest.mark.anyio
DESK = board_key("desk")


def refuse(path: Path, change: str) -> None:
    """Let the database refuse every such change of a board, as a full disk would."""
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TRIGGER no BEFORE {change} ON board_tools BEGIN SELECT RAISE(FAIL, 'disk full'); END")


async def test_a_load_that_storage_refuses_is_a_failure_and_changes_nothing(
    sqlite_storage: Storage, tmp_path: Path
) -> None:
    """It can be tried again, nobody is told of a change, and sessions load as ever."""
    changes: list[None] = []
    loaded = LoadedTools(sqlite_storage.boards, on_change=lambda: changes.append(None))
    refuse(tmp_path / "pegboard.db", "INSERT")
    with pytest.raises(ToolFailure, match=r"nothing was changed on board desk.*disk full") as failure:
        await loaded.add(DESK, ["a"])
    assert (failure.value.error.code, failure.value.error.retryable) == (ToolErrorCode.UNAVAILABLE, True)
    assert str(tmp_path) not in failure.value.error.message
    assert (loaded.on(DESK), changes) == ((), [])
    await loaded.add(session_board_key("s"), ["a"])
    assert loaded.on(session_board_key("s")) == ("a",)


async def test_an_unload_that_storage_refuses_changes_nothing(sqlite_storage: Storage, tmp_path: Path) -> None:
    """The tool stays loaded, as it would after a restart."""
    loaded = LoadedTools(sqlite_storage.boards)
    await loaded.add(DESK, ["a", "b"])
    refuse(tmp_path / "pegboard.db", "DELETE")
    with pytest.raises(ToolFailure, match="disk full"):
        await loaded.remove(DESK, ["a"])
    assert loaded.on(DESK) == ("a", "b")


async def test_named_boards_are_bounded(sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused in words that say what to do; boards there are, and sessions, go on."""
    monkeypatch.setattr(loaded_module, "MOST_BOARDS", 2)
    loaded = LoadedTools(sqlite_storage.boards)
    await loaded.add(board_key("one"), ["a"])
    await loaded.add(board_key("two"), ["a"])
    with pytest.raises(ToolFailure, match="2 named boards already: unload"):
        await loaded.add(board_key("three"), ["a"])
    await loaded.add(board_key("two"), ["b"])
    await loaded.add(session_board_key("s"), ["a"])
    await loaded.remove(board_key("one"), ["a"])
    await loaded.add(board_key("three"), ["a"])
    assert await sqlite_storage.boards.load() == {"two": ["a", "b"], "three": ["a"]}
