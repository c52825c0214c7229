"""Memories are read while nothing can be written: a count of accesses is no reason to wait or to fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from pegboard.storage import SqliteDatabase
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link

pytestmark = pytest.mark.anyio


async def test_memories_are_read_while_another_process_writes(tmp_path: Path) -> None:
    """For as long as it holds the lock, looks at memories are answered, though they are not counted."""
    database = SqliteDatabase(tmp_path / "pegboard.db")
    await database.open()
    memories = Memories(database)
    await memories.add("a", "A", links=[Link("b", "see")])
    await memories.add("b", "B")
    writer = sqlite3.Connection(tmp_path / "pegboard.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with anyio.fail_after(60):
        assert (await memories.get("a")).meta.access_count == 1
        assert [step.memory.key for step in await memories.read_linked("a")] == ["a", "b"]
    writer.execute("ROLLBACK")
    writer.close()
    assert (await memories.get("a")).meta.access_count == 1
    assert (await memories.get("a")).meta.access_count == 2
    await database.close()


async def test_memories_are_read_when_the_disk_is_full(tmp_path: Path) -> None:
    """Whatever the reason is that nothing can be changed."""
    database = SqliteDatabase(tmp_path / "pegboard.db")
    await database.open()
    memories = Memories(database)
    await memories.add("a", "A")
    with sqlite3.connect(tmp_path / "pegboard.db") as db:
        db.execute("CREATE TRIGGER no BEFORE UPDATE ON memories BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    assert (await memories.get("a")).summary == "A"
    assert [step.memory.key for step in await memories.read_linked("a")] == ["a"]
    await database.close()
