"""The suite's authorization scenarios for clients, each with a Pegboard of its own as the client."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.suite import NEXT, Check, SuiteError, Summary, entry_point
from forking import warm_start
from node import NODE_MODULES, node

CLIENT: Final = Path(__file__).parent / "auth_client.py"
_CLIENT_SECONDS: Final = 90
_SUITE_SECONDS: Final = 150
# A scenario mostly waits for processes to start.
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class AuthRun:
    """Scenarios at one revision."""

    name: str
    spec_version: str
    scenarios: tuple[str, ...]


def _auth(*names: str) -> tuple[str, ...]:
    return tuple(f"auth/{name}" for name in names)


REQUIRED_2025_11_25: Final = _auth(
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("scope-step-up", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration"),
)
REQUIRED_2026_07_28: Final = REQUIRED_2025_11_25 + _auth(
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported", "authorization-server-migration"),
    *("iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected"),
    *("iss-normalized", "metadata-issuer-mismatch"),
)
FALL_BACKS: Final = _auth("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback")
EXTENSIONS: Final = _auth(
    *("client-credentials-jwt", "client-credentials-basic", "enterprise-managed-authorization"),
    *("wif-jwt-bearer", "dpop", "dpop-nonce"),
)

AUTH_RUNS: Final = (
    AuthRun("client-auth-2026-07-28", "2026-07-28", REQUIRED_2026_07_28),
    AuthRun("client-auth-2025-11-25", "2025-11-25", REQUIRED_2025_11_25),
    AuthRun("client-auth-2025-03-26", "2025-03-26", FALL_BACKS),
    AuthRun("client-auth-extensions", "2026-07-28", EXTENSIONS),
)

# Where the suite is content if nothing happens, which is also what a client does that cannot sign in at all: there
# Pegboard has to refuse, and for this reason.
REASONS: Final = {
    "auth/resource-mismatch": "https://evil.example.com/mcp",
    "auth/metadata-issuer-mismatch": "https://attacker.example.com",
    "auth/iss-supported-missing": "iss",
    "auth/iss-wrong-issuer": "iss",
    "auth/iss-unexpected": "iss",
    "auth/iss-normalized": "iss",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one scenario."""

    scenario: str
    # The suite's own word for it: no failure, no warning, and a client that ended well unless it may refuse.
    approved: bool
    checks: tuple[Check, ...]
    # What the client was refused for.
    said: str

    @property
    def passed(self) -> bool:
        return self.approved and REASONS.get(self.scenario, "") in self.said

    @property
    def summary(self) -> Summary:
        return Summary.of(self.checks)

    @property
    def story(self) -> str:
        """Why it did not pass, for people."""
        wrong = [f"{check.status} {check.name}: {check.message}" for check in self.checks if check.is_wrong]
        return "; ".join([*wrong, self.said or "the client ended well"])


def run_all(chosen: AuthRun, scenarios: Iterable[str] | None = None) -> list[Verdict]:
    """Run the scenarios, or some of them, in their order."""
    wanted = chosen.scenarios if scenarios is None else tuple(scenarios)
    # Made before the threads, which would each make one.
    gateway = warm_start()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda name: run_scenario(name, chosen.spec_version, gateway), wanted))


def run_scenario(scenario: str, spec_version: str, gateway: tuple[str, ...] | None = None) -> Verdict:
    """Run one scenario; raises `SuiteError` where the suite itself did not run."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        command = [str(node()), str(entry_point(NODE_MODULES / NEXT)), "client", "--force"]
        command += ["--command", " ".join(warm_start(CLIENT)), "--timeout", str(_CLIENT_SECONDS * 1000)]
        command += ["--scenario", scenario, "--spec-version", spec_version, "--output-dir", folder]
        environment = {**os.environ, "PEGBOARD_STARTED_BY": json.dumps(gateway or warm_start())}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=_SUITE_SECONDS, env=environment, encoding="utf-8", errors="replace",
        )  # fmt: skip
        found = list(Path(folder).rglob("checks.json"))
        if len(found) != 1:
            raise SuiteError(f"{scenario} left no results; it said: {done.stdout[-2000:]}")
        checks: list[dict[str, Any]] = json.loads(found[0].read_text("utf-8"))
        said = "".join((found[0].parent / name).read_text("utf-8") for name in ("stdout.txt", "stderr.txt"))
    read = tuple(
        Check(scenario, check["name"], check["status"], check.get("errorMessage") or check.get("description"))
        for check in checks
    )
    return Verdict(scenario, done.returncode == 0 and bool(read), read, said.strip())
