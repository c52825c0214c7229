"""What tools and servers are called, and what is offered for a name that nobody has."""

import hashlib
import re
import time
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard import names
from pegboard.names import compose, fold_server_name, is_snake_case, nearest, parse, public_name

_EXPOSED = re.compile(r"[a-zA-Z0-9_-]+")
_SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_FINE = st.from_regex(r"[a-zA-Z0-9_-]{1,200}", fullmatch=True)
_SERVERS = st.from_regex(r"[a-z0-9]{1,6}(_[a-z0-9]{1,6}){0,2}", fullmatch=True)
_LIMITS = st.integers(min_value=16, max_value=128)

steady = settings(derandomize=True, deadline=None)


# server__tool


@pytest.mark.scenario("registry: Names: one parser, split at the first separator")
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("git__log", ("git", "log")),
        ("a__b__c", ("a", "b__c")),
        ("a____b", ("a", "__b")),
        ("a___b", ("a", "_b")),
        ("a_b__c_d", ("a_b", "c_d")),
        ("git__Log.all/now", ("git", "Log.all/now")),
        ("__tool", None),
        ("server__", None),
        ("__", None),
        ("____", None),
        ("a_b", None),
        ("tool_find", None),
        ("", None),
    ],
)
def test_parse(name: str, parts: tuple[str, str] | None) -> None:
    """A name is split at the first `__`; without a server, a tool or a `__` it is no such name."""
    assert parse(name) == parts


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [("git", "log", "git__log"), ("a_b", "c__d", "a_b__c__d"), ("git", "Log.all", "git__Log.all")],
)
def test_compose(server: str, tool: str, name: str) -> None:
    """A tool's full name is the server's, `__`, and its own as the server calls it."""
    assert compose(server, tool) == name


@pytest.mark.scenario("registry: Names: one parser, split at the first separator")
@given(_SERVERS, st.text(min_size=1))
@example("a", "_b")
@steady
def test_what_was_composed_is_parsed_back(server: str, tool: str) -> None:
    """No tool name, not even one with `__` in it, makes the way back ambiguous."""
    assert parse(compose(server, tool)) == (server, tool)


@given(_SERVERS, _SERVERS, st.text(min_size=1), st.text(min_size=1))
@example("a", "a_b", "b_c", "c")
@steady
def test_two_tools_never_share_a_full_name(one: str, other: str, tool: str, second: str) -> None:
    """`a` + `b_c` and `a_b` + `c`, which met under a one-underscore rule, do not meet here."""
    assert (compose(one, tool) == compose(other, second)) is ((one, tool) == (other, second))


# What clients see


@pytest.mark.parametrize("name", ["a", "git__log", "A-b_C9", "x" * 48, "-", "__"])
def test_a_name_that_is_fine_is_kept(name: str) -> None:
    """A name within the limit and of allowed characters is not touched."""
    assert public_name(name, 48) == name


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("name", "limit", "exposed"),
    [
        ("x" * 49, 48, "x" * 39 + "_" + digest("x" * 49)),
        ("x" * 65, 64, "x" * 55 + "_" + digest("x" * 65)),
        ("x" * 17, 16, "x" * 7 + "_" + digest("x" * 17)),
        ("git__log.all", 48, "git__log_all_" + digest("git__log.all")),
        ("git__größe/now", 48, "git__gr__e_now_" + digest("git__größe/now")),
        ("git__log\n", 48, "git__log__" + digest("git__log\n")),
        ("a" * 47 + ".", 48, "a" * 39 + "_" + digest("a" * 47 + ".")),
    ],
)
def test_a_name_that_is_not_is_cut_and_gets_a_digest(name: str, limit: int, exposed: str) -> None:
    """A longer or stranger name keeps its beginning and gets a digest of the original, whole one."""
    assert public_name(name, limit) == exposed


def test_the_digest_is_the_same_on_every_start() -> None:
    """Clients and transcripts keep exposed names, so one is written down here."""
    assert public_name("git__log.all", 48) == "git__log_all_01fd0416"
    assert fold_server_name("日本語") == "server_77710aed"


@given(st.text(min_size=1), _LIMITS)
@example("a" * 128 + "é", 16)
@example("\ud800", 16)
@steady
def test_what_is_exposed_is_always_accepted(name: str, limit: int) -> None:
    """Whatever a server calls its tool, the exposed name has only allowed characters and keeps to the limit."""
    exposed = public_name(name, limit)
    assert _EXPOSED.fullmatch(exposed)
    assert len(exposed) <= limit
    assert public_name(name, limit) == exposed


@given(_FINE, _LIMITS)
@steady
def test_only_what_must_change_changes(name: str, limit: int) -> None:
    """Of allowed characters, a name changes if and only if it is too long, and then fills the limit."""
    exposed = public_name(name, limit)
    assert (exposed == name) is (len(name) <= limit)
    assert len(exposed) == min(len(name), limit)


@given(st.text(min_size=1), st.text(min_size=1), _LIMITS)
@example("git__a.b", "git__a/b", 48)
@example("x" * 60 + "1", "x" * 60 + "2", 48)
@example("größe", "große", 16)
@steady
def test_different_names_stay_different(one: str, other: str, limit: int) -> None:
    """Names that differ only in what is cut or replaced are told apart by their digests."""
    assert (public_name(one, limit) == public_name(other, limit)) is (one == other)


@given(st.text(min_size=1), _LIMITS)
@steady
def test_exposing_twice_changes_nothing_more(name: str, limit: int) -> None:
    """An exposed name is itself fine."""
    assert public_name(public_name(name, limit), limit) == public_name(name, limit)


# Servers' names


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("git", True),
        ("github_docs", True),
        ("s3", True),
        ("3d", True),
        ("a_1_b", True),
        ("", False),
        ("Git", False),
        ("git-hub", False),
        ("a__b", False),
        ("_a", False),
        ("a_", False),
        ("a b", False),
        ("git\n", False),
        ("é", False),
        ("٣", False),
    ],
)
def test_is_snake_case(name: str, fine: bool) -> None:
    """Lower-case ASCII letters and digits with single underscores inside, and nothing else."""
    assert is_snake_case(name) is fine


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("github_docs", "github_docs"),
        ("GitHub-Docs", "github_docs"),
        ("My  Server!", "my_server"),
        ("a__b", "a_b"),
        ("__a__", "a"),
        ("@scope/pkg.name", "scope_pkg_name"),
        ("Café Zürich", "cafe_zurich"),
        ("ﬁle", "file"),
        ("docs 日本", "docs"),
    ],
)
def test_fold_server_name(given_name: str, name: str) -> None:
    """Every other character becomes one underscore, accents go, and what is fine stays."""
    assert fold_server_name(given_name) == name


@pytest.mark.parametrize("name", ["日本語", "Привет", "🦊", "---", "", " "])
def test_a_name_without_ascii_gets_one_of_its_own(name: str) -> None:
    """A name of which nothing would be left gets a stable one that no other name gets."""
    folded = fold_server_name(name)
    assert re.fullmatch(r"server_[0-9a-f]{8}", folded)
    assert folded == fold_server_name(name)
    assert folded != fold_server_name(name + name + "!")


@given(st.text())
@example("\ud800")
@steady
def test_folding_always_gives_a_server_name(name: str) -> None:
    """Whatever a server is called in a file, its name here is snake_case, without `__`, and folds to itself."""
    folded = fold_server_name(name)
    assert _SNAKE.fullmatch(folded)
    assert is_snake_case(folded)
    assert fold_server_name(folded) == folded


@given(_SERVERS)
@steady
def test_folding_keeps_what_is_fine(name: str) -> None:
    """A snake_case name is kept, and so is one that differs from it by case and dashes alone."""
    assert fold_server_name(name) == name
    assert fold_server_name(name.upper().replace("_", "-")) == name


# Suggestions

_KNOWN = ["docs__search", "docs__search_pages", "git__commit", "git__log", "git__status", "memory_search", "tool_find"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("git__lgo", "git__log"),
        ("git__stauts", "git__status"),
        ("gti__status", "git__status"),
        ("git_status", "git__status"),
        ("GIT__STATUS", "git__status"),
        ("tool_fnd", "tool_find"),
        ("memorysearch", "memory_search"),
        ("doc__search_page", "docs__search_pages"),
    ],
)
def test_a_typo_finds_the_name_that_was_meant(name: str, first: str) -> None:
    """One slip of the fingers is enough to know what was meant."""
    assert nearest(name, _KNOWN)[0] == first


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("commit", "git__commit"),
        ("search_pages", "docs__search_pages"),
        ("github_enterprise__commit", "git__commit"),
        ("Commit", "git__commit"),
    ],
)
def test_a_tool_is_found_without_its_server(name: str, first: str) -> None:
    """A tool's own name, bare or under another server's, finds the tool."""
    assert nearest(name, _KNOWN)[0] == first


@pytest.mark.parametrize("name", ["commit", "COMMIT", "git__commit", "some_quite_different_server__comit"])
@pytest.mark.parametrize("known", ["a_server_with_a_long_name__commit", "A_SERVER_WITH_A_LONG_NAME__COMMIT"])
def test_servers_and_letter_case_do_not_hide_a_tool(name: str, known: str) -> None:
    """However unlike the servers' names are, and in whatever case, a tool is found by its own name."""
    assert nearest(name, [known, "xyzzy"]) == [known]


def test_letter_case_does_not_count() -> None:
    """A name in another case is a match of the whole name."""
    assert nearest("git__status", ["git__statuses", "GIT__STATUS"]) == ["GIT__STATUS", "git__statuses"]


def test_the_whole_name_counts_more_than_its_end() -> None:
    """Where one name is the whole and another only the end, the whole one comes first."""
    assert nearest("status", ["git__status", "status"]) == ["status", "git__status"]


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [("abcde", "abcxy", True), ("abcde", "abxyz", False), ("abc", "abcdefg", True), ("abc", "abcdefgh", False)],
)
def test_where_likeness_ends(name: str, known: str, near: bool) -> None:
    """Three fifths in common are enough to be offered, and less is not."""
    assert nearest(name, [known]) == ([known] if near else [])


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("servers", "service", False),
        ("reports", "sports", True),
        ("weather", "feature", False),
        ("log", "logs", True),
        ("search", "memory_search", True),
        ("docs", "dogs", True),
        ("read_file", "read_files", True),
        ("list_issues", "list_branches", False),
        ("create_isue", "create_issue", True),
        ("craete_issues", "create_issue", True),
    ],
)
def test_no_name_is_offered_that_nobody_meant(name: str, known: str, near: bool) -> None:
    """Two slips, or a third of the letters, are what a person mistypes; a name's beginning or end is enough."""
    assert nearest(name, [known]) == ([known] if near else [])


@pytest.mark.parametrize("name", ["xyzzy", "qqqqqqqqqqqq", "", "__", "zebra__jumps"])
def test_nonsense_finds_nothing(name: str) -> None:
    """Where nothing is near, nothing is offered."""
    assert nearest(name, _KNOWN) == []


def test_nothing_is_near_nothing() -> None:
    """Without known names there is nothing to offer."""
    assert nearest("git__log", []) == []


def test_the_best_comes_first() -> None:
    """Suggestions are ordered by likeness, and ties by name."""
    assert nearest("git__statu", ["git__status", "git__statues", "git__state"]) == [
        "git__status",
        "git__statues",
        "git__state",
    ]
    assert nearest("tool_x", ["tool_c", "tool_a", "tool_b"]) == ["tool_a", "tool_b", "tool_c"]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5])
def test_no_more_than_asked_for(limit: int) -> None:
    """The limit holds, and a smaller one gives the beginning of the same list."""
    known = [f"tool_{letter}" for letter in "abcd"]
    assert nearest("tool_x", known, limit) == sorted(known)[:limit]


def test_three_are_offered_unless_told_otherwise() -> None:
    """A message offers three names."""
    assert len(nearest("tool_x", [f"tool_{letter}" for letter in "abcdef"])) == 3


@pytest.mark.parametrize(
    ("name", "known"), [("a" * 90, "a" * 80), ("ab" * 45, "ba" * 40), ("abcdefgh" * 8, "hgfedcba" * 7)]
)
def test_names_are_compared_as_far_as_that_is_quick(name: str, known: str) -> None:
    """To compare two takes quadratic time: with a thousand that are all alike it would be seconds."""
    names = [f"{known}{number:03}" for number in range(1_000)]
    before = time.thread_time()
    nearest(name, names)
    assert time.thread_time() - before < 0.3
    assert nearest("a" * 1_000_000, ["a" * 999_999]) == []


def test_among_very_many_names_those_that_begin_alike_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may have ten thousand prompts, and whoever misspells one must not hold up everybody else."""
    compared: list[str] = []
    bound = names._Likeness.upper_bound
    monkeypatch.setattr(
        names._Likeness, "upper_bound", lambda self, other: compared.append(other) or bound(self, other)
    )
    known = [f"git__other{number}" for number in range(10_000)] + ["git__Status", "status", "docs__start"]
    assert nearest("git__statas", known) == ["git__Status", "status"]
    assert not any("other" in each for each in compared)
    nearest("git__othr1", known)
    assert len(compared) < 3_000


def test_a_known_name_is_nearest_to_itself() -> None:
    """A name that exists comes before all that are like it."""
    assert all(nearest(name, _KNOWN)[0] == name for name in _KNOWN)


_SMALL = st.lists(st.from_regex(r"[abAB_]{1,8}", fullmatch=True), max_size=8, unique=True)


@given(st.from_regex(r"[abAB_]{0,8}", fullmatch=True), _SMALL, st.randoms(use_true_random=False))
@steady
def test_suggestions_do_not_depend_on_the_order_of_names(name: str, known: list[str], dealer: Random) -> None:
    """The same names in another order, or as a set, give the same suggestions, all of them known."""
    shuffled = list(known)
    dealer.shuffle(shuffled)
    found = nearest(name, known)
    assert found == nearest(name, shuffled) == nearest(name, frozenset(known))
    assert set(found) <= set(known)
    assert len(found) == len(set(found)) <= 3
