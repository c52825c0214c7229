"""The index of chats: it can always be made again, and keeps nothing of what was deleted."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chats.conftest import Now
from chats.makers import Home, session
from pegboard.storage import StorageError
from pegboard.toolsets.chats.chats import Chats
from pegboard.toolsets.chats.index import ChatIndex

pytestmark = pytest.mark.anyio


async def test_an_index_that_is_damaged_is_put_aside(tmp_path: Path, home: Home, now: Now) -> None:
    """Whatever it was before is kept under another name; one line in the log says so."""
    home.chat("one", session("quokka"))
    path = tmp_path / "state" / "chats.db"
    path.parent.mkdir()
    for at, content in enumerate((b"something else" * 100, b"SQLite format 3\0" + b"\1" * 5000), 1):
        path.write_bytes(content)
        index = ChatIndex(path)
        with capture_logs() as logged:
            await index.open()
        assert [entry["event"] for entry in logged] == ["chats.index.damaged"]
        assert path.with_name(f"chats.db.damaged-{at}").read_bytes() == content
        chats = Chats(index, home.sources(), clock=now)
        assert (await chats.search("quokka")).total == 1
        await chats.close()
        await index.close()


async def test_damage_that_is_met_later_fails_one_call(tmp_path: Path, home: Home, now: Now) -> None:
    """The next one reads everything into a new index."""
    home.chat("one", session("quokka", "wombat"))
    path = tmp_path / "state" / "chats.db"
    index = ChatIndex(path)
    await index.open()
    chats = Chats(index, home.sources(), clock=now)
    assert (await chats.search("quokka")).total == 1
    await index.close()
    pages = path.read_bytes()
    path.write_bytes(pages[:4096] + b"\xff" * (len(pages) - 4096))
    await index.open()
    with pytest.raises(StorageError, match="made again") as raised:
        await chats.search("quokka")
    assert (await chats.search("quokka")).total == 1
    assert str(tmp_path) not in raised.value.error.message
    assert (await chats.request(await chats.session("one"), 2)).text == "wombat"
    assert path.with_name("chats.db.damaged-1").exists()
    await chats.close()
    await index.close()


async def test_an_index_of_a_newer_pegboard_is_left_alone(tmp_path: Path) -> None:
    """It is not damaged, and neither is one that cannot be opened."""
    path = tmp_path / "chats.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    (tmp_path / "folder.db").mkdir()
    for each in (path, tmp_path / "folder.db"):
        with pytest.raises(StorageError) as raised:
            await ChatIndex(each).open()
        assert str(each) in str(raised.value)
        assert str(tmp_path) not in raised.value.error.message
    assert {each.name for each in tmp_path.iterdir()} == {"chats.db", "folder.db"}


async def test_no_word_of_a_deleted_chat_stays_on_the_disk(tmp_path: Path, home: Home, now: Now) -> None:
    """Not in the file, not in its log, and also while the index is in use."""
    index = ChatIndex(tmp_path / "state" / "chats.db")
    await index.open()
    chats = Chats(index, home.sources(), clock=now)
    path = home.chat("one", session("zanzibarquokka plan"))
    home.chat("two", session("other"))
    assert (await chats.search("zanzibarquokka")).total == 1

    def traces() -> list[str]:
        return [file.name for file in (tmp_path / "state").iterdir() if b"zanzibarquok" in file.read_bytes()]

    assert traces() != []
    path.unlink()
    now.later()
    assert (await chats.search("other")).total == 1
    assert traces() == []
    await chats.close()
    await index.close()
