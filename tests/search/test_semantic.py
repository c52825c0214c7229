"""Search by meaning, and without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from pegboard.search import document, semantic
from pegboard.search.index import ToolIndex

TOOLS = (
    {"name": "cancel_event", "description": "Call an appointment off"},
    {"name": "current_weather", "description": "Temperature, wind and sky at a place now"},
    {"name": "book_flight", "description": "Reserve a seat on an airplane"},
    {"name": "play_song", "description": "Start a piece of music"},
)


@pytest.fixture(autouse=True)
def installed() -> None:
    """These need the model."""
    assert semantic.model() is not None, "pip install 'pegboard[semantic]'"


@pytest.fixture
def forgetful() -> Iterator[None]:
    """The model is looked for anew, before and after."""
    semantic.model.cache_clear()
    yield
    semantic.model.cache_clear()


def test_a_tool_is_found_by_what_it_means() -> None:
    """No word of these queries stands in the tool."""
    index = ToolIndex(TOOLS, semantic=True)
    assert index.search("how warm is it outside")[0].name == "current_weather"
    assert index.search("I want to travel by plane")[0].name == "book_flight"
    assert index.search("listen to an album")[0].name == "play_song"


def test_the_nearest_tool_counts_one_and_the_farthest_nothing() -> None:
    """However near the nearest is: what else is known of tools is weighed against it."""
    meanings = ToolIndex(TOOLS, semantic=True)._meanings
    assert meanings is not None
    likeness = meanings.likeness("music", len(TOOLS))
    assert likeness is not None
    assert (likeness.max(), likeness.min(), likeness.argmax()) == (1.0, 0.0, 3)


def test_every_part_of_a_long_wish_is_looked_for() -> None:
    """Two wishes in one query find a tool each."""
    found = ToolIndex(TOOLS, semantic=True).search("How hot is it in Rome? Then get me a ticket for the airline.", 2)
    assert {hit.name for hit in found} == {"current_weather", "book_flight"}


def test_equals_are_equal_wherever_they_stand() -> None:
    """Twins have the same score to the last digit, however many tools are around them."""
    twins = [{"name": f"twin{mark}", "description": "Water the plants"} for mark in "!?."]
    others = [{"name": f"other {number}", "description": f"thing {number * 37}"} for number in range(300)]
    hits = ToolIndex([twins[0], *others[:150], twins[1], *others[150:], twins[2]], semantic=True).search("garden", 400)
    scores = {hit.score for hit in hits if hit.name.startswith("twin")}
    assert len(scores) == 1


@pytest.mark.usefixtures("forgetful")
def test_without_the_model_words_alone_are_searched_and_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is an extra."""
    monkeypatch.setattr(semantic, "find_spec", lambda _name: None)
    with structlog.testing.capture_logs() as logged:
        first, second = ToolIndex(TOOLS, semantic=True), ToolIndex(TOOLS, semantic=True)
    assert first.search("weather") == second.search("weather") == ToolIndex(TOOLS).search("weather")
    assert [line["event"] for line in logged] == ["semantic_search_unavailable"]
    assert "pegboard[semantic]" in logged[0]["help"]


def test_a_query_that_means_nothing_finds_nothing() -> None:
    """Nearest is not near."""
    assert ToolIndex(TOOLS, semantic=True).search("?! 12 the") == []


def test_the_model_is_not_looked_for_unless_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words alone are the default."""
    monkeypatch.setattr(semantic, "model", lambda: pytest.fail("looked for"))
    assert ToolIndex(TOOLS).search("weather")


def test_what_has_nothing_to_do_with_a_query_is_not_counted() -> None:
    """The total is of tools that fit by word or meaning, not of all there are."""
    others = [{"name": f"thing_{number}", "description": f"Polish brass plate {number}"} for number in range(200)]
    _, total = ToolIndex([*TOOLS, *others], semantic=True).find("how warm is it outside")
    assert total < 50


def test_numbers_and_single_letters_of_a_query_mean_nothing() -> None:
    """They are particulars: what is left are the words, each once."""
    assert semantic._query_words("how warm is it outside at 12 b, warm or x 7?") == ["warm", "outside"]
    assert semantic._query_words("go") == ["go"]


def test_a_tool_with_everything_that_can_be_said_of_it_has_a_meaning() -> None:
    """Parameters, category and server are there to be found by words, and do not stand in the way."""
    schema = {"type": "object", "properties": {"where": {"type": "string", "description": "Name of a town"}}}
    rich = {**TOOLS[1], "inputSchema": schema, "keywords": ["climate"], "category": "nature", "server": "sky"}
    index = ToolIndex([TOOLS[0], rich, *TOOLS[2:]], semantic=True)
    assert index.search("how warm is it outside")[0].name == "current_weather"
    assert index.search("town")[0].name == "current_weather"


def test_the_first_sentence_of_a_description_says_what_a_tool_means() -> None:
    """What follows it, as examples and warnings do, does not count."""
    meanings = [semantic.Meanings(model) for model in [semantic.model()] * 2 if model is not None]
    texts = ["Reserve a seat on an airplane.", "Reserve a seat on an airplane. Music songs albums concerts melodies."]
    for each, text in zip(meanings, texts, strict=True):
        each.put(0, document.read({"name": "tool", "description": text}) or pytest.fail("it has a name"))
    assert (meanings[0]._rows[0] == meanings[1]._rows[0]).all()
