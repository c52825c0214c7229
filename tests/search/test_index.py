"""What the index finds, and in which order."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from pegboard.search import tokens
from pegboard.search.index import ToolIndex


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    """A tool as a mapping."""
    return {"name": name, "description": description, **more}


def names(index: ToolIndex, query: str, limit: int = 10) -> list[str]:
    """Names found, best first."""
    return [hit.name for hit in index.search(query, limit)]


OFFICE = (
    tool("mail__send_message", "Send an e-mail to somebody", server="mail"),
    tool("mail__search", "Find messages by their words", server="mail"),
    tool("calendar__create_event", "Put an appointment in the calendar", server="calendar"),
    tool("files__read_file", "The text of a file", server="files"),
    tool("files__web_page", "Store a web page", server="files"),
    tool("码头__订票", "预订火车票", server="码头"),
    tool("toshokan__kaesu", "借りた本を返却する"),
)


def filler(count: int) -> list[dict[str, Any]]:
    """Tools that have little to do with anything, but some words."""
    actions = ("list", "get", "update", "delete", "sync")
    things = ("invoice", "device", "parcel", "recipe", "task", "note", "song", "ticket", "forecast", "route")
    return [
        tool(
            f"{things[number % 10]}_{actions[number // 10 % 5]}_{number}",
            f"{actions[number % 5]} the {things[number % 10]} and its {things[number * 7 % 10]}",
        )
        for number in range(count)
    ]


def test_the_name_counts_most_and_its_family_comes_along() -> None:
    """`registry list tasks` finds `registry_list` first and `registry_next` near it, among 500 others."""
    registry = [
        tool("registry_list", "List tasks of the registry, by status or priority"),
        tool("registry_next", "The next task of the registry that nothing blocks"),
        tool("registry_update", "Change a task in the registry"),
    ]
    found = names(ToolIndex([*filler(500), *registry]), "registry list tasks")
    assert found[0] == "registry_list"
    assert "registry_next" in found[:5]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("send an email", "mail__send_message"),
        ("sendMessage", "mail__send_message"),
        ("send-message", "mail__send_message"),
        ("calender apointment", "calendar__create_event"),
        ("serach mesages", "mail__search"),
        ("webpage", "files__web_page"),
        ("火车票", "码头__订票"),
        ("本を返したい", "toshokan__kaesu"),
        ("CALENDAR", "calendar__create_event"),
    ],
)
def test_a_tool_is_found_by(query: str, first: str) -> None:
    """Words, identifiers in any form, misspelt words, compounds, other scripts, the server's name."""
    assert names(ToolIndex(OFFICE), query)[0] == first


def test_words_written_together_are_found_apart_and_the_other_way_round() -> None:
    """`time zone` and `timezone` are one."""
    assert names(ToolIndex([*OFFICE, tool("timezone_at", "")]), "time zone")[0] == "timezone_at"


def test_parameters_are_searched() -> None:
    """Names, descriptions and choices, however deep they stand, under either spelling of the key."""
    schema = {
        "type": "object",
        "properties": {
            "latitude": {"type": "number", "description": "degrees north of the equator"},
            "options": {"type": "object", "properties": {"projection": {"enum": ["mercator"]}}},
            "stops": {"type": "array", "items": {"properties": {"altitude": {}}}},
        },
    }
    for key in ("inputSchema", "input_schema"):
        index = ToolIndex([*OFFICE, {"name": "x", key: schema}])
        for query in ("latitude", "equator", "mercator", "altitude"):
            assert names(index, query) == ["x"], query


def test_keywords_and_category_are_searched() -> None:
    """What an operator adds in the config counts like a name."""
    index = ToolIndex([*OFFICE, tool("x", keywords=["handbook", "manual"], category="documentation")])
    assert names(index, "handbook") == names(index, "documentation") == ["x"]


def test_the_name_of_the_server_is_not_the_name_of_the_tool() -> None:
    """In `list__delete`, `list` is only where the tool lives, whether the server is told or read from the name."""
    for more in ({"server": "list"}, {}):
        index = ToolIndex([tool("list__delete", **more), tool("files__list")])
        assert names(index, "list") == ["files__list", "list__delete"]


def test_objects_are_tools_as_well_as_mappings() -> None:
    """Attributes are read where there are no keys."""

    @dataclass
    class Thing:
        name: str
        description: str | None = None

    assert names(ToolIndex([Thing("frobnicate"), Thing("other")]), "frobnicate") == ["frobnicate"]


def test_equals_are_ordered_by_name() -> None:
    """A tie is not left to chance, be it among the first or at the end of the list."""
    twins = [tool(name, "Water the plants") for name in ("d", "b", "a", "c")]
    assert names(ToolIndex(twins), "water plants") == ["a", "b", "c", "d"]
    assert names(ToolIndex(twins), "water plants", 2) == ["a", "b"]


def test_scores_fall_and_are_positive() -> None:
    """The best comes first, and what has nothing to do with the query does not come."""
    scores = [hit.score for hit in ToolIndex([*filler(200), *OFFICE]).search("get the invoice of a parcel", 200)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_a_shorter_list_is_the_beginning_of_a_longer_one() -> None:
    """`limit` cuts, and does nothing else."""
    index = ToolIndex(filler(300))
    assert index.search("update device ticket", 300)[:7] == index.search("update device ticket", 7)


def test_a_rare_word_says_more_than_a_common_one() -> None:
    """Inverse document frequency."""
    index = ToolIndex([*filler(100), tool("get_zebra"), tool("zebra_next")])
    assert set(names(index, "get zebra", 2)) == {"get_zebra", "zebra_next"}


def test_a_phrase_counts_more_than_its_words() -> None:
    """Words that stand together in the query and in a tool belong together."""
    apart, together = "light one blue lamp beside every green room", "green light beside every room one blue lamp"
    assert names(ToolIndex([tool("x", apart), tool("y", together)]), "green light") == ["y", "x"]


def test_a_repeated_word_does_not_drown_the_others() -> None:
    """Said a thousand times is meant a little more, not a thousand times."""
    index = ToolIndex([*filler(50), tool("moon_phase", "Phase of the moon")])
    assert "moon_phase" in names(index, "device " * 1000 + "moon phase", 5)


@pytest.mark.parametrize("query", ["", "   ", "?!", "\0", "\ud800", "🦊", "the of and", "qqqqxxzz"])
def test_a_query_that_says_nothing_finds_nothing(query: str) -> None:
    """No error, no guess."""
    assert ToolIndex(OFFICE).search(query) == []


def test_stop_words_are_words_where_there_are_no_others() -> None:
    """A tool named with them can be found."""
    assert names(ToolIndex([*OFFICE, tool("who_am_i")]), "who am i") == ["who_am_i"]


@pytest.mark.parametrize("limit", [0, -1, -(10**30)])
def test_no_limit_means_no_tools(limit: int) -> None:
    """Nothing was asked for."""
    assert ToolIndex(OFFICE).search("mail", limit) == []


def test_a_huge_limit_is_all_there_is() -> None:
    """Nothing is made up."""
    assert len(ToolIndex(OFFICE).search("mail", 10**30)) == 2


def test_a_query_of_any_length_is_answered() -> None:
    """A hundred kilobytes of words, of one word, of one letter."""
    index = ToolIndex(OFFICE)
    for query in (
        " ".join(f"word{number}" for number in range(15_000)),
        "mail " * 20_000,
        "x" * 100_000,
        "车" * 100_000,
    ):
        index.search(query)
    assert names(index, "send mail " + "y" * 100_000)[0].startswith("mail__")


def test_odd_tools_are_taken_as_they_are() -> None:
    """A field of the wrong type says nothing; a tool without a name is passed over."""
    loop: dict[str, Any] = {}
    loop["items"] = loop
    loop["anyOf"] = [loop]
    index = ToolIndex(
        [
            tool("a", None, input_schema=None, keywords=7, category=[None, "zoo"], server=b"x"),  # pyright: ignore[reportArgumentType]
            tool("b", "zoo", input_schema={"properties": {"q": None, 5: {"description": 5}}}),
            tool("c", "zoo", input_schema=loop),
            tool("d", "zoo", input_schema=[1, "two"]),
            {"description": "zoo without a name"},
            None,
            3,
        ]
    )
    assert sorted(names(index, "zoo")) == ["a", "b", "c", "d"]


def test_the_command_line_starts_without_it() -> None:
    """`pegboard --help` imports neither numpy nor a model."""
    code = "import pegboard.cli, sys; print({'numpy', 'Stemmer', 'tokenizers'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "set()"


def test_two_servers_may_have_a_tool_of_the_same_name() -> None:
    """Both are found; removing the name removes both, replacing a server's tools only its own."""
    index = ToolIndex([tool("send", "Send a letter", server="post"), tool("send", "Transmit an e-mail", server="mail")])
    assert len(index) == 2
    assert names(index, "letter") == names(index, "e-mail") == ["send"]
    index.replace("post", [])
    assert names(index, "letter") == []
    assert names(index, "e-mail") == ["send"]
    index.add(tool("send", "Send a letter", server="post"))
    index.remove("send")
    assert len(index) == 0


def test_keywords_may_be_any_iterable() -> None:
    """Lists, tuples, sets, and what yields texts."""
    index = ToolIndex([tool("one", keywords=(word for word in ["harvest"]))])
    assert names(index, "harvest") == ["one"]


def test_a_query_that_is_no_text_is_refused_in_words() -> None:
    """A mistake in a program is told as one."""
    for wrong in (None, 5, b"mail"):
        with pytest.raises(TypeError, match="a query is a text"):
            ToolIndex(OFFICE).search(wrong)  # pyright: ignore[reportArgumentType]


def test_pasted_data_is_not_remembered() -> None:
    """What is longer than words are is worked out each time, and fills no memory."""
    before = tokens._remembered_pieces.cache_info().currsize
    for number in range(50):
        ToolIndex(OFFICE).search("_".join(f"x{number}{at}" for at in range(2000)))
    assert tokens._remembered_pieces.cache_info().currsize - before < 50
