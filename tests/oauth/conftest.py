"""A scripted server for each test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from oauth.scripted import ScriptedServer, open_scripted


@pytest.fixture
def script() -> Generator[ScriptedServer]:
    """One that listens on this machine."""
    with open_scripted() as script:
        yield script
