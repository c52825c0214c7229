"""Houses on one storage."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from catalog.sources import Build, House, Source
from pegboard.storage import Storage


@pytest.fixture
async def house(sqlite_storage: Storage) -> AsyncIterator[Build]:
    """Makes houses on one storage, and shuts them after the test."""
    built: list[House] = []

    def build(*sources: Source, **more: Any) -> House:
        built.append(House(sqlite_storage, *sources, **more))
        return built[-1]

    yield build
    for one in built:
        await one.discovery.close()
