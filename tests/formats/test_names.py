"""What providers call a tool, and which tool they mean."""

from __future__ import annotations

import re

import pytest

from formats.toolbox import registered
from pegboard.formats import NameBook
from pegboard.names import compose, public_name


def test_a_name_that_fits_stays() -> None:
    """Static tools keep their names, servers' tools their server."""
    book = NameBook([registered("tool_find"), registered("log", "git")])
    assert book.name("tool_find") == "tool_find"
    assert book.name("git__log") == "git__log"
    assert book.tool("git__log") == "git__log"
    assert book.place("git__log") == ("git", "log")
    assert book.place("tool_find") == (None, "tool_find")


def test_names_are_longer_here_than_over_mcp() -> None:
    """64 characters instead of 48, and no digest where none is needed."""
    own = "t" * 50
    tool = registered(own, "git", max_length=48)
    assert tool.name != f"git__{own}"
    book = NameBook([tool])
    assert book.name(tool.name) == f"git__{own}"
    assert book.tool(f"git__{own}") == tool.name
    # A model may have read the shorter one in a search result.
    assert book.tool(tool.name) == tool.name


@pytest.mark.parametrize("own", ["x" * 200, "weird name/with:stuff", "grüße", "a.b"])
def test_what_a_provider_would_refuse_is_changed_and_found_again(own: str) -> None:
    """Length and alphabet, flat and in a namespace."""
    tool = registered(own, "docs", max_length=48)
    book = NameBook([tool])
    for name in (book.name(tool.name), book.place(tool.name)[1]):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    assert book.tool(book.name(tool.name)) == tool.name
    namespace, name = book.place(tool.name)
    assert book.tool(name, namespace) == tool.name
    assert book.name(tool.name) == public_name(compose("docs", own), 64)


def test_a_server_without_prefix() -> None:
    """Its tools have their own names, long ones too."""
    short = registered("log", "git", prefix=False)
    long = registered("l" * 70, "git", prefix=False, max_length=48)
    book = NameBook([short, long])
    assert book.name(short.name) == "log"
    assert book.name(long.name) == public_name("l" * 70, 64)
    assert book.tool(book.name(long.name)) == long.name


def test_two_tools_never_share_a_name() -> None:
    """A server without prefix may have a tool that is called as another server's in full."""
    first = registered("b", "a")
    second = registered("a__b", "other", prefix=False)
    book = NameBook([first, second.__class__("a__b_", "other", "a__b", second.definition)])
    assert book.name("a__b") == "a__b"
    assert book.name("a__b_") != "a__b"
    assert book.tool(book.name("a__b_")) == "a__b_"


def test_unknown_names() -> None:
    """The book says that it does not have them; a name is made to fit all the same."""
    book = NameBook([registered("log", "git")])
    assert book.tool("nothing") is None
    assert book.tool("log") is None
    assert book.tool("log", "other") is None
    assert len(book.name("y" * 100)) == 64
    # Whoever is asked to call it says that there is none.
    assert book.resolve("nothing") == "nothing"
    assert book.resolve("lag", "git") == "git__lag"
    assert book.resolve("log", "git") == "git__log"


def test_a_deferred_function_may_come_back_with_its_own_name_as_namespace() -> None:
    """So OpenAI's SDK says of functions that stand alone."""
    book = NameBook([registered("log", "git")])
    assert book.tool("git__log", "git__log") == "git__log"
    assert book.tool("log", "git") == "git__log"
    assert book.tool("git__log", "git") is None
