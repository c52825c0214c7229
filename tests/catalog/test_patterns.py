"""Patterns: templates by their beginning."""

from __future__ import annotations

from pegboard.catalog.patterns import Patterns
from pegboard.catalog.uri_template import Template, Uri


def patterns(*texts: str) -> Patterns[str]:
    found = Patterns[str]()
    found.add((Template.of(text), text) for text in texts)
    return found


def likely(found: Patterns[str], uri: str) -> list[str]:
    return [text for _, text in found.likely(Uri(uri))]


def test_only_templates_that_begin_as_the_uri_does_are_compared() -> None:
    """The heaviest first; a thousand others of other beginnings are not looked at."""
    found = patterns("{+a}", "x://a/{b}", "x://{b}", "y://{b}", *(f"z{number}://{{a}}" for number in range(1000)))
    assert likely(found, "x://a/1") == ["x://a/{b}", "x://{b}", "{+a}"]
    assert likely(found, "z7://1") == ["z7://{a}", "{+a}"]
    assert likely(found, "") == ["{+a}"]


def test_who_came_first_is_asked_first() -> None:
    """How much a template says counts only among those of one server."""
    found = patterns("x://{a}")
    found.add((Template.of(text), text) for text in ("x://{b}", "x://long/{c}"))
    assert likely(found, "x://long/1") == ["x://{a}", "x://long/{c}", "x://{b}"]


def test_a_beginning_counts_as_it_stands_and_encoded() -> None:
    """A URI cannot hold all that a template may have in its text."""
    found = patterns("x://my docs/{a}")
    assert likely(found, "x://my docs/1") == likely(found, "x://my%20docs/1") == ["x://my docs/{a}"]


def test_the_case_of_scheme_and_host_makes_no_difference() -> None:
    """Each template once, in the order in which they are asked."""
    found = patterns("x://Host/{a}")
    found.add((Template.of(text), text) for text in ("X://host/{b}", "x://host/A{c}"))
    for uri in ("x://Host/A1", "x://host/A1", "X://HOST/A1"):
        assert likely(found, uri) == ["x://Host/{a}", "x://host/A{c}", "X://host/{b}"]
    assert likely(found, "x://host/a1") == ["x://Host/{a}", "X://host/{b}"]


def test_a_uri_of_many_kilobytes_is_compared_with_nothing() -> None:
    """Beyond four of them nobody means a template."""
    assert likely(patterns("{+a}"), "x" * 4096) == ["{+a}"]
    assert likely(patterns("{+a}"), "x" * 4097) == []
