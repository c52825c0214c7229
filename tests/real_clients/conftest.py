"""A home, a config and a running gateway for client programs. Without `PEGBOARD_ALL_CLIENTS` only the tests with the
programs that every run installs are collected; `make test-clients` has all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from harness import serving, write_config
from real_clients.programs import Home

collect_ignore = [] if os.environ.get("PEGBOARD_ALL_CLIENTS") else ["test_all_clients.py", "test_agent_turns.py"]

CLOCK = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone=UTC"]}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home(tmp_path / "home")


@pytest.fixture
def config(home: Home) -> Path:
    """A config with one server, whose tools have to be found."""
    toolsets = ["discovery", "memory", "chats", "tasks"]
    return write_config(home.path / "pegboard.json", {"time": CLOCK}, expose="search", toolsets=toolsets)


@pytest.fixture
def gateway(config: Path, home: Home) -> Generator[str]:
    """The address of a running gateway of that config."""
    with serving(config, 0, **home.environment()) as (_, url):
        yield url
