"""Rules in words."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.access.rule import Rule
from pegboard.access.rule_json import read_rule
from pegboard.access.rule_words import describe_rule, describe_rules


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "everything"),
        ({"admin": True}, "everything; admin"),
        ({"servers": []}, "no servers"),
        ({"servers": ["git*", "docs"], "readOnly": True}, "servers git* docs; read-only"),
        ({"toolsets": ["memory"], "namespaces": ["work"]}, "toolsets memory; namespaces work"),
        ({"tools": {"allow": ["*__get_*"], "deny": ["prod__*"]}}, "tools *__get_*; not prod__*"),
        ({"rate": "60/m", "inFlight": 3, "boards": ["team"]}, "boards team; 60/m; 3 at once"),
        ({"perServer": {"git*": {"rate": "1/s", "inFlight": 2}}}, "git* 1/s; git* 2 at once"),
        ({"scopes": {"*__delete": ["admin", "ops"]}}, "*__delete with scope admin ops"),
    ],
)
def test_a_rule_is_one_line(rule: dict[str, Any], words: str) -> None:
    """With everything that it says."""
    assert describe_rule(read_rule(rule, toolsets=("memory",))) == words


def test_whoever_a_rule_is_for_is_not_told_what_it_keeps_from_them() -> None:
    """That something is kept is said; the names are not."""
    rule = Rule(servers=("docs",), deny=("prod__*",), scopes=(("vault__x", ("y",)),))
    assert describe_rule(rule, hides_names=True) == "servers docs; not all tools"


def test_several_rules_hold_at_once() -> None:
    """Those that say nothing are left out."""
    assert describe_rules((Rule(), Rule())) == "everything"
    narrow = (Rule(servers=("one",)), Rule(), Rule(read_only=True))
    assert describe_rules(narrow) == "servers one, and of that read-only"
