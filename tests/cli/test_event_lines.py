"""The log of `serve` for the person at its terminal."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path
from typing import Any

import pytest

import pegboard
from pegboard.cli.event_lines import EventLines
from pegboard.log import configure, logger

pytestmark = pytest.mark.usefixtures("own_logging")
TIME = re.compile(r"^\d\d:\d\d:\d\d  ")


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(*events: dict[str, Any], width: int = 80, new: tuple[str, ...] = ()) -> list[str]:
    lines = EventLines(coloured=False, width=lambda: width)
    lines.begin(new)
    said = [text for event in events if (text := lines({"level": "info", "time": "", **event})) is not None]
    return [TIME.sub("", line) for text in said for line in text.splitlines()]


def failed(name: str, reason: str) -> dict[str, Any]:
    message = f"server {name} could not be connected: {reason}"
    return {"event": "tools.discovery.server.failed", "serverName": name, "errorMessage": message}


def found(name: str, count: int) -> dict[str, Any]:
    return {"event": "tools.discovery.server.success", "serverName": name, "toolCount": count}


def called(**more: Any) -> dict[str, Any]:
    return {"event": "tool.called", "client": "claude-code", "tool": "git__log", "ms": 12.34, "outcome": "ok", **more}


def test_a_call_is_one_line() -> None:
    """Time, client, tool, duration, outcome; whatever a client calls itself, it is one line."""
    assert lines_of(called()) == ["claude-code  git__log  12 ms  ok"]
    assert lines_of(called(client="", outcome="failed")) == ["-  git__log  12 ms  failed"]
    assert lines_of(called(client="a\nb")) == ["a b  git__log  12 ms  ok"]


def test_somebody_else_is_named_before_their_client() -> None:
    """This machine's own user is not, who is there most of the time."""
    assert lines_of(called(principal="ci")) == ["ci via claude-code  git__log  12 ms  ok"]
    assert lines_of(called(principal="a\nb@example.com", client="")) == ["a b@example.com via -  git__log  12 ms  ok"]


def test_refusals_are_a_line_for_the_first_and_one_for_the_minute() -> None:
    """Where from, who if that is known, why, and how many."""

    def refused(**more: Any) -> dict[str, Any]:
        return {"event": "access.refused", "address": "10.0.0.7", "reason": "invalid_token", "count": 1, **more}

    assert lines_of(
        refused(),
        refused(count=12),
        refused(reason="expired", principal="ci"),
        refused(reason="no_credentials", address="this machine"),
        {"event": "access.refused", "address": "other addresses", "count": 300},
    ) == [
        "refused  10.0.0.7  bad token",
        "refused  10.0.0.7  bad token  (12 in the last minute)",
        "refused  10.0.0.7  ci  expired token",
        "refused  this machine  no token",
        "refused  other addresses  (300 in the last minute)",
    ]


def test_what_nobody_needs_is_left_out() -> None:
    """Registrations, updates of the registry and servers that idle are for the log of programs."""
    quiet = ["MCP tool registered: x", "tools.registry.updated", "tools.discovery.started", "server.idle"]
    assert lines_of(*({"event": name} for name in quiet)) == []


def test_a_failure_is_said_once_with_the_last_lines_of_stderr() -> None:
    """The reason, three lines below it, and nothing when the same happens again."""
    said = " | ".join(f"npm error {number}" for number in range(9))
    event = failed("web", f"the process exited with code 1; it said: {said}")
    assert lines_of(event, event, event) == [
        "web  unreachable: the process exited with code 1",
        *(f"          npm error {number}" for number in (6, 7, 8)),
        "          all of it: pegboard logs web",
    ]


def test_the_error_is_among_the_lines_that_are_shown() -> None:
    """However many lines come behind it."""
    said = " | ".join(["a", "KeyError: b", "c", "d", "e", "f"])
    shown = lines_of(failed("web", f"it ended; it said: {said}"))
    assert [line.strip() for line in shown[1:4]] == ["KeyError: b", "c", "d"]


def test_long_reasons_are_cut_to_the_terminal() -> None:
    """Two lines for the reason, one for each line of stderr."""
    event = failed("web", "x" * 1000 + "; it said: " + "y" * 1000)
    first, second = lines_of(event, width=60)
    assert len(first) < 140
    assert len(second) == 60
    assert first.endswith("…")
    assert second.endswith("…")


def test_a_server_that_comes_back_is_said_to_be() -> None:
    """Connecting is news only after a failure."""
    connected = {"event": "server.connected", "server": "web"}
    assert lines_of(connected) == []
    assert lines_of(failed("web", "refused"), connected, connected, found("web", 1), found("web", 1)) == [
        "web  unreachable: refused",
        "web  ready again",
        "web  ready, 1 tool",
    ]


def test_once_all_new_servers_were_asked_that_is_said_once() -> None:
    """With how many are there."""
    events = [found("a", 2), found("old", 1), failed("b", "refused"), found("a", 3)]
    assert lines_of(*events, new=("a", "b")) == [
        "a  ready, 2 tools",
        "old  ready, 1 tool",
        "b  unreachable: refused",
        "          All 2 new servers have been asked: 1 ready, 1 not.",
        "a  ready, 3 tools",
    ]


def test_a_mistake_in_the_config_is_in_the_table_first_and_a_line_later() -> None:
    """Before the table of servers is shown nothing is said of it."""
    event = {"event": "config.server.invalid", "server": "x", "reason": "no\ncommand", "level": "error"}
    assert EventLines(coloured=False)(event) is None
    assert lines_of(event) == ["x  invalid: no command"]


def test_a_remark_is_made_once() -> None:
    """However often the file is read again."""
    remark = {"event": "config.remark", "remark": 'server "X" is called "x" here'}
    again = {"event": "config.reloaded", "serverCount": 1}
    assert lines_of(remark, again, remark, again) == [
        'note: server "X" is called "x" here',
        *["the config file was read again: 1 server"] * 2,
    ]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "config.reload.refused", "reason": "p.json:1:2: not JSON"},
            "the config file cannot be used, so the gateway goes on as before: p.json:1:2: not JSON",
        ),
        (
            {"event": "tools.registry.conflict", "serverName": "s", "tool": "t", "reason": "a static tool has it"},
            "s  t is left out: a static tool has it",
        ),
        (
            {"event": "tools.duplicate", "serverName": "s", "tool": "t"},
            "s  t is left out: the server has two tools of this name",
        ),
        ({"event": "catalog.list.cut", "serverName": "s", "method": "m", "reason": "cut\nhere"}, "s  cut here"),
    ],
)
def test_what_goes_wrong_often_is_said_in_words(event: dict[str, Any], line: str) -> None:
    """Not by the names of events and fields."""
    assert lines_of({"level": "error", **event}) == [line]


def test_any_other_event_is_shown_with_its_fields() -> None:
    """Nothing that went wrong is swallowed."""
    event = {"event": "catalog.save.failed", "level": "warning", "reason": "disk\nfull", "traceId": "1"}
    assert lines_of(event) == ["warning: catalog.save.failed reason=disk full"]


def test_on_a_terminal_calls_are_lines_and_texts_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client or a server says does not steer the terminal; NO_COLOR is obeyed."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = Screen()
    configure(stream=out, lines=EventLines())
    assert logger().tells_calls
    logger().call("tool.called", client="\x1b[2Jevil", tool="x__y", ms=1.0, outcome="ok")
    logger().info("MCP tool registered: x")
    assert TIME.sub("", out.getvalue()) == "[2Jevil  x__y  1 ms  ok\n"


@pytest.mark.parametrize(("level", "terminal"), [("info", False), ("warning", True)])
def test_where_nobody_reads_them_calls_are_not_told(level: str, terminal: bool) -> None:
    """Not in the log of programs at info, and not above it: a call asks that and does nothing more."""
    out = Screen() if terminal else io.StringIO()
    configure(level, out, lines=EventLines())
    assert not logger().tells_calls
    logger().call("tool.called", client="", tool="x", ms=1.0, outcome="ok")
    assert out.getvalue() == ""


def test_programs_get_calls_at_debug() -> None:
    """As before, with who called and how long it took."""
    out = io.StringIO()
    configure("debug", out)
    assert logger().tells_calls
    logger().call("tool.called", client="a", tool="x", ms=1.0, outcome="ok")
    assert '"ms": 1.0' in out.getvalue()


# What is logged around sign-ins, at the door and to the audit, wherever that is.
_TOPICS = re.compile(r"(?:oauth|secrets|tokens?|issuer|audit|access|session|storage)\.[a-z_.]+")
_LOGS = {"info", "warning", "error", "log"}


def logged_events() -> set[str]:
    """The names of events that the source logs for people."""
    calls = [
        (node, node.args[0].value)
        for path in Path(pegboard.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
    ]
    names = {
        name
        for call, name in calls
        if (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in _LOGS
    }
    return {name for name in names if isinstance(name, str) and _TOPICS.fullmatch(name)}


def test_no_event_of_sign_ins_the_door_and_the_audit_is_shown_raw() -> None:
    """Each has a sentence, or is left out: nobody reads `oauth.grant.unkept server=docs`."""
    fields = {"server": "docs", "reason": "it is away", "error": "OSError", "place": "secret.key", "mode": "0644"}
    fields |= {"token": "ci", "remark": "nothing is noticed", "issuer": "https://a", "records": 3, "sessions": 9}
    fields |= {"nextTryIn": 2.0, "address": "127.0.0.1", "count": 1, "chains": 2}
    events = logged_events()
    assert {"oauth.signed_in", "oauth.renewal.failed", "token.added", "audit.failed", "secrets.key.made"} <= events
    for name in sorted(events):
        said = " ".join(lines_of({**fields, "event": name}))
        assert name not in said
        assert "=" not in said


def test_why_a_sign_in_failed_is_said() -> None:
    """Somebody who said no is something else than an answer of another authorization server."""
    reason = "the answer came to the address of another authorization server than was asked"
    (line,) = lines_of({"event": "oauth.sign_in.refused", "server": "docs", "reason": reason}, width=200)
    assert line == f"docs  not signed in: {reason}"


def test_a_sign_in_that_is_over_is_said_with_the_command() -> None:
    """A sentence, and what to type; once somebody has signed in, the server's tools are news again."""
    ended = {"event": "oauth.grant.ended", "level": "warning", "server": "docs", "reason": "it was revoked"}
    (line,) = lines_of(ended, width=200)
    assert line.startswith("docs  the sign-in is over: it was revoked. Sign in again: ")
    assert line.endswith("login docs")
    said = lines_of(found("docs", 2), {"event": "oauth.signed_in", "server": "docs"}, found("docs", 2))
    assert said == ["docs  ready, 2 tools", "docs  signed in", "docs  ready, 2 tools"]


def test_definitions_that_changed_are_a_sentence() -> None:
    """What changed, what becomes of it, and the command that shows it."""
    event = {"event": "definitions.changed", "server": "shop", "what": "2 changed, 1 new", "policy": "hold"}
    event["kinds"] = "resource templates"
    said = lines_of({**event, "remark": "what was approved stays in use"}, width=200)
    changed = "shop  its resource templates changed (2 changed, 1 new); what was approved stays in use: "
    assert said == [f"{changed}pegboard changes show shop"]


def test_a_large_result_is_a_sentence() -> None:
    """Of which tool, how large it was, and whether the rest can be read."""
    event = {"event": "result.abridged", "tool": "wiki__get", "characters": 130_000, "cap": 40_000}
    said = lines_of({**event, "kept": True}, {**event, "kept": False}, width=200)
    assert said == [
        "wiki__get  its result of 130000 characters was cut to 40000; the whole is kept for an hour",
        "wiki__get  its result of 130000 characters was cut to 40000; the rest is lost",
    ]
    for name in ("result.keep.failed", "result.remove.failed", "results.clean.failed"):
        (line,) = lines_of({"event": name, "level": "warning", "reason": "it is away"}, width=200)
        assert line.startswith(("a large result ", "large results "))
        assert line.endswith(": it is away")
