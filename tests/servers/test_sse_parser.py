"""Server-sent events cut out of a byte stream, by the rules of the HTML standard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.servers.sse_parser import Event, EventTooLarge, SseParser

STREAM = (
    b"\xef\xbb\xbf: a comment\n\nevent: message\ndata: one\nid: 1\nretry: 250\n\n"
    b"data:two\r\ndata: lines\r\n\r\nevent:endpoint\rdata:/x\r\rdata\n\nid: 7\n\nevent: nothing\n\n"
    b"data: last\n\ndata: never ended"
)
EVENTS = [
    Event("message", b"one", "1"),
    Event("message", b"two\nlines"),
    Event("endpoint", b"/x"),
    Event("message", b""),
    Event("message", b"", "7"),
    Event("message", b"last"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_events_do_not_depend_on_how_the_bytes_arrive(cuts: list[int]) -> None:
    """All three line ends, comments, a BOM, several data lines, ids and retry, however the stream is cut."""
    places = sorted(set(cuts))
    stream = SseParser(10_000)
    seen: list[Event] = []
    for start, end in zip([0, *places], [*places, len(STREAM)], strict=True):
        seen += filter(None, stream.feed(STREAM[start:end]))
    assert seen == EVENTS
    assert (stream.last_id, stream.retry) == ("7", 0.25)


@pytest.mark.parametrize("text", [b"data: " + b"x" * 2000, b"data: xxxxxxxxx\n" * 200])
def test_an_event_beyond_the_limit_is_refused(text: bytes) -> None:
    """An endless line, and an endless row of lines, end with an error and not with all memory."""
    stream = SseParser(1000)
    with pytest.raises(EventTooLarge):
        list(stream.feed(text))


def test_an_id_with_a_nul_is_ignored() -> None:
    """As the standard says."""
    stream = SseParser(1000)
    assert list(filter(None, stream.feed(b"id: a\0b\ndata: x\n\n"))) == [Event("message", b"x")]
    assert stream.last_id is None


def test_a_stream_knows_whether_an_event_has_begun() -> None:
    """Half a line of one, or lines without the empty one at the end."""
    stream = SseParser(1000)
    seen: list[bool] = []
    for part in (b"data: a\n\n", b"dat", b"a: b\n", b"\n", b": a comment\n"):
        list(stream.feed(part))
        seen.append(stream.is_between_events)
    assert seen == [True, False, False, True, True]
