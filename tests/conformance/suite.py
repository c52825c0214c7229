"""Runs one version of the conformance suite against one server and reads back what it found."""

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

STABLE: Final = "@modelcontextprotocol/conformance"
NEXT: Final = "conformance-next"

# The suite writes one folder per scenario: server-<scenario>-<time, its colons and dots turned into dashes>.
_RESULT_FOLDER: Final = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")
_SHOWN_CHARACTERS: Final = 2000


class SuiteError(Exception):
    """The suite itself did not run; nothing is known about the server."""


class Check(NamedTuple):
    scenario: str
    name: str
    status: str
    message: str | None

    @property
    def title(self) -> str:
        return f"{self.scenario}: {self.name}"

    @property
    def is_wrong(self) -> bool:
        return self.status in {"FAILURE", "WARNING"}


def failures(checks: Iterable[Check]) -> set[str]:
    """The titles of the checks that failed."""
    return {check.title for check in checks if check.status == "FAILURE"}


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts as the suite does: only successes and failures decide, the rest is told apart but not held against."""

    passed: int
    failed: int
    warnings: int
    skipped: int

    @classmethod
    def of(cls, checks: Iterable[Check]) -> "Summary":
        found = Counter(check.status for check in checks)
        return cls(found["SUCCESS"], found["FAILURE"], found["WARNING"], found["SKIPPED"])


def run_suite(
    url: str,
    *,
    node: Path,
    node_modules: Path,
    package: str = STABLE,
    spec_version: str | None = None,
    timeout: float = 300,
) -> list[Check]:
    """Run every scenario of `package` against `url`.

    `spec_version` narrows the suite to one protocol revision and picks the revision it speaks.
    Raises `SuiteError` when the suite leaves no results or outlasts `timeout` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        command = [str(node), str(entry_point(node_modules / package)), "server"]
        command += ["--url", url, "--suite", "all", "--output-dir", folder]
        command += [] if spec_version is None else ["--spec-version", spec_version]
        said = _run(command, timeout)
        checks = read_checks(Path(folder))
    if not checks:
        raise SuiteError(f"the suite left no results; it said: {said[-_SHOWN_CHARACTERS:]}")
    return checks


def read_checks(folder: Path) -> list[Check]:
    """Every check that the suite wrote below `folder`, in the order of its scenarios' names."""
    results = ((path, _RESULT_FOLDER.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [check for path, found in results if found for check in _scenario_checks(path, found["scenario"])]


def entry_point(package: Path) -> Path:
    """The program of the suite, as its package names it."""
    manifest: dict[str, Any] = json.loads((package / "package.json").read_text(encoding="utf-8"))
    return package / manifest["bin"]["conformance"]


def _run(command: list[str], timeout: float) -> str:
    try:
        # Failed checks make it exit with 1, which is a result; what it wrote tells whether it ran.
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise SuiteError(f"the suite did not end within {timeout:g} seconds") from error
    return done.stdout


def _scenario_checks(folder: Path, scenario: str) -> list[Check]:
    written = folder / "checks.json"
    if not written.exists():
        # A scenario that threw leaves its folder empty; silence must not count as success.
        return [Check(scenario, scenario, "FAILURE", "the scenario wrote no checks")]
    checks: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))
    return [Check(scenario, check["name"], check["status"], check.get("errorMessage")) for check in checks]
