"""Tools come and go; the index is always the one that would be built anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.search import document
from pegboard.search.index import Hit, ToolIndex
from stepping import outcome

SERVERS = ("alpha", "beta", "gamma")
WORDS = ("create", "list", "pull", "request", "pullRequest", "weather", "forecast", "火车票", "the", "s3", "lists")
QUERIES = ("create pull request", "list", "wether forcast", "pullrequest", "火车", "the", "weather list s3 weather")

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def tools(server: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Tools with few names, so that they meet."""
    return st.builds(
        lambda owner, name, description, parameter: {
            "name": f"{owner}__{name}",
            "server": owner,
            "description": description,
            "inputSchema": {"properties": {parameter: {"description": description[::-1]}}},
        },
        server,
        st.sampled_from(("a", "b", "create_list", "weather")),
        texts,
        st.sampled_from(WORDS),
    )


steps = st.one_of(
    st.tuples(st.just("add"), tools(st.sampled_from(SERVERS))),
    st.tuples(st.just("remove"), st.sampled_from(SERVERS).map(lambda server: f"{server}__a")),
    st.sampled_from(SERVERS).flatmap(
        lambda server: st.tuples(st.just("replace"), st.just(server), st.lists(tools(st.just(server)), max_size=4))
    ),
)


def take(index: ToolIndex, known: dict[str, Any], step: tuple[Any, ...]) -> None:
    """One step for the index, and for a plain list of what it should hold."""
    match step:
        case ("add", tool):
            index.add(tool)
            known[tool["name"]] = tool
        case ("remove", name):
            index.remove(name)
            known.pop(name, None)
        case _:
            _, server, wanted = step
            index.replace(server, wanted)
            for name in [name for name, tool in known.items() if tool["server"] == server]:
                del known[name]
            known.update({tool["name"]: tool for tool in wanted})


def answers(index: ToolIndex) -> list[list[Hit]]:
    """Everything the index says, to the last digit."""
    return [index.search(query, 50) for query in QUERIES]


@pytest.mark.parametrize("semantic", [False, True])
def test_any_sequence_of_changes_leaves_the_index_that_would_be_built_anew(semantic: bool) -> None:
    """Names, order and scores are the same to the last digit, in whichever order the tools came."""

    @settings(max_examples=100, deadline=None)
    @given(st.lists(steps, max_size=12))
    def check(sequence: list[tuple[Any, ...]]) -> None:
        index = ToolIndex(semantic=semantic)
        known: dict[str, Any] = {}
        for step in sequence:
            take(index, known, step)
        assert len(index) == len(known)
        assert answers(index) == answers(ToolIndex(known.values(), semantic=semantic))
        assert answers(index) == answers(ToolIndex(reversed(known.values()), semantic=semantic))

    check()


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=40)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("properties", "items", "description", "enum", "x")) | st.text(max_size=5), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.text(st.characters())},
            optional=dict.fromkeys(
                ("description", "input_schema", "inputSchema", "server", "keywords", "category", "title"), odd
            ),
        )
        | odd,
        max_size=5,
    ),
    st.text(st.characters()),
    st.integers(),
)
def test_no_input_raises(given_tools: list[Any], query: str, limit: int) -> None:
    """Whatever the tools, the query and the limit."""
    index = ToolIndex(given_tools)
    hits = index.search(query, limit)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.name))
    for hit in hits:
        index.remove(hit.name)
    assert not set(index.search(query, limit)) & set(hits)


def test_a_refresh_that_brings_nothing_new_reads_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is asked again mostly says the same."""
    server = [{"name": f"alpha__{number}", "description": f"thing {number}"} for number in range(5)]
    index = ToolIndex()
    index.replace("alpha", server)
    read: list[str] = []
    weigh = document.weigh

    def noting(texts: document.Texts) -> document.Document:
        read.append(texts.name)
        return weigh(texts)

    monkeypatch.setattr(document, "weigh", noting)
    index.replace("alpha", server)
    assert read == []
    index.replace("alpha", [*server[1:], {"name": "alpha__new"}, {"name": "alpha__4", "description": "changed"}])
    assert read == ["alpha__4", "alpha__new"]


def test_a_change_of_one_server_leaves_the_others_alone() -> None:
    """Other servers' tools are found as before, and its own gone ones are not."""
    index = ToolIndex({"name": f"{server}__list", "server": server} for server in SERVERS)
    index.replace("beta", [{"name": "beta__find"}])
    assert [hit.name for hit in index.search("list")] == ["alpha__list", "gamma__list"]
    index.replace("beta", [])
    assert index.search("find beta") == []


def test_the_last_of_two_tools_with_one_name_counts() -> None:
    """As with keys of a mapping."""
    first, second = {"name": "x", "description": "moon"}, {"name": "x", "description": "sun"}
    index = ToolIndex([first, second])
    assert (len(index), index.search("moon")) == (1, [])
    index.replace("", [first, second, first])
    assert [hit.name for hit in index.search("moon")] == ["x"]


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    """A word that only a removed tool had is an unknown word again, and can be a misspelling."""
    index = ToolIndex([{"name": "forecast"}, {"name": "forcast"}])
    assert [hit.name for hit in index.search("forcast")] == ["forcast"]
    index.remove("forcast")
    assert [hit.name for hit in index.search("forcast")] == ["forecast"]
    index.replace("", ())
    assert (len(index), index._by_name, index._by_server) == (0, {}, {})


def test_a_search_in_steps_is_of_the_moment_it_began() -> None:
    """Many tools that fit equally well, and a filter: no step looks at all of them, and no change meanwhile counts."""
    index = ToolIndex({"name": f"sing_{number:05}", "description": "Sing"} for number in range(3_000))
    before = index.find("sing", 7, lambda name: name.endswith("3"))
    assert [hit.name for hit in before[0]] == [f"sing_{number:05}" for number in range(3, 73, 10)]
    assert before[1] == 300
    steps = index.finding("sing", 7, lambda name: name.endswith("3"))
    next(steps)
    index.replace("", [{"name": "jump", "description": "Jump"}])
    found, count = outcome(steps)
    assert found == before
    assert count > 3
    assert index.find("sing") == ([], 0)
