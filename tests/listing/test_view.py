"""Filters, and the lists they leave."""

import pytest

from pegboard.catalog.registry import ToolRegistry
from pegboard.listing.view import EVERYTHING, Filter, View
from pegboard.result import ToolFailure
from pegboard.tool import RegisteredTool

TOOLS = ["git__log", "git__status", "github_docs__search", "gitlab__log", "memory_search"]


def tool(name: str, digest: int = 0) -> RegisteredTool:
    server, separator, own = name.partition("__")
    definition = {"name": name, "inputSchema": {"type": "object"}}
    return RegisteredTool(name, server if separator else None, own or name, definition, digest)


def left(wanted: Filter) -> list[str]:
    """What a filter leaves of the tools."""
    return [name for name in TOOLS if wanted.admits(tool(name))]


@pytest.mark.parametrize(
    ("server", "prefix", "names"),
    [
        (None, None, TOOLS),
        ("", "", TOOLS),
        ([], [], TOOLS),
        (" , ", ",", TOOLS),
        ("git", None, ["git__log", "git__status"]),
        ("git,gitlab", None, ["git__log", "git__status", "gitlab__log"]),
        (" git , gitlab ", None, ["git__log", "git__status", "gitlab__log"]),
        (["git", "gitlab"], None, ["git__log", "git__status", "gitlab__log"]),
        (["git,gitlab", "github_docs"], None, TOOLS[:4]),
        (("git",), None, ["git__log", "git__status"]),
        ("GitHub-Docs", None, ["github_docs__search"]),
        ("unknown", None, []),
        (None, "git__", ["git__log", "git__status"]),
        (None, "git", TOOLS[:4]),
        (None, "git__l,gitlab", ["git__log", "gitlab__log"]),
        (None, ["mem", "git__s"], ["git__status", "memory_search"]),
        (None, "GIT", []),
        ("git", "git__l", ["git__log"]),
        ("git,gitlab", "gitlab__", ["gitlab__log"]),
        ("git", "memory", []),
        (5, {"a": 1}, TOOLS),
    ],
)
def test_a_filter_leaves_what_matches(server: object, prefix: object, names: list[str]) -> None:
    """Servers and beginnings, as texts, comma lists or lists; both given, both must hold; nothing given is all."""
    assert left(Filter.of(server, prefix)) == names


MANY = [f"server_{number}" for number in range(100)]


@pytest.mark.parametrize("given", [MANY, ",".join(MANY), [MANY[:50], ",".join(MANY[50:])]])
def test_a_filter_has_a_hundred_names_at_most(given: object) -> None:
    """However they are given; nobody else waits while more are read."""
    assert Filter.of(given).servers == frozenset(MANY)
    assert Filter.of(None, given).prefixes == (tuple(MANY),)
    for server, prefix in (([given, "one_more"], None), (None, ["one_more", given])):
        with pytest.raises(ToolFailure, match="100 names"):
            Filter.of(server, prefix)


def test_a_static_tool_belongs_to_no_server() -> None:
    """Under a server filter Pegboard's own tools are not listed, whatever the servers are called."""
    assert not Filter.of("memory,memory_search,None").admits(tool("memory_search"))
    assert Filter.of(None, "memory_").admits(tool("memory_search"))


@pytest.mark.parametrize(
    ("outer", "inner", "names"),
    [
        (Filter.of("git"), EVERYTHING, ["git__log", "git__status"]),
        (EVERYTHING, Filter.of("git"), ["git__log", "git__status"]),
        (Filter.of("git,gitlab"), Filter.of("gitlab,github_docs"), ["gitlab__log"]),
        (Filter.of("git"), Filter.of("gitlab"), []),
        (Filter.of(None, "git"), Filter.of(None, "gitlab,memory"), ["gitlab__log"]),
        (Filter.of(None, "git__"), Filter.of(None, "gitlab__"), []),
        (Filter.of("git"), Filter.of(None, "git__s"), ["git__status"]),
        (EVERYTHING, EVERYTHING, TOOLS),
    ],
)
def test_within_holds_both(outer: Filter, inner: Filter, names: list[str]) -> None:
    """A request's filter inside of a client's can only narrow it, in whichever order they meet."""
    assert left(inner.within(outer)) == names
    assert left(outer.within(inner)) == names


def test_the_same_filter_twice_is_the_same_filter() -> None:
    """Filters that say the same are equal, so that clients with them share one list."""
    wanted = Filter.of("git", "git__,x")
    assert wanted == Filter.of(["git"], ["git__", "x"])
    assert wanted.within(wanted) == wanted
    assert wanted.within(EVERYTHING) == wanted
    assert len({wanted, Filter.of("git", "git__,x"), EVERYTHING, Filter.of()}) == 2


def test_a_view_lists_definitions_in_order() -> None:
    """A view is its tools in the order they were given."""
    view = View.of(tool(name) for name in TOOLS)
    assert [definition["name"] for definition in view.definitions] == TOOLS
    assert [entry.name for entry in view.items] == TOOLS


def test_the_same_list_has_the_same_digest() -> None:
    """Two views of the same tools cannot be told apart."""
    assert View.of([tool("a__b", 1), tool("c__d", 2)]).digest == View.of([tool("a__b", 1), tool("c__d", 2)]).digest


@pytest.mark.parametrize(
    "other",
    [
        [],
        [tool("a__b", 1)],
        [tool("a__b", 1), tool("c__d", 3)],
        [tool("a__b", 1), tool("c__e", 2)],
        [tool("c__d", 2), tool("a__b", 1)],
        [tool("a__b", 1), tool("c__d", 2), tool("e__f", 0)],
    ],
)
def test_another_list_has_another_digest(other: list[RegisteredTool]) -> None:
    """A tool more, a tool less, another name, another definition or another order shows in the digest."""
    assert View.of(other).digest != View.of([tool("a__b", 1), tool("c__d", 2)]).digest


@pytest.mark.parametrize(
    "change",
    [
        {"description": "b"},
        {"title": "t"},
        {"inputSchema": {"type": "object", "properties": {"x": {}}}},
        {"_meta": {"v": 2}},
        {"unknownField": None},
    ],
)
def test_any_change_of_a_definition_shows(change: dict[str, object]) -> None:
    """Whatever a server changes about a tool gives a new list, and changing it back gives the old one."""
    before = {"name": "x", "description": "a", "inputSchema": {"type": "object"}}
    registry = ToolRegistry()
    digests: list[int] = []
    for definition in (before, {**before, **change}, dict(before)):
        registry.register_mcp_tools("srv", [definition])
        digests.append(View.of(registry.all()).digest)
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]
