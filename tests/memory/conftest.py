"""Memories on each database, with a clock that the test sets."""

from __future__ import annotations

import pytest

from memory.clock import Clock
from pegboard.storage import Storage
from pegboard.storage.database import Database
from pegboard.toolsets.memory.memories import Memories


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
