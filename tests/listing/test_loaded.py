"""Loaded tools of named boards: what was acknowledged is kept, and what storage refused has not happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.listing import loaded as loaded_module
from pegboard.listing.loaded import LoadedTools, board_key, guest_board_key, principal_board_key, session_board_key
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
    loaded = LoadedTools(sqlite_storage.boards, lambda: changes.append(None), lambda: 40)
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
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    await loaded.add(DESK, ["a", "b"])
    refuse(tmp_path / "pegboard.db", "DELETE")
    with pytest.raises(ToolFailure, match="disk full"):
        await loaded.remove(DESK, ["a"])
    assert loaded.on(DESK) == ("a", "b")


async def test_named_boards_are_bounded(sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one more, the least recently used is forgotten, on disk as well; sessions go on."""
    monkeypatch.setattr(loaded_module, "MOST_BOARDS", 2)
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    await loaded.add(board_key("one"), ["a", "b"])
    await loaded.add(board_key("two"), ["a"])
    loaded.use(board_key("one"), "b")
    await loaded.add(session_board_key("s"), ["a"])
    await loaded.add(board_key("three"), ["a"])
    assert loaded.on(board_key("two")) == ()
    assert loaded.on(session_board_key("s")) == ("a",)
    assert await sqlite_storage.boards.load() == {"one": ["a", "b"], "three": ["a"]}


@pytest.mark.parametrize(
    ("board", "stored"),
    [
        (DESK, "desk"),
        (session_board_key("s"), None),
        (principal_board_key("p", "editor"), "principal:p:editor"),
        (guest_board_key("8.8.8.8", "editor"), None),
    ],
)
async def test_a_full_board_unloads_what_was_used_least_recently(
    sqlite_storage: Storage, board: str, stored: str | None
) -> None:
    """A call counts as a use, and so does loading again; what is named together stays together."""
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 3)
    assert await loaded.add(board, ["a", "b", "c"]) == []
    loaded.use(board, "a")
    loaded.use(board, "unknown")
    loaded.use(None, "b")
    assert await loaded.add(board, ["d"]) == ["b"]
    assert await loaded.add(board, ["c", "c"]) == []
    assert await loaded.add(board, ["e", "f"]) == ["a", "d"]
    assert loaded.on(board) == ("c", "e", "f")
    with pytest.raises(ToolFailure, match="a board holds 3 tools: name no more than 3 at once"):
        await loaded.add(board, ["1", "2", "3", "4"])
    assert loaded.on(board) == ("c", "e", "f")
    assert await sqlite_storage.boards.load() == ({stored: ["c", "e", "f"]} if stored else {})


async def test_a_full_board_that_storage_refuses_keeps_everything(sqlite_storage: Storage, tmp_path: Path) -> None:
    """What would go stays, and what would come does not."""
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 2)
    await loaded.add(DESK, ["a", "b"])
    refuse(tmp_path / "pegboard.db", "DELETE")
    with pytest.raises(ToolFailure, match="disk full"):
        await loaded.add(DESK, ["c"])
    assert loaded.on(DESK) == ("a", "b")
    assert await sqlite_storage.boards.load() == {"desk": ["a", "b"]}


@pytest.mark.parametrize("key", [guest_board_key, principal_board_key])
async def test_boards_of_others_are_bounded(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch, key: Callable[[str, str], str]
) -> None:
    """They fill neither the memory nor the disk: the oldest board goes."""
    monkeypatch.setattr(loaded_module, "MOST_BOARDS", 2)
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    boards = [key(who, "editor") for who in "abc"]
    for board in boards:
        await loaded.add(board, ["t"])
    assert [loaded.on(board) for board in boards] == [(), ("t",), ("t",)]
    assert list(await sqlite_storage.boards.load()) == ([] if key is guest_board_key else boards[1:])


async def test_nobodys_boards_make_room_for_somebody_with_many(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A principal that has as many as it may have gives up its own oldest, on disk as well."""
    monkeypatch.setattr(loaded_module, "MOST_OF_PRINCIPAL", 2)
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    modest = principal_board_key("token:modest", "editor")
    await loaded.add(modest, ["t"])
    many = [principal_board_key("token:greedy", str(number)) for number in range(4)]
    for board in many:
        await loaded.add(board, ["t"])
    assert list(loaded.boards) == [modest, *many[2:]]
    assert list(await sqlite_storage.boards.load()) == [modest, *many[2:]]


async def test_boards_of_principals_are_taken_over_and_forgotten(sqlite_storage: Storage) -> None:
    """After a restart they are there; those of a principal that is gone are not."""
    loaded = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    one, two = principal_board_key("token:a", "editor"), principal_board_key("token:ab", "editor")
    for board in (one, two, DESK):
        await loaded.add(board, ["t"])
    again = LoadedTools(sqlite_storage.boards, lambda: None, lambda: 40)
    await again.open()
    assert [again.on(board) for board in (one, two, DESK)] == [("t",)] * 3
    again.forget_principal("token:a")
    assert [again.on(board) for board in (one, two, DESK)] == [(), ("t",), ("t",)]
