"""How texts that others wrote look on a terminal."""

from __future__ import annotations

import pytest
from rich.text import Text

from pegboard.cli import chats
from pegboard.cli.common import finish
from pegboard.cli.show import highlighted, verbatim
from pegboard.terminal import plain, plain_data


@pytest.mark.parametrize(
    ("excerpt", "shown", "marked"),
    [
        ("a <mark>b</mark> c", "a b c", ["b"]),
        ("<mark>a</mark><mark>b</mark>", "ab", ["a", "b"]),
        (r"C:\<mark>temp</mark>\x", r"C:\temp\x", ["temp"]),
        ("[red] <mark>[/]</mark> :bug:", "[red] [/] :bug:", ["[/]"]),
        ("a </mark> b <mark>c</mark>", "a </mark> b c", ["c"]),
        ("<mark>a <mark> b</mark>", "a <mark> b", ["a ", "<mark>", " b"]),
        ("<mark>cut", "cut", ["cut"]),
        ("", "", []),
    ],
)
def test_marks_are_shown_as_a_style_and_nothing_else_is(excerpt: str, shown: str, marked: list[str]) -> None:
    """Backslashes, brackets and marks that stand in the text itself are shown as they are."""
    text = highlighted(excerpt, "bold")
    assert text.plain == shown
    assert [text.plain[span.start : span.end] for span in text.spans if span.style == "bold"] == marked


def test_a_text_is_no_markup() -> None:
    """A key like `shop:bug:twice` has no insect in it."""
    assert verbatim("shop:bug:[bold]x").plain == Text("shop:bug:[bold]x").plain


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Escape sequences in either form, carriage returns and bells are left out; lines, tabs and letters stay."""
    assert plain("a\x1b[31mb\x9b2Jc\rd\x07e\x7f\n\tÄ日🦊") == "a[31mb2Jcde\n\tÄ日🦊"
    data = {"rows": [{"key": "\x1b]0;title\x07", "score": 5}], "more": None, "\x1bodd": 1}
    assert plain_data(data) == {"rows": [{"key": "]0;title", "score": 5}], "more": None, "odd": 1}


def test_any_chat_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A title or an excerpt with markup, marks of its own or an escape sequence is shown as text."""
    odd = "C:\\<mark>needle</mark>\\ [/bold] </mark> :bug: \x1b[31m\\"
    hit = {"title": odd, "workspace": r"C:\work\[x]", "sessionId": "abc", "index": 1, "excerpt": odd}
    answer = {"data": {"results": [hit], "pagination": {"hasMore": False}}}
    finish(answer, as_json=False, show=chats._show_hits)
    title, where, excerpt = capsys.readouterr().out.splitlines()
    assert title == "C:\\<mark>needle</mark>\\ [/bold] </mark> :bug: [31m\\ in C:\\work\\[x]"
    assert where == "  abc --request 1"
    assert excerpt == "  C:\\needle\\ [/bold] </mark> :bug: [31m\\"
