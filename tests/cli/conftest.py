"""Commands run in the process of the tests, one after the other: what one was given is not the next one's."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pegboard.cli import program


@pytest.fixture(autouse=True)
def config_of_nobody() -> Generator[None]:
    """No config was named yet."""
    token = program._config.set(())
    yield
    program._config.reset(token)
