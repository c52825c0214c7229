"""A pytest plugin: which lines each test runs, in this process and in those it starts, and how long it takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import coverage
import pytest

_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
_number = 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart() -> None:
    global _number
    recording = coverage.Coverage.current()
    if recording is not None:
        _number += 1
        # Processes that the test starts read it, too.
        os.environ["PEGBOARD_COVERED_BY"] = f"{_worker}-{_number}"
        recording.switch_context(f"{_worker}-{_number}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and _worker != "main":
        line = {"context": f"{_worker}-{_number}", "test": report.nodeid, "seconds": report.duration}
        with Path(os.environ["PEGBOARD_TEST_TIMES"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "passed": report.passed}) + "\n")
