"""Whatever a registry answers: a record is a server that can be shown, or it is none. Nothing else comes of it."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_registry.records import ALL
from pegboard.mcp_registry.proposal import problem_of, propose, recipes_of
from pegboard.mcp_registry.registry import FoundServer
from pegboard.mcp_registry.rows import detail_row, server_row
from pegboard.mcp_registry.server_json import UnreadableServer, read_server

ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "${X}",
    "{",
    "{a}",
    "{a}{b",
    "--",
    "-",
    "https://[",
    "http://x:y",
    "a" * 300,
    "\ud800",
    "é",
    "$",
)
ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(ODD_TEXTS),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"a": {"b": 1}}),
)


def change(value: Any, chance: random.Random, odd: list[Any]) -> Any:
    """A copy in which some values are others."""
    if odd and chance.random() < 0.08:
        return chance.choice(odd)
    if isinstance(value, dict):
        return {chance.choice([key, key, key, "x"]): change(each, chance, odd) for key, each in value.items()}
    if isinstance(value, list):
        return [change(each, chance, odd) for each in value]
    return value


@given(st.sampled_from(ALL), st.randoms(use_true_random=False), st.lists(ODD, min_size=1, max_size=4))
def test_a_changed_record_breaks_nothing(said: dict[str, Any], chance: random.Random, odd: list[Any]) -> None:
    """It is shown with the entries it would become, or refused with a reason."""
    record = change(said, chance, odd)
    try:
        server = read_server(record)
    except UnreadableServer:
        return
    server_row(server)
    data = detail_row(FoundServer(server, {}, []))
    for recipe, choice in zip(recipes_of(server), data["choices"], strict=True):
        assert (problem_of(recipe) is None) == (choice["entry"] is not None)
        if choice["entry"] is not None:
            assert propose(recipe, data["serverName"], {}).entry == choice["entry"]
            json.dumps(choice["entry"])
