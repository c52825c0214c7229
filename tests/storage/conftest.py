"""Where things can be kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pegboard.storage import Storage, open_storage


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
