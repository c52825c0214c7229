"""Memories on each database, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from memory.clock import Clock
from pegboard.storage import Storage, open_storage
from pegboard.storage.database import Database
from pegboard.toolsets.memory import Memories


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The `storage` setting of an empty place, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'state' / 'pegboard.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def storage(place: str) -> AsyncGenerator[Storage]:
    """An open storage at that place."""
    storage = open_storage(place)
    await storage.open()
    yield storage
    await storage.close()


@pytest.fixture
def database(storage: Storage) -> Database:
    """Its database."""
    return storage.database


@pytest.fixture
def clock() -> Clock:
    """What the memories take for the time."""
    return Clock()


@pytest.fixture
def memories(database: Database, clock: Clock) -> Memories:
    """Memories at that place, whose namespace is called `home` where nothing else is said."""
    return Memories(database, namespace="home", clock=clock)
