"""The gate: a change may not make search find less than it does."""

from __future__ import annotations

import random
import string

import pytest

from pegboard.search.index import ToolIndex
from pegboard.search.semantic import model
from search.quality import SHARED_SETS, QuerySet, own_set, recall, shared_set

# Recall within the first five, as measured; a change that raises it should raise these.
OWN = {"words": 0.903, "meaning": 0.942}
SHARED = {"words": 0.752, "meaning": 0.779}
SLACK = 0.01


def measured(queries: QuerySet, *, semantic: bool) -> float:
    """Recall of our index."""
    assert not semantic or model() is not None, "pip install 'pegboard[semantic]'"
    index = ToolIndex(queries.tools, semantic=semantic)
    return recall(lambda query: [hit.name for hit in index.search(query, 5)], queries.queries)


@pytest.mark.parametrize("kind", ["words", "meaning"])
def test_own_queries_find_their_tools(kind: str) -> None:
    """Everyday queries over the tools of thirty invented servers."""
    assert measured(own_set(), semantic=kind == "meaning") >= OWN[kind] - SLACK


def random_words(count: int) -> list[str]:
    """Letters as they come."""
    pick = random.Random(7)
    return ["".join(pick.choices(string.ascii_lowercase, k=pick.randint(6, 14))) for _ in range(count)]


@pytest.mark.parametrize("kind", ["words", "meaning"])
def test_letters_without_sense_find_nothing(kind: str) -> None:
    """A query none of whose words a tool has, nor a misspelt one, finds nothing, however much of it looks like one."""
    index = ToolIndex(own_set().tools, semantic=kind == "meaning")
    found = [query for query in random_words(200) if index.search(query, 1)]
    assert len(found) <= 4, found


def test_a_word_that_no_tool_has_finds_nothing() -> None:
    """Though `impossible` begins as `import` does."""
    assert ToolIndex(own_set().tools).search("xyzabc123impossible") == []


@pytest.mark.parametrize("kind", ["words", "meaning"])
def test_misspelt_words_still_find(kind: str) -> None:
    """One letter dropped from a word that only some tools have leads to one of those tools."""
    held = own_set()
    index = ToolIndex(held.tools, semantic=kind == "meaning")
    long_words = sorted({word for asked in held.queries for word in asked.query.split() if len(word) >= 7})
    right = [word for word in long_words if index.search(word, 1)]
    found = [word for word in right if index.search(word[:3] + word[4:], 1)]
    assert len(found) >= 0.9 * len(right), sorted(set(right) - set(found))


beside = pytest.mark.skipif(not SHARED_SETS.is_dir(), reason="the shared sets do not stand beside this checkout")


@beside
@pytest.mark.parametrize("kind", ["words", "meaning"])
def test_real_queries_find_their_tools(kind: str) -> None:
    """The mean over sets of real queries to real tools, where they stand beside the checkout."""
    recalls = [measured(shared_set(folder), semantic=kind == "meaning") for folder in sorted(SHARED_SETS.iterdir())]
    assert sum(recalls) / len(recalls) >= SHARED[kind] - SLACK


@beside
def test_the_registry_is_found_among_real_tools() -> None:
    """`registry list tasks` finds `registry_list` first and `registry_next` near it, by words as by meaning."""
    registry = [
        {"name": "registry_list", "description": "List tasks of the registry, by status or priority"},
        {"name": "registry_next", "description": "The next task of the registry that nothing blocks"},
        {"name": "registry_update", "description": "Change a task in the registry"},
    ]
    others = shared_set(SHARED_SETS / "livemcp").tools
    assert len(others) > 500
    for semantic in (False, True):
        found = [hit.name for hit in ToolIndex([*others, *registry], semantic=semantic).search("registry list tasks")]
        assert found[0] == "registry_list"
        assert "registry_next" in found[:5]


def test_the_own_set_is_sound() -> None:
    """Every query's right tool exists, and no query stands there twice."""
    held = own_set()
    names = {tool["name"] for tool in held.tools}
    assert len(names) == len(held.tools) >= 300
    assert len({tool["server"] for tool in held.tools}) >= 25
    assert len({asked.query for asked in held.queries}) == len(held.queries) >= 150
    assert all(need <= names for asked in held.queries for need in asked.needs)
