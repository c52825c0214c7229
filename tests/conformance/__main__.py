"""`make conformance`: every suite against the gateway, as a table for people and a last line of JSON for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from conformance.expected import EXPECTED_FAILURES
from conformance.gateway_runs import RUNS, run
from conformance.suite import Summary, failures


def main() -> int:
    """Run them all; 1 if anything fails that is not expected to, or passes that is."""
    counts: dict[str, dict[str, int]] = {}
    surprises = 0
    print(f"{'suite':<32}{'server':<12}{'passed':>8}{'failed':>8}{'expected':>10}{'warnings':>10}")
    for chosen in RUNS:
        checks = run(chosen)
        summary = Summary.of(checks)
        failed = failures(checks)
        expected = EXPECTED_FAILURES[chosen.name]
        counts[chosen.name] = {"passed": summary.passed, "failed": summary.failed}
        print(
            f"{chosen.name:<32}{chosen.server_era:<12}{summary.passed:>8}{summary.failed:>8}"
            f"{len(expected):>10}{summary.warnings:>10}"
        )
        for check in sorted(failed & set(expected)):
            print(f"  {check}: fails as expected: {expected[check]}")
        for check in sorted(failed ^ set(expected)):
            surprises += 1
            print(f"  {check}: {'failed' if check in failed else 'passed, though it was expected to fail'}")
    print(json.dumps(counts))
    return 1 if surprises else 0


if __name__ == "__main__":
    raise SystemExit(main())
