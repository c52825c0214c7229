"""The official authorization scenarios for clients pass with the gateway as the client."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.auth_runs import REQUIRED_2025_11_25, REQUIRED_2026_07_28, run_scenario
from conformance.suite import NEXT
from node import NODE_MODULES

# `make conformance` runs all of them; these are the ones that need the most of the parts to work together.
CHOSEN = [
    ("auth/metadata-var2", "2026-07-28"),
    ("auth/scope-step-up", "2026-07-28"),
    ("auth/authorization-server-migration", "2026-07-28"),
    ("auth/iss-normalized", "2026-07-28"),
    ("auth/resource-mismatch", "2026-07-28"),
    ("auth/token-endpoint-auth-basic", "2025-11-25"),
    ("auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
    ("auth/client-credentials-jwt", "2026-07-28"),
    ("auth/enterprise-managed-authorization", "2026-07-28"),
]


@pytest.mark.scenario("sign-in: The official authorization scenarios pass with the gateway as the client")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("scenario", "version"), CHOSEN, ids=[scenario for scenario, _ in CHOSEN])
def test_a_scenario_passes_with_the_gateway_as_the_client(scenario: str, version: str) -> None:
    """No check fails, none warns, and what has to be refused is refused for the right reason."""
    verdict = run_scenario(scenario, version)
    assert verdict.passed, verdict.story
    assert verdict.summary.failed == verdict.summary.warnings == 0


@pytest.mark.parametrize(
    ("version", "scenarios"), [("2025-11-25", REQUIRED_2025_11_25), ("2026-07-28", REQUIRED_2026_07_28)]
)
@pytest.mark.scenario("sign-in: The official authorization scenarios pass with the gateway as the client")
def test_all_that_a_revision_requires_is_run(version: str, scenarios: tuple[str, ...]) -> None:
    """The suite's own list of requirements and ours name the same scenarios."""
    text = (Path(NODE_MODULES) / NEXT / "requirements" / f"{version}.yaml").read_text("utf-8")
    client = text.partition("\nclient:\n")[2].partition("\nnot_scored:")[0]
    assert sorted(re.findall(r"- (auth/\S+)", client)) == sorted(scenarios)
