"""The conformance suites against the gateway with the fixture server behind it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.suite import NEXT, STABLE, Check, run_suite
from forking import warm_start
from harness import serving, write_config
from node import NODE_MODULES, node

FIXTURE = Path(__file__).parent / "fixture_server.py"


@dataclass(frozen=True, slots=True)
class Run:
    """One suite, at one revision, with a server of one era behind the gateway."""

    name: str
    package: str
    spec_version: str | None
    server_era: str


RUNS = (
    Run("0.1.16", STABLE, None, "handshake"),
    Run("2025-11-25", NEXT, "2025-11-25", "handshake"),
    Run("2026-07-28", NEXT, "2026-07-28", "modern"),
    Run("modern-client-handshake-server", NEXT, "2026-07-28", "handshake"),
    Run("handshake-client-modern-server", NEXT, "2025-11-25", "modern"),
)


@contextmanager
def gateway_before(era: str) -> Generator[str]:
    """`pegboard serve` as a process, with the fixture as its only server and names as they are."""
    with tempfile.TemporaryDirectory() as folder:
        # The suite has a session for each scenario: on a shared pipe these would be many clients, and a line of the log
        # that does not say whose it is would be nobody's.
        program, *first = warm_start(FIXTURE)
        entry = {
            "command": program,
            "args": [*first, "--stdio", "--era", era],
            "prefix": False,
            "instance": "session",
        }
        config = write_config(Path(folder) / "pegboard.json", {"fixture": entry})
        environment = {**os.environ, "PEGBOARD_STATE_DIR": str(Path(folder) / "state")}
        # The suite lists once and never looks again, so the catalog has to be there before it starts.
        subprocess.run(
            [*warm_start(), "refresh", "--config", str(config)],
            check=True, capture_output=True, env=environment, timeout=60,
        )  # fmt: skip
        with serving(config, PEGBOARD_STATE_DIR=str(Path(folder) / "state")) as (_, url):
            yield url


def run(chosen: Run) -> list[Check]:
    """Run one suite and give what it found."""
    with gateway_before(chosen.server_era) as url:
        return run_suite(
            url, node=node(), node_modules=NODE_MODULES, package=chosen.package, spec_version=chosen.spec_version
        )
