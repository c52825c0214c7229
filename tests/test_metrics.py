"""The counts, in the text form that Prometheus reads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.metrics import Metrics

Sample = tuple[str, tuple[tuple[str, str], ...]]

_COMMENT = re.compile(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{((?:{_LABEL.pattern})(?:,{_LABEL.pattern})*)\}})? (\S+)")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def read(text: str) -> dict[Sample, float]:
    """Every sample of an exposition; an assertion says what Prometheus would refuse."""
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    samples: dict[Sample, float] = {}
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            comment = _COMMENT.fullmatch(line)
            assert comment, line
            told, name, rest = comment.groups()
            assert name not in (kinds if told == "TYPE" else helped), f"{told} of {name} twice"
            if told == "TYPE":
                assert rest in {"counter", "gauge"}
                kinds[name] = rest
            else:
                helped.add(name)
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name, labels = match[1], match[2] or ""
        assert name in kinds, f"{name} comes before its type"
        assert name in helped, f"{name} comes before its help"
        if kinds[name] == "counter":
            assert name.endswith("_total")
        found = tuple((key, _unescaped(value)) for key, value in _LABEL.findall(labels))
        assert (name, found) not in samples, f"{line} twice"
        samples[name, found] = float(match[match.lastindex or 0])
    return samples


def _unescaped(value: str) -> str:
    return re.sub(r'\\["\\n]', lambda found: _ESCAPES[found[0]], value)


def test_nothing_happened_yet() -> None:
    """A fresh gateway has a text that parses, with every count at nought."""
    assert read(Metrics().text([], tools=0, sessions=0)) == {
        ("pegboard_tools", ()): 0,
        ("pegboard_sessions", ()): 0,
        ("pegboard_lists_total", ()): 0,
        ("pegboard_notices_total", ()): 0,
        ("pegboard_parked_calls", ()): 0,
        ("pegboard_audit_lost_total", ()): 0,
    }


def test_what_happened_is_counted() -> None:
    """Calls by server and outcome, the time they took, states, tools, sessions, lists and notices are all told."""
    metrics = Metrics()
    metrics.record_call("git", "ok", 0.25)
    metrics.record_call("git", "ok", 0.5)
    metrics.record_call("git", "failed", 1.0)
    metrics.record_call("docs", "cancelled", 0.0)
    metrics.lists += 4
    metrics.notices += 2
    metrics.audit_lost += 6
    samples = read(metrics.text([("git", "connected"), ("docs", "idle")], tools=7, sessions=3, parked=5))
    assert samples == {
        ("pegboard_calls_total", (("server", "docs"), ("outcome", "cancelled"))): 1,
        ("pegboard_calls_total", (("server", "git"), ("outcome", "failed"))): 1,
        ("pegboard_calls_total", (("server", "git"), ("outcome", "ok"))): 2,
        ("pegboard_call_seconds_total", (("server", "docs"),)): 0,
        ("pegboard_call_seconds_total", (("server", "git"),)): 1.75,
        ("pegboard_server_state", (("server", "git"), ("state", "connected"))): 1,
        ("pegboard_server_state", (("server", "docs"), ("state", "idle"))): 1,
        ("pegboard_tools", ()): 7,
        ("pegboard_sessions", ()): 3,
        ("pegboard_lists_total", ()): 4,
        ("pegboard_notices_total", ()): 2,
        ("pegboard_parked_calls", ()): 5,
        ("pegboard_audit_lost_total", ()): 6,
    }


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a\nb", '\\"', "\\n", 'x",outcome="ok', "ü 日本", "", "} 1"])
def test_odd_label_values_are_escaped(odd: str) -> None:
    """A label value with quotes, backslashes or line ends is read back as it was, and spoils no line."""
    metrics = Metrics()
    metrics.record_call(odd, odd, 1.0)
    samples = read(metrics.text([(odd, odd)], tools=0, sessions=0))
    assert samples["pegboard_calls_total", (("server", odd), ("outcome", odd))] == 1
    assert samples["pegboard_call_seconds_total", (("server", odd),)] == 1
    assert samples["pegboard_server_state", (("server", odd), ("state", odd))] == 1


@given(calls=st.lists(st.tuples(st.text(), st.text(), st.floats(0, 1e6))))
def test_any_history_parses(calls: list[tuple[str, str, float]]) -> None:
    """Whatever was called, the text parses and no call is lost."""
    metrics = Metrics()
    for server, outcome, seconds in calls:
        metrics.record_call(server, outcome, seconds)
    samples = read(metrics.text([], tools=0, sessions=0))
    assert sum(count for (name, _), count in samples.items() if name == "pegboard_calls_total") == len(calls)
