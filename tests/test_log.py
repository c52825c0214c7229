"""One line an event; secrets stay out."""

import io
import json
import logging
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.log import Redactor, configure, logger, new_trace_id, trace_id

pytestmark = pytest.mark.usefixtures("own_logging")


class Terminal(io.StringIO):
    """A stream with a person before it."""

    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def stream() -> io.StringIO:
    """A stream that is no terminal, with events sent to it."""
    out = io.StringIO()
    configure(stream=out)
    return out


def test_an_event_is_one_line_of_json(stream: io.StringIO) -> None:
    """On a stream that is no terminal every event is one JSON object with event, level, time and its fields."""
    logger().info("tools.discovery.started", serverCount=2, note="two\nlines \u2028 😀")
    logger().warning("second")
    first, second = lines(stream)
    assert (first["event"], first["level"], first["serverCount"]) == ("tools.discovery.started", "info", 2)
    assert first["note"] == "two\nlines \u2028 😀"
    assert first["time"].endswith("Z")
    assert (second["event"], second["level"]) == ("second", "warning")


def test_an_event_carries_the_trace_id_of_its_operation(stream: io.StringIO) -> None:
    """Inside of an operation every event has its `traceId`; outside there is none; one given by hand stays."""
    logger().info("before")
    token = trace_id.set("abc")
    try:
        logger().info("inside")
        logger().info("by hand", traceId="mine")
        logging.getLogger("library").warning("too")
    finally:
        trace_id.reset(token)
    assert [line.get("traceId") for line in lines(stream)] == [None, "abc", "mine", "abc"]


def test_inside_a_program_events_go_to_its_logging(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed that nobody asked for; what the program wants to see has its trace."""
    structlog.reset_defaults()
    token = trace_id.set("abc")
    try:
        logger().debug("unseen")
        with caplog.at_level("INFO", "pegboard"):
            logger().debug("unseen, too")
            logger().info("tool.retry", attempt=1)
    finally:
        trace_id.reset(token)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("pegboard", "INFO")
    assert json.loads(record.getMessage()) == {"event": "tool.retry", "attempt": 1, "traceId": "abc"}
    assert capsys.readouterr().out == ""


def test_a_program_that_has_set_up_structlog_gets_events_there() -> None:
    """With their trace, whatever it does with them."""
    token = trace_id.set("abc")
    try:
        with structlog.testing.capture_logs() as logs:
            logger().info("tool.retry", attempt=1)
    finally:
        trace_id.reset(token)
    assert logs == [{"event": "tool.retry", "attempt": 1, "traceId": "abc", "log_level": "info"}]


def test_trace_ids_differ() -> None:
    """Two operations are not mixed up."""
    assert len({new_trace_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("debug", ["d", "i", "w", "e"]),
        ("info", ["i", "w", "e"]),
        ("WARNING", ["w", "e"]),
        ("error", ["e"]),
        ("nonsense", ["i", "w", "e"]),
    ],
)
def test_the_level_is_obeyed(level: str, heard: list[str]) -> None:
    """Only what is at least as grave as the level is written; a level nobody knows is info."""
    out = io.StringIO()
    configure(level, out)
    logger().debug("d")
    logger().info("i")
    logger().warning("w")
    logger().error("e")
    assert [line["event"] for line in lines(out)] == heard


def test_a_person_gets_colours() -> None:
    """On a terminal an event is a coloured line for reading."""
    out = Terminal()
    configure(stream=out)
    logger().info("hello", name="x")
    assert "hello" in out.getvalue()
    assert "\x1b[" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_events_go_to_stderr_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    """stdout belongs to the protocol: events are on stderr."""
    configure()
    logger().info("hello")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "hello"


def test_a_librarys_message_is_an_event(stream: io.StringIO) -> None:
    """What a library logs comes along as an event of its own, its arguments filled in."""
    logging.getLogger("some.library").warning("%s is %d", "it", 5)
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["message"]) == ("library.some.library", "warning", "it is 5")


def test_a_librarys_traceback_stays_out(stream: io.StringIO) -> None:
    """Of a library's exception only the kind is told: its traceback and words can show payloads."""
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        logging.getLogger("some.library").exception("it broke")
    (line,) = lines(stream)
    assert (line["message"], line["error"], line["level"]) == ("it broke", "ValueError", "error")
    assert "hunter2" not in stream.getvalue()
    assert "Traceback" not in stream.getvalue()


def test_a_librarys_long_message_is_cut(stream: io.StringIO) -> None:
    """A library cannot fill the log with one message."""
    logging.getLogger("some.library").warning("x" * 10_000)
    assert lines(stream)[0]["message"] == "x" * 500


@pytest.mark.parametrize("level", ["debug", "info", "warning"])
def test_libraries_are_heard_from_warnings_on(level: str) -> None:
    """Libraries' chatter stays out even when our own is wanted."""
    out = io.StringIO()
    configure(level, out)
    library = logging.getLogger("some.library")
    library.debug("d")
    library.info("i")
    library.warning("w")
    assert [line["message"] for line in lines(out)] == ["w"]


@pytest.mark.parametrize(("number", "level"), [(31, "warning"), (35, "warning"), (45, "error"), (99, "critical")])
def test_a_librarys_own_level_is_the_next_lower_one(stream: io.StringIO, number: int, level: str) -> None:
    """A level in between, as some libraries have it, is no error of the library's work."""
    logging.getLogger("some.library").log(number, "odd")
    assert [(line["level"], line["message"]) for line in lines(stream)] == [(level, "odd")]


class Sulky:
    """A thing that will not be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("message", "arguments"),
    [("%d apples", ("no number",)), ("%s", ("a", "b")), ("%(a)s", ({"b": 1},)), ("%s", (Sulky(),)), ("100%", (1,))],
)
def test_a_slip_in_a_librarys_log_line_raises_nothing(message: str, arguments: tuple[object, ...]) -> None:
    """A message whose arguments do not fit is told as it stands."""
    out = io.StringIO()
    # Here and not in a fixture: pytest's own handler, which takes slips badly, must be gone by now.
    configure(stream=out)
    logging.getLogger("some.library").warning(message, *arguments)
    assert [line["message"] for line in lines(out)] == [message]


def test_configuring_twice_writes_once() -> None:
    """A second set-up takes the place of the first."""
    first, second = io.StringIO(), io.StringIO()
    configure(stream=first)
    configure(stream=second)
    logger().info("a")
    logging.getLogger("some.library").warning("b")
    assert first.getvalue() == ""
    assert len(lines(second)) == 2


def test_a_person_is_shown_no_control_characters() -> None:
    """Whatever stands in a field, nothing but colours of our own steers the terminal."""
    out = Terminal()
    configure(stream=out)
    logger().warning("tools.duplicate", tool="\x1b]0;owned\x07\x9b2J\u202e", serverName="one")
    assert "]0;owned" in out.getvalue()
    assert not {"\x07", "\x9b", "\u202e"} & set(out.getvalue())
    assert "\x1b]" not in out.getvalue()


@pytest.mark.parametrize(
    ("secrets", "text", "cleaned"),
    [
        (["s3cret"], "token s3cret, again s3cret", "token [redacted], again [redacted]"),
        (["abc", "abcdef"], "abcdef abc", "[redacted] [redacted]"),
        ([], "nothing", "nothing"),
        ([""], "nothing", "nothing"),
        (["a.c"], "abc a.c", "abc [redacted]"),
        (["abcd", "cdef"], "abcdef", "[redacted]"),
        (["a/b c"], "a%2Fb%20c a%2Fb+c", "[redacted] [redacted]"),
        (['a"b'], '{"k": "a\\"b"}', '{"k": "[redacted]"}'),
        (["redacted"], "redacted redacted", "[redacted] [redacted]"),
    ],
)
def test_secrets_are_taken_out(secrets: list[str], text: str, cleaned: str) -> None:
    """Every known secret is replaced wherever it stands, a longer one before the one inside it, an empty one never."""
    assert Redactor.of(secrets).clean(text) == cleaned


@given(secrets=st.sets(st.text("abcXYZ", min_size=4), min_size=1), rest=st.lists(st.text("abcXYZ ", max_size=9)))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_secret_is_left(secrets: set[str], rest: list[str]) -> None:
    """However secrets stand in a text, none can be read from it afterwards."""
    text = "".join(piece + secret for piece, secret in zip(rest, sorted(secrets), strict=False))
    cleaned = Redactor.of(secrets).clean(text)
    assert not any(secret in cleaned for secret in secrets)


@given(
    secrets=st.sets(st.text("abX", min_size=2), min_size=1, max_size=4), text=st.text("abX "), most=st.integers(0, 30)
)
def test_a_text_can_be_cut_without_leaving_half_a_secret(secrets: set[str], text: str, most: int) -> None:
    """What is left is how the whole text begins once it is clean, and a secret at the cut is gone with all of it."""
    redactor = Redactor.of(secrets)
    cut = redactor.clean(text, most)
    assert redactor.clean(text).startswith(cut)
    assert len(cut) >= min(most, len(redactor.clean(text[:most])))


@given(text=st.text("abX ", max_size=200), more=st.sets(st.text("abX", min_size=1, max_size=6), max_size=30))
def test_many_secrets_are_taken_out_as_few_are(text: str, more: set[str]) -> None:
    """In one walk through the text, also where they overlap or one begins like another."""
    many = Redactor(frozenset(more | {f"other-{number}" for number in range(40)}))
    assert many.clean(text) == Redactor(frozenset(more)).clean(text)


def test_no_more_is_looked_at_than_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server knows its own secrets, and can say them a million times."""
    looked_at: list[int] = []
    spans = Redactor._spans

    def watched(self: Redactor, text: str) -> list[tuple[int, int]]:
        looked_at.append(len(text))
        return spans(self, text)

    monkeypatch.setattr(Redactor, "_spans", watched)
    assert Redactor.of(["aaaa"]).clean("a" * 2_000_000, 200) == "[redacted]"
    assert looked_at == [204]
