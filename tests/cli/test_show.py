"""How texts that others wrote look on a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from pegboard.cli import look
from pegboard.cli.common import finish
from pegboard.cli.doctor import _show_advice
from pegboard.cli.show import TerminalTable, colour_state, highlight, say_wrapped, verbatim
from pegboard.terminal import plain, plain_data
from pegboard.toolsets.chats import commands as chats


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
    text = highlight(excerpt, "bold")
    assert text.plain == shown
    assert [text.plain[span.start : span.end] for span in text.spans if span.style == "bold"] == marked


def test_the_first_column_is_never_cut_and_others_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name goes on in the next line; what else is too long ends with an ellipsis."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = TerminalTable("name", "value")
    rows.add("n" * 60, "v" * 60)
    rows.show()
    shown = capsys.readouterr().out
    assert shown.count("n") - shown.count("name") == 60
    assert "…" in shown
    assert shown.count("v") - shown.count("value") < 60


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


def _row(name: str, state: str, error: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "tools": 3, "seen": True, "lastSeen": None, "latencyMs": 12971.0} | {
        "lastError": error,
        **more,
    }


def show_servers(data: dict[str, Any]) -> None:
    look._show_servers(data, Path("/home/ada/config.json"))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes this for a terminal of 80 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("error", [False, True])
def test_prose_ends_its_lines_between_words(capsys: pytest.CaptureFixture[str], error: bool) -> None:
    """On either output, and each line of it by itself."""
    say_wrapped("word " * 30 + "\nnext", indent="  ", error=error)
    shown = capsys.readouterr()
    lines = (shown.err if error else shown.out).splitlines()
    assert [line.split() for line in lines] == [["word"] * 16, ["word"] * 14, ["next"]]
    assert lines[1].startswith("  word")


@pytest.mark.usefixtures("terminal")
def test_advice_keeps_its_indent_and_a_command_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """So that a command can be copied."""
    _show_advice("export it " * 12)
    _show_advice("pegboard install " + "x" * 90)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert [line.startswith("      → ") for line in lines] == [True, False, True]
    assert lines[1].startswith(" " * 8)


@pytest.mark.usefixtures("terminal")
def test_servers_are_readable_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each: the whole name and the state in people's words; what is wrong stands below."""
    names = [f"a_rather_long_name_{n:02}" for n in range(8)]
    states = ["registered", "connected", "idle", "connecting", "lost", "unreachable", "needs_auth", "invalid"]
    long = "could not be connected:\n" + "npm error " * 100
    rows = [_row(name, state, long) for name, state in zip(names, states, strict=True)]
    rows.append(_row("off", "disabled", rejected={"x": "y"}, conflicts=["z"]))
    finish({"data": {"servers": rows}}, as_json=False, show=show_servers)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    shown, notes = [line.rstrip() for line in lines[2:11]], lines[11:]
    assert [line.split()[0] for line in shown] == [*names, "off"]
    words = ["ready"] * 3 + ["starting", "unreachable", "unreachable", "needs credentials", "invalid", "disabled"]
    assert all(word in line for word, line in zip(words, shown, strict=True))
    assert all(len(line) <= 80 for line in lines)
    heads = [at for at, line in enumerate(notes[:-1]) if not line.startswith("  ")]
    assert [notes[at].split(": ")[0] for at in heads] == [*names, "off"]
    first = " ".join(line.strip() for line in notes[: heads[1]])
    assert first.startswith(f"{names[0]}: could not be connected: npm error")
    assert (first.endswith("…"), 300 < len(first) < 340) == (True, True)
    assert notes[-2:] == ["off: 2 left out: see pegboard doctor", "What to do: pegboard doctor"]


@pytest.mark.usefixtures("terminal")
def test_a_place_in_the_config_takes_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    """Everybody knows which file it is; what is wrong there is whole."""
    error = '/home/ada/config.json:27:5: mcpServers.x.comand is not a key of an entry: did you mean "command"? Yes'
    finish({"data": {"servers": [_row("x", "invalid", error)]}}, as_json=False, show=show_servers)
    lines = capsys.readouterr().out.splitlines()[-3:-1]
    assert lines[0].startswith("x: line 27: mcpServers.x.comand is not a key")
    assert lines[1] == '  "command"? Yes'


@pytest.mark.parametrize("width", ["80", None])
def test_names_of_tools_are_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str | None
) -> None:
    """However long the descriptions beside them: on a terminal, and in a pipe on one line."""
    if width is not None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", width)
    names = [f"git__git_create_pull_request_review_{n}" for n in range(3)]
    tools = [{"name": name, "status": "available", "description": "words " * 200} for name in names]
    finish({"data": {"tools": tools, "total": 3}}, as_json=False, show=look._show_tools)
    out = capsys.readouterr().out
    assert all(name in out for name in names)


def test_in_a_pipe_nothing_is_cut_and_a_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However long a cell is, and whatever line ends it has; columns stand below each other, without blanks behind."""
    rows = TerminalTable("name", "state", "summary")
    rows.add("n" * 300, colour_state("ready"), "one\n  two\x1b[31m\r\nthree")
    rows.add("日本", "x", "y" * 500)
    rows.add("a", "b", "")
    rows.show()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "state", "summary"],
        ["n" * 300, "ready", "one", "two[31m", "three"],
        ["日本", "x", "y" * 500],
        ["a", "b"],
    ]
    assert [line.rstrip() for line in lines] == lines
    # Two letters that are two columns wide each.
    assert lines[2].index("x") == 302 - 2
    assert lines[3].index("b") == 302


@pytest.mark.usefixtures("terminal")
def test_thirteen_servers_are_thirteen_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns: a line each, and what is wrong below; also on a terminal that has room for two columns."""
    names = ["github", "filesystem", "brave_search", "postgres", "sequential_thinking", "memory", "puppeteer", "slack"]
    names += ["google_maps", "sentry", "everything", "time", "fetch"]
    error = 'wants credentials (HTTP 401): set "headers" with an Authorization in its config'
    finish(
        {"data": {"servers": [_row(name, "needs_auth", error) for name in names]}},
        as_json=False,
        show=show_servers,
    )
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert [line.split()[0] for line in lines[2:15]] == names
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert all("needs credentials" in line for line in lines[2:15])
    assert [line.split(":")[0] for line in lines[15:-1] if not line.startswith("  ")] == names
    monkeypatch.setenv("COLUMNS", "36")
    finish({"data": {"servers": [_row(name, "lost") for name in names]}}, as_json=False, show=show_servers)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0].split() == ["name", "state"]
    assert [line.split() for line in lines[2:]] == [[name, "unreachable"] for name in names]


@pytest.mark.usefixtures("terminal")
def test_two_columns_that_are_folded_share_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    """A long path in one of them does not leave the command in the last a few letters a line."""
    rows = TerminalTable("server", "from", "outcome", "runs", folded={"from", "outcome", "runs"})
    rows.add("github-enterprise", f"Claude Code ({'/data/clients' * 5})", "new", "npx -y @scope/server-github --host x")
    rows.add("a", "b", "new", "c")
    rows.show()
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any(line.rstrip().endswith("  @scope/server-github") for line in lines), lines
