"""What every test gets: a home of its own, and no settings of the machine it runs on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Pegboard runs on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State and config in the test's own folder, and no server from the environment."""
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PEGBOARD_CONFIG_DIR", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.endswith(("_MCP_URL", "_MCP_ENABLED")) or name in {"PEGBOARD_CONFIG", "PEGBOARD_LOG"}:
            monkeypatch.delenv(name)
