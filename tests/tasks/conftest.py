"""A registry on each database, of a project in the test's own folder, with a clock that the test sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.clock import Clock
from pegboard.storage import Storage
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry


@pytest.fixture
def clock() -> Clock:
    """What the registry takes for the time."""
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that holds `openspec`."""
    (tmp_path / "project" / "openspec" / "changes").mkdir(parents=True)
    return (tmp_path / "project").resolve()


@pytest.fixture
def registry(storage: Storage, root: Path, clock: Clock) -> Registry:
    """The registry of that folder."""
    return Registry(storage.database, Project(here=lambda: root), clock=clock)
