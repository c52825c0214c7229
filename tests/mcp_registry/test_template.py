"""Texts of strangers in the config: whatever they say, no variable of the environment is filled in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.variables import Variables
from pegboard.mcp_registry.template import (
    Blank,
    UnusableText,
    VariableReference,
    check_visible,
    escape,
    join,
    parse_template,
)

ENVIRONMENT = {"SECRET": "hunter2", "A": "hunter2"}
TRICKY = st.text(st.sampled_from("${}SECRETA:-env$ x"), max_size=12)


def fill(text: str) -> str:
    """What the config makes of a text."""
    return Variables(ENVIRONMENT, Path("/")).fill(text)


@given(TRICKY)
def test_an_escaped_text_means_itself(text: str) -> None:
    """Read by the config, it is what it was."""
    assert fill(escape(text)) == text


@given(st.lists(TRICKY, max_size=5))
def test_pieces_of_several_places_make_no_variable_together(pieces: list[str]) -> None:
    """`$`, `{` and a name may come from three of them."""
    assert fill(join(pieces)) == "".join(pieces)


@given(st.lists(TRICKY | st.just(VariableReference("${SECRET}")), max_size=5))
def test_a_reference_is_filled_in_and_nothing_else(pieces: list[str | VariableReference]) -> None:
    """What cannot be said like that is refused."""
    wanted = "".join("hunter2" if isinstance(piece, VariableReference) else piece for piece in pieces)
    try:
        written = join(pieces)
    except UnusableText:
        assert "$" in wanted
    else:
        assert fill(written) == wanted


def test_blanks_are_those_that_are_declared() -> None:
    """JSON in an argument has braces of its own; in an address all of them count."""
    assert parse_template('{"a": {b}}', {"b"}) == ('{"a": ', Blank("b"), "}")
    assert parse_template("{a}{b}", {"b"}) == ("{a}", Blank("b"))
    assert parse_template("https://{a}/{b}") == ("https://", Blank("a"), "/", Blank("b"))


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "\x1b[0m", "a\u202eb", "a\u200bb", "\U000e0041", "\t"])
def test_what_cannot_be_seen_is_refused(text: str) -> None:
    """What is shown has to be what runs."""
    with pytest.raises(UnusableText):
        check_visible(text, "an argument")
    check_visible("--größe=辞書 🙂", "an argument")
