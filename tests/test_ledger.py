"""The ledger: every scenario of the requirements has a test that proves it, and every such test says so."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "tests" / "ledger.toml"
# The requirement documents stand beside the project where it is developed; elsewhere the ledger is all there is.
SPECS = ROOT.parent / "shared" / "specs"


@cache
def ledger() -> dict[str, dict[str, list[str]]]:
    """Document → scenario → the tests that prove it."""
    return tomllib.loads(LEDGER.read_text("utf-8"))


@cache
def marked() -> dict[str, set[str]]:
    """Scenario id → the tests that are marked with it."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for scenario in _scenarios(node):
                    found.setdefault(scenario, set()).add(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def _scenarios(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [
        argument.value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.scenario"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def entries() -> list[tuple[str, list[str]]]:
    return [(f"{document}: {title}", tests) for document, titles in ledger().items() for title, tests in titles.items()]


@pytest.mark.parametrize(("scenario", "tests"), entries(), ids=[scenario for scenario, _ in entries()])
def test_a_scenario_is_proven_by_the_tests_that_say_so(scenario: str, tests: list[str]) -> None:
    """The ledger's tests are exactly those that carry the scenario's mark."""
    assert tests, "no test proves it"
    assert set(tests) == marked().get(scenario, set())


def test_no_test_claims_a_scenario_that_is_not_in_the_ledger() -> None:
    """A mark with a typing error would prove nothing."""
    assert set(marked()) - {scenario for scenario, _ in entries()} == set()


@pytest.mark.parametrize(
    ("document", "file"),
    [
        ("gateway", "2-gateway.md"),
        ("discovery", "1-tool-discovery.md"),
        ("memory", "3-memory-search.md"),
        ("chats", "5-chat-tools.md"),
    ],
)
def test_the_ledger_has_every_scenario_of_its_document(document: str, file: str) -> None:
    """Where the requirements stand beside the project, the ledger and they name the same scenarios."""
    if not SPECS.exists():
        # Not a missing part: a checkout elsewhere has the ledger alone, and it is held to the tests above.
        return
    titles = re.findall(r"#### Scenario: (.*)", (SPECS / file).read_text("utf-8"))
    assert sorted(ledger()[document]) == sorted(titles)
