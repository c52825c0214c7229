"""What rules name that there is not."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.access.rule_check import KnownNames, check_rule
from pegboard.access.rule_json import read_rule

KNOWN = KnownNames(
    servers=frozenset({"github", "docs", "new"}),
    unasked=frozenset({"new"}),
    toolsets=frozenset({"memory"}),
    tools=frozenset({"github__get_issue", "docs__look", "memory_get"}),
    boards=frozenset({"team"}),
    tokens=frozenset({"ci", "laptop", "abcdef012345"}),
    issuers=frozenset({"https://id.example"}),
)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"servers": ["github", "GitHub", "d*"], "toolsets": ["memory"], "perServer": {"doc?": {"rate": "1/s"}}},
        {"tools": {"allow": ["github__get_*", "*__look"], "deny": ["docs__*"]}},
        {"tools": ["new__whatever"]},
        {"boards": ["team", "another", "t*"], "namespaces": ["anything"]},
        {"who": ["local", "anonymous", "*", "token:ci", "token:c*", "token:abcdef012345", "issuer:https://id.example"]},
        {"who": ["group:ops"], "scopes": {"*__get_issue": ["x"]}},
    ],
)
def test_what_there_is_needs_no_remark(rule: dict[str, Any]) -> None:
    """Nor does what nobody can tell yet: tools of a server that was never asked, a board that may come."""
    assert check_rule(read_rule(rule, toolsets=("memory", "tasks")), KNOWN) == []


@pytest.mark.parametrize(
    ("rule", "remark"),
    [
        ({"servers": ["gihtub"]}, 'servers: there is no server "gihtub"; did you mean github?'),
        ({"servers": ["zzz"]}, 'servers: there is no server "zzz"'),
        ({"servers": ["git-*"]}, 'servers: no server fits "git_*"'),
        ({"perServer": {"dosc": {"rate": "1/s"}}}, 'perServer: there is no server "dosc"; did you mean docs?'),
        ({"toolsets": ["tasks"]}, 'toolsets: "tasks" is switched off'),
        ({"boards": ["taem"]}, 'boards: nothing is loaded on a board "taem"; did you mean team?'),
        ({"tools": ["docs__lock"]}, 'tools.allow: there is no tool "docs__lock"; did you mean docs__look?'),
        ({"tools": {"deny": ["github__delete_*"]}}, 'tools.deny: no tool fits "github__delete_*"'),
        ({"tools": {"deny": ["gihtub__*"]}}, 'tools.deny: there is no server "gihtub"; did you mean github?'),
        ({"tools": {"deny": ["docs"]}}, 'tools.deny: "docs" is a server and no tool; "docs__*" is all of its tools'),
        ({"scopes": {"docs__lok": ["y"]}}, 'scopes: there is no tool "docs__lok"; did you mean docs__look?'),
        ({"who": ["token:latpop"]}, 'who: there is no token "latpop"; did you mean laptop?'),
        ({"who": ["token:x-*"]}, 'who: no token fits "x-*"'),
        ({"who": ["issuer:https://id.exampel"]}, 'who: there is no issuer "https://id.exampel"'),
    ],
)
def test_what_there_is_not_is_named(rule: dict[str, Any], remark: str) -> None:
    """Once, with the nearest name."""
    (found,) = check_rule(read_rule(rule, toolsets=("memory", "tasks")), KNOWN)
    assert found.startswith(remark)


def test_without_issuers_nobody_has_a_jwt() -> None:
    """So a rule for somebody with one is for nobody."""
    rule = read_rule({"who": ["*", "group:ops"]}, toolsets=())
    assert check_rule(rule, KnownNames()) == [
        'who: "*" is nobody, since auth.issuers is empty',
        'who: "group:ops" is nobody, since auth.issuers is empty',
    ]


def test_a_pattern_for_tools_of_all_servers_waits_for_those_that_were_never_asked() -> None:
    """One of them may have what fits."""
    rule = read_rule({"tools": ["*__nothing", "nothing"]}, toolsets=())
    assert check_rule(rule, KNOWN) == []
    asked = KnownNames(servers=frozenset({"docs"}), tools=frozenset({"docs__look"}))
    assert len(check_rule(rule, asked)) == 2
