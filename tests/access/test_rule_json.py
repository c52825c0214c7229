"""Rules as JSON: whatever is not understood is refused, and what is written is read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.access.quota import Quota, Rate
from pegboard.access.rule import Rule
from pegboard.access.rule_json import RuleError, fold_pattern, fold_server_pattern, read_rule, write_rule
from pegboard.config import ConfigError, read_settings

TOOLSETS = ("discovery", "memory")

words = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())
some_words = st.lists(words, max_size=3).map(tuple)
quotas = st.builds(
    Quota,
    st.none() | st.builds(Rate, st.integers(1, 10**9 - 1), st.sampled_from([1.0, 60.0, 3600.0, 86400.0])),
    st.none() | st.integers(1, 100_000),
)


def by_pattern(values: st.SearchStrategy[Any], fold: Callable[[str], str]) -> st.SearchStrategy[tuple[Any, ...]]:
    """What is said of some patterns, no two of which are the same one."""
    return st.lists(st.tuples(words, values), max_size=2, unique_by=lambda pair: fold(pair[0])).map(tuple)


rules = st.builds(
    Rule,
    who=st.lists(st.sampled_from(["local", "*"]) | words.map("sub:{}".format), max_size=3).map(tuple),
    servers=st.none() | some_words,
    toolsets=st.none() | st.lists(st.sampled_from(TOOLSETS)).map(tuple),
    allow=some_words,
    deny=some_words,
    read_only=st.booleans(),
    boards=st.none() | some_words,
    namespaces=st.none() | st.lists(words, min_size=1, max_size=3).map(tuple),
    quota=quotas,
    server_quotas=by_pattern(quotas, fold_server_pattern),
    scopes=by_pattern(some_words, fold_pattern),
    admin=st.booleans(),
)


def read_again(rule: Rule) -> Rule:
    return read_rule(json.loads(json.dumps(write_rule(rule))), toolsets=TOOLSETS)


@given(rules)
def test_what_is_written_is_read_again(rule: Rule) -> None:
    """Every field, and what says nothing is left out; names of servers are folded once."""
    once = read_again(rule)
    assert read_again(once) == once
    assert replace(once, servers=(), allow=(), deny=(), server_quotas=(), scopes=()) == replace(
        rule, servers=(), allow=(), deny=(), server_quotas=(), scopes=()
    )


def test_servers_are_named_as_in_the_config() -> None:
    """A pattern that fits nothing would hide nothing."""
    given = {
        "servers": ["GitHub-Docs", "My*"],
        "tools": {"deny": ["My Srv__*", "Public__wipe", "memory_*", "*__Wipe", "Git-*__x"]},
        "perServer": {"GitHub-Docs": {"inFlight": 1}},
        "scopes": {"GitHub-Docs__x": ["a"]},
    }
    rule = read_rule(given, toolsets=TOOLSETS)
    assert rule.servers == ("github_docs", "my*")
    assert rule.deny == ("my_srv__*", "public__wipe", "memory_*", "*__Wipe", "git_*__x")
    assert rule.server_quotas == (("github_docs", Quota(None, 1)),)
    assert rule.scopes == (("github_docs__x", ("a",)),)


@pytest.mark.scenario("access: A field that is not understood makes a rule invalid")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the rule must be an object"),
        ({"readonly": True}, "readonly is not known; did you mean readOnly?"),
        ({"readOnly": "yes"}, "readOnly must be true or false"),
        ({"servers": "github"}, 'servers must be a list of texts: write ["github"]'),
        ({"servers": 7}, "servers must be a list of texts"),
        ({"servers": [""]}, "servers[0] must be a text"),
        ({"servers": [7]}, "servers[0] must be a text"),
        ({"toolsets": ["memori"]}, "toolsets[0] is not a toolset: there are discovery, memory"),
        ({"tools": {"allowed": []}}, "tools.allowed is not known: there are allow and deny"),
        ({"tools": {"allow": []}}, "tools.allow must name something"),
        ({"tools": []}, "tools must name something"),
        ({"namespaces": []}, "namespaces must name something"),
        ({"namespaces": ["a" * 129]}, "namespaces has a name of more than 128 characters"),
        ({"rate": "60"}, 'rate must be a rate such as "60/m"'),
        ({"rate": "0/m"}, "rate must be a rate"),
        ({"rate": 60}, "rate must be a rate"),
        ({"inFlight": 0}, "inFlight must be a whole number from 1"),
        ({"inFlight": True}, "inFlight must be a whole number from 1"),
        ({"perServer": {"git": {"rates": 1}}}, "perServer.git.rates is not known"),
        ({"scopes": {"x": "y"}}, "scopes.x must be a list"),
        (
            {"perServer": {"GitHub": {"inFlight": 1}, "github": {"rate": "1/s"}}},
            "perServer.github is the same as GitHub",
        ),
        ({"scopes": {"My-Srv__x": ["a"], "my_srv__x": ["b"]}}, "scopes.my_srv__x is the same as My-Srv__x"),
        ({"who": ["alice"]}, 'who[0] must be "local", "anonymous", "*", or one of token:NAME'),
        ({"who": ["sub:"]}, "who[0] must be"),
        ({"who": ["local", "anonymous"], "admin": True}, 'admin cannot be given to "anonymous"'),
    ],
)
def test_what_is_not_understood_is_refused(value: Any, message: str) -> None:
    """A misspelt limit would be no limit."""
    with pytest.raises(RuleError) as caught:
        read_rule(value, toolsets=TOOLSETS)
    assert message in str(caught.value)


def test_a_rule_of_the_config_says_for_whom_it_is() -> None:
    """One for nobody would be a mistake."""
    with pytest.raises(RuleError, match="needs who"):
        read_rule({"servers": ["x"]}, toolsets=TOOLSETS, needs_who=True)


@pytest.mark.parametrize("text", ["60/m", "1/s", "5000/h", "9/d", " 10 / s "])
def test_rates_as_people_write_them(text: str) -> None:
    """And as they are written again."""
    rate = Rate.parse(text)
    assert rate is not None
    assert str(rate) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("auth", "place", "message"),
    [
        ({"require": True}, ":1:", "has 'require', which is not a setting; did you mean required?"),
        ({"required": "yes"}, "required", 'must be "remote", true or false'),
        ({"rules": [{"who": ["*"], "readonly": True}]}, "auth.rules[0]", "did you mean readOnly?"),
        ({"rules": [{"who": ["*"], "tools": {"deny": [1]}}]}, "auth.rules[0].tools.deny[0]", "must be a text"),
        ({"rules": {}}, "rules", "must be a list"),
        ({"issuers": [{}]}, "issuers[0]", "needs issuer"),
        ({"issuers": [{"issuer": "http://far.example"}]}, "issuers[0].issuer", "must begin with https://"),
        ({"issuers": [{"issuer": "https://a", "algorithms": ["HS256"]}]}, "algorithms", "which is not taken"),
        ({"issuers": [{"issuer": "https://a", "algorithms": []}]}, "algorithms", "at least one"),
        ({"publicUrl": "nonsense"}, "publicUrl", "must be an http"),
    ],
)
def test_the_section_says_where_it_is_wrong(tmp_path: Path, auth: Any, place: str, message: str) -> None:
    """The file is refused as a whole, with file, place and reason."""
    file = tmp_path / "pegboard.json"
    file.write_text(json.dumps({"pegboard": {"auth": auth}}), "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_settings(file, os.environ)
    assert str(file) in str(caught.value)
    assert place in str(caught.value)
    assert message in str(caught.value)


def test_the_section_as_settings(tmp_path: Path) -> None:
    """Everything that can be said."""
    auth = {
        "required": True,
        "publicUrl": "https://tools.example/",
        "issuers": [{"issuer": "${WHO:-https://id.example}", "audience": "https://tools.example/mcp", "scopes": ["a"]}],
        "rules": [{"who": ["group:ops"], "servers": ["git*"], "admin": True}],
    }
    file = tmp_path / "pegboard.json"
    file.write_text(json.dumps({"pegboard": {"auth": auth}}), "utf-8")
    found = read_settings(file, os.environ).auth
    assert (found.required, found.public_url) == (True, "https://tools.example")
    (issuer,) = found.issuers
    assert (issuer.issuer, issuer.audience) == ("https://id.example", ("https://tools.example/mcp",))
    assert (issuer.scopes, issuer.subject, issuer.groups) == (("a",), "sub", "groups")
    assert found.rules == (Rule(who=("group:ops",), servers=("git*",), admin=True),)
