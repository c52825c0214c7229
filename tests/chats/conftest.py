"""Chats of a made-up home, and their index."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from chats.makers import Home
from pegboard.storage import Database
from pegboard.toolsets.chats.chats import Chats
from pegboard.toolsets.chats.index import ChatIndex


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home folder."""
    return Home(tmp_path / "home")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    """An open index."""
    database = ChatIndex(tmp_path / "state" / "chats.db")
    await database.open()
    yield database
    await database.close()


class Now:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def later(self, seconds: float = 100.0) -> None:
        self.time += seconds


@pytest.fixture
def now() -> Now:
    """Time stands still until a test says otherwise."""
    return Now()


@pytest.fixture
async def chats(home: Home, database: Database, now: Now) -> AsyncGenerator[Chats]:
    """The chats of that home."""
    chats = Chats(database, home.sources(), clock=now)
    yield chats
    await chats.close()
