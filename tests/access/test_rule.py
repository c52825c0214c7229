"""What a rule gives: servers, toolsets, tools by patterns, and what it hides."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.access.access import Access
from pegboard.access.quota import Quota, Rate
from pegboard.access.rule import Rule, matches_any


@dataclass(frozen=True)
class Item:
    """As much of a tool as a rule asks about."""

    name: str
    server_name: str | None
    original_name: str = ""
    toolset: str | None = None
    claims_read_only: bool = False


def tool(server: str, name: str, *, shown: str = "", reads: bool = False) -> Item:
    return Item(shown or f"{server}__{name}", server, name, claims_read_only=reads)


def own(name: str, toolset: str, *, reads: bool = False) -> Item:
    return Item(name, None, name, toolset, reads)


GITHUB, DOCS = tool("github", "create_issue"), tool("docs", "search", reads=True)
MEMORY, FIND = own("memory_add", "memory"), own("tool_find", "discovery", reads=True)
ALL = (GITHUB, DOCS, MEMORY, FIND)


@pytest.mark.parametrize(
    ("rule", "admitted"),
    [
        (Rule(), ALL),
        # One of both given means none of the other; what finds tools is always there.
        (Rule(servers=("git*",)), (GITHUB, FIND)),
        (Rule(toolsets=("memory",)), (MEMORY, FIND)),
        (Rule(servers=("docs",), toolsets=("memory",)), (DOCS, MEMORY, FIND)),
        (Rule(servers=()), (FIND,)),
        (Rule(toolsets=()), (FIND,)),
        (Rule(allow=("github__*",)), (GITHUB, FIND)),
        (Rule(allow=("*_add", "docs__sea*")), (DOCS, MEMORY, FIND)),
        (Rule(deny=("*__create_*",)), (DOCS, MEMORY, FIND)),
        (Rule(deny=("tool_*",)), (GITHUB, DOCS, MEMORY)),
        (Rule(deny=("*",)), ()),
        (Rule(allow=("github__*",), deny=("github__create_*",)), (FIND,)),
        (Rule(read_only=True), (DOCS, FIND)),
    ],
)
def test_what_a_rule_gives(rule: Rule, admitted: tuple[Item, ...]) -> None:
    """Nothing given is all; each limit narrows."""
    assert tuple(item for item in ALL if Access((rule,)).admits(item)) == admitted


def test_all_rules_hold() -> None:
    """A token's own, and the one of the config that names it."""
    access = Access((Rule(servers=("github", "docs")), Rule(servers=("docs", "mail"))))
    assert [server for server in ("github", "docs", "mail") if access.admits_server(server)] == ["docs"]


def test_a_name_that_was_cut_or_has_no_server_is_judged_by_the_servers_own() -> None:
    """A pattern is written for the name that the server gave; one for the name that clients see works as well."""
    cut = tool("github", "delete_everything_there_is", shown="github__delete_eve_1a2b3c4d")
    bare = tool("docs", "delete", shown="delete")
    access = Access((Rule(deny=("github__delete_everything*", "docs__delete")),))
    assert not access.admits(cut)
    assert not access.admits(bare)
    assert not Access((Rule(deny=("delete",)),)).admits(bare)
    assert Access((Rule(allow=("docs__delete",)),)).admits(bare)


@pytest.mark.parametrize(
    ("rule", "something", "resources"),
    [
        (Rule(), True, True),
        (Rule(servers=("github",)), True, True),
        (Rule(servers=("docs",)), False, False),
        (Rule(allow=("github__search_*",)), True, False),
        (Rule(allow=("github__*",)), True, True),
        (Rule(allow=("*",)), True, True),
        (Rule(allow=("g*",)), True, True),
        (Rule(allow=("docs__*",)), False, False),
        (Rule(allow=("memory_add",)), False, False),
        (Rule(allow=("github__one",)), True, False),
        (Rule(deny=("github__*",)), False, False),
        (Rule(deny=("*_issue",)), True, True),
        (Rule(deny=("*y",)), True, True),
        (Rule(allow=("github__[!a]*",)), True, False),
        (Rule(allow=("*__*",)), True, True),
        (Rule(allow=("*y",)), True, False),
        (Rule(toolsets=("memory",)), False, False),
    ],
)
def test_what_is_known_of_a_server(rule: Rule, something: bool, resources: bool) -> None:
    """Resources have no name of ours, so they are for whoever has all of a server."""
    access = Access((rule,))
    assert access.admits_server("github") is something
    assert access.admits_resources("github") is resources


@pytest.mark.parametrize(
    ("deny", "is_whole"),
    [
        ("github__create_issue", False),
        ("github__create_*", False),
        ("*__create_*", False),
        ("Git-Hub__create", True),
        ("GITHUB__create", False),
        ("g*", False),
        ("github.create", False),
        ("github__create_is_1a2b3c4d", False),
        # The server's own name of a tool, which any server may have.
        ("create_issue", False),
        ("docs__*", True),
        ("docs__create_issue", True),
        ("git__*", True),
        ("[d]ocs__*", False),
        ("github", False),
    ],
)
def test_a_server_is_whole_where_no_tool_of_it_can_be_denied(deny: str, is_whole: bool) -> None:
    """Whatever its tools are called, also those that are not known or not served: only then all may be told of it."""
    assert Access((Rule(deny=(deny,)),)).admits_whole_server("github") is is_whole
    assert Access((Rule(allow=("github__*",), deny=(deny,)),)).admits_whole_server("github") is is_whole
    assert not Access((Rule(allow=("github__one",), deny=(deny,)),)).admits_whole_server("github")


def test_a_server_whose_name_has_a_dash_in_a_pattern_is_not_whole() -> None:
    """Patterns of `deny` are read in any spelling."""
    assert not Access((Rule(deny=("Git-Hub__create",)),)).admits_whole_server("git_hub")


def test_whoever_runs_the_gateway_knows_better_what_only_reads() -> None:
    """`tools.readOnly` of a server is in the place of what it says itself."""
    access = Access((Rule(read_only=True),), lambda server: ("search", "list_*") if server == "docs" else ())
    assert access.admits(tool("docs", "search"))
    assert access.admits(tool("docs", "list_all"))
    assert not access.admits(tool("docs", "wipe", reads=True))
    assert access.admits(tool("github", "read", reads=True))


def test_the_same_rules_are_the_same_access() -> None:
    """So that lists are made once for all who have it."""
    one, same, other = (Access((Rule(servers=(name,)),)) for name in ("a", "a", "b"))
    assert (one, hash(one)) == (same, hash(same))
    assert one != other


def test_namespaces_boards_scopes_and_quotas() -> None:
    """Each is what all rules say together."""
    slow = Quota(Rate(60, 60.0), 2)
    access = Access(
        (
            Rule(namespaces=("team", "shared"), boards=("team-*",), quota=slow),
            Rule(namespaces=("shared",), scopes=(("github__*", ("github.write",)),), server_quotas=(("git*", slow),)),
        )
    )
    assert [name for name in ("team", "shared", "default") if access.admits_namespace(name)] == ["shared"]
    assert access.shares_board("team-one") is True
    assert access.shares_board("mine") is False
    assert Access((Rule(),)).shares_board("mine") is None
    assert access.missing_scopes("github__create", frozenset({"other"})) == {"github.write"}
    assert not access.missing_scopes("github__create", frozenset({"github.write"}))
    assert not access.missing_scopes("docs__read", frozenset())
    assert access.quotas() == [slow]
    assert (access.quotas("github"), access.quotas("docs")) == ([slow], [])


@given(st.lists(st.text("ab_*?[!]", min_size=1, max_size=6), min_size=1, max_size=4), st.text("ab_[]!*", max_size=6))
def test_patterns_are_those_of_a_shell(patterns: list[str], name: str) -> None:
    """All at once as each by itself."""
    assert matches_any(name, tuple(patterns)) == any(fnmatchcase(name, pattern) for pattern in patterns)
