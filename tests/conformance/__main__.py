"""`make conformance`: every suite against the gateway, as tables for people and a last line of JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from conformance.auth_runs import AUTH_RUNS, AuthRun, run_all
from conformance.expected import EXPECTED_FAILURES
from conformance.gateway_runs import RUNS, Run, run
from conformance.suite import Summary, failures

Counts = dict[str, dict[str, int]]


def main() -> int:
    """Run them all; 1 if anything fails that is not expected to, or passes that is."""
    counts: Counts = {}
    surprises = 0
    print(f"{'suite':<32}{'server':<12}{'passed':>8}{'failed':>8}{'expected':>10}{'warnings':>10}")
    for chosen in RUNS:
        surprises += show(chosen, counts)
    print(f"\n{'scenarios of':<32}{'revision':<12}{'passed':>8}{'failed':>8}{'expected':>10}{'checks':>10}")
    for scenarios in AUTH_RUNS:
        surprises += show_scenarios(scenarios, counts)
    print(json.dumps(counts))
    return 1 if surprises else 0


def show(chosen: Run, counts: Counts) -> int:
    """Run a suite whose client is the suite, with checks as the unit; how many surprises there were."""
    checks = run(chosen)
    summary = Summary.of(checks)
    expected = EXPECTED_FAILURES[chosen.name]
    counts[chosen.name] = {"passed": summary.passed, "failed": summary.failed}
    print(
        f"{chosen.name:<32}{chosen.server_era:<12}{summary.passed:>8}{summary.failed:>8}"
        f"{len(expected):>10}{summary.warnings:>10}"
    )
    return tell_failures(failures(checks), expected)


def show_scenarios(chosen: AuthRun, counts: Counts) -> int:
    """Run scenarios whose client is the gateway, with scenarios as the unit; how many surprises there were."""
    verdicts = run_all(chosen)
    failed = {verdict.scenario: verdict.story for verdict in verdicts if not verdict.passed}
    expected = EXPECTED_FAILURES[chosen.name]
    passed = len(verdicts) - len(failed)
    counts[chosen.name] = {"passed": passed, "failed": len(failed)}
    checks = Summary.of([check for verdict in verdicts for check in verdict.checks])
    print(
        f"{chosen.name:<32}{chosen.spec_version:<12}{passed:>8}{len(failed):>8}{len(expected):>10}"
        f"{f'{checks.passed}/{checks.passed + checks.failed}':>10}"
    )
    for verdict in verdicts:
        summary = verdict.summary
        print(f"  {verdict.scenario:<46}{summary.passed:>8}{summary.failed:>8}{summary.warnings:>10} warnings")
    surprises = tell_failures(failed, expected)
    for scenario in sorted(set(failed) - set(expected)):
        print(f"    {failed[scenario]}")
    return surprises


def tell_failures(failed: Collection[str], expected: Mapping[str, str]) -> int:
    """Say what failed as expected, and what did not; how much that is."""
    for title in sorted(set(failed) & set(expected)):
        print(f"  {title}: fails as expected: {expected[title]}")
    surprises = sorted(set(failed) ^ set(expected))
    for title in surprises:
        print(f"  {title}: {'failed' if title in failed else 'passed, though it was expected to fail'}")
    return len(surprises)


if __name__ == "__main__":
    raise SystemExit(main())
