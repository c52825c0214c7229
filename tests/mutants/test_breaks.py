"""The kept breaks still break something: each applies to the source as it is, and no entry of the ledger is without."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants import operators
from mutants.breaks import Break, breaks, equivalents, ledger


@pytest.mark.parametrize("kept", breaks(), ids=lambda kept: kept.name)
def test_a_kept_break_applies(kept: Break) -> None:
    """Its text stands in its file exactly once, and what comes of it is Python, but not the same."""
    assert kept.old != kept.new
    assert kept.apply()
    assert kept.entry in ledger()


def test_every_entry_of_the_ledger_has_a_break() -> None:
    """Otherwise nothing shows that its tests would notice anything."""
    assert set(ledger()) - {kept.entry for kept in breaks()} == set()


def test_an_equivalent_mutant_still_stands_where_it_was() -> None:
    """An entry of the list for a line that is gone would excuse nothing."""
    for known in equivalents():
        assert known.reason
        found = [(mutant.context, mutant.new) for mutant in operators.mutants(known.file)]
        assert (known.context, known.new) in found, known


SOURCE = '''\
"""Words."""
import os
LIMIT = 3


def first(items: list[int], more: bool = True) -> int | None:
    """Words that nobody runs: 1 < 2."""
    logger().info("said", count=1)
    while items and len(items) < LIMIT:
        if not more:
            break
        items.append(pow(1, 2))
    return items[0] if items else None


def __repr__() -> str:
    return "1"
'''


def test_mutants_are_in_what_runs_and_not_in_words(tmp_path: Path) -> None:
    """Each is Python, has one change, and stands neither in a docstring nor in what is logged."""
    (tmp_path / "module.py").write_text(SOURCE)
    found = operators.mutants("module.py", tmp_path)
    assert {(mutant.line, mutant.operator) for mutant in found} >= {
        (3, "constant"),
        (6, "constant"),
        (9, "and/or"),
        (9, "comparison"),
        (10, "not"),
        (11, "break"),
        (12, "removed statement"),
        (12, "swapped arguments"),
        (13, "return None"),
        (13, "condition"),
    }
    assert not {1, 2, 7, 8, 16, 17} & {mutant.line for mutant in found}
    assert next(mutant.constant for mutant in found if mutant.line == 3) == "LIMIT"
    for mutant in found:
        mutated = mutant.apply(tmp_path)
        assert mutated is not None
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(SOURCE))
