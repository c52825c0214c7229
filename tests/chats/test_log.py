"""The log of changes: it replays to the object that was written, and to a part of it wherever it breaks off."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.makers import delete, log, push, put, request, session, whole
from pegboard.toolsets.chats.dialog import SHAPE, DialogLog, chat_of
from pegboard.toolsets.chats.log import Log, prune
from pegboard.toolsets.chats.reading import BrokenLine, LineReading, UnreadableChat
from pegboard.toolsets.chats.session import Chat
from pegboard.toolsets.chats.table import Packed

KEYS = st.sampled_from(["requests", "response", "message", "text", "value", "customTitle", "extra", "a"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path that leads somewhere, or to a key that is not there yet."""
    found = [path] if path else []
    if isinstance(value, dict):
        found.append((*path, "new"))
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        found.append((*path, len(value)))
        for at, item in enumerate(value):
            found += places(item, (*path, at))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else (value[step] if step < len(value) else None)
    return value


def change(model: Any, entry: dict[str, Any]) -> Any:
    """The plain meaning of one change."""
    if entry["kind"] == 0:
        return copy.deepcopy(entry["v"])
    *way, last = entry["k"]
    around = at(model, tuple(way))
    if entry["kind"] == 3:
        if isinstance(around, dict):
            around.pop(last, None)
        elif last < len(around):
            around[last] = None
        return model
    if entry["kind"] == 2:
        items = at(model, tuple(entry["k"])) or []
        value = (items if entry.get("i") is None else items[: entry["i"]]) + copy.deepcopy(entry["v"])
    else:
        value = copy.deepcopy(entry["v"])
    if isinstance(around, list) and last == len(around):
        around.append(value)
    else:
        around[last] = value
    return model


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Any]]:
    """Changes that fit each other, and the object after each."""
    entries: list[dict[str, Any]] = [whole(draw(OBJECTS))]
    model = change(None, entries[0])
    states = [copy.deepcopy(model)]
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 2, 3]))
        if kind == 0:
            entry = whole(draw(OBJECTS))
        else:
            path = draw(st.sampled_from(places(model)))
            there = at(model, path)
            if kind == 2 and isinstance(there, (list, type(None))):
                cut = draw(st.none() | st.integers(0, len(there or [])))
                entry = push(path, *draw(st.lists(VALUES, max_size=3)), cut=cut)
            elif kind == 3:
                entry = delete(path)
            else:
                entry = put(path, draw(VALUES))
        model = change(model, entry)
        entries.append(entry)
        states.append(copy.deepcopy(model))
    return entries, states


def replay(data: bytes, shape: Any = None) -> Any:
    """The object that a whole log stands for."""
    replayed = Log(shape)
    for line in data.splitlines():
        replayed.take(line)
    return replayed.state


@given(histories())
def test_any_changes_replay_to_the_same_object_as_a_plain_model(
    history: tuple[list[dict[str, Any]], list[Any]],
) -> None:
    """Set, push, cut, delete and begin anew, in any order."""
    entries, states = history
    assert replay(log(*entries)) == states[-1]


@given(histories())
def test_what_nobody_looks_at_can_be_dropped_on_the_way(history: tuple[list[dict[str, Any]], list[Any]]) -> None:
    """A log that is kept to a shape replays to the whole object, kept to that shape."""
    entries, states = history
    assert replay(log(*entries), SHAPE) == prune(states[-1], SHAPE)


class Kept:
    """Lines whose state can be looked at."""

    chained = True

    def __init__(self) -> None:
        self.log = Log()
        self.take = self.log.take

    def chat(self) -> Chat:
        if not self.log.began:
            raise UnreadableChat("nothing yet")
        return Chat()


@given(histories(), st.data())
def test_a_log_cut_at_any_byte_gives_what_it_said_until_there(
    history: tuple[list[dict[str, Any]], list[Any]], data: st.DataObject
) -> None:
    """Never an exception, and never anything that was not so at some time; read on, it is as if never cut."""
    entries, states = history
    text = log(*entries)
    cut = data.draw(st.integers(0, len(text)))
    kept = Kept()
    reading = LineReading(kept)
    complete = text[:cut].count(b"\n")
    try:
        chat = reading.read(io.BytesIO(text[:cut]))
    except UnreadableChat:
        assert complete == 0
        reading = LineReading(kept)
    else:
        assert chat.problem is None
        # The last line may be there but for its end.
        assert kept.log.state in (states[complete - 1 : complete + 1] if complete else states[:1])
        assert reading.goes_on(io.BytesIO(text), len(text))
    assert reading.read(io.BytesIO(text)).problem is None
    assert kept.log.state == states[-1]


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_line_does_more_than_be_refused(line: bytes) -> None:
    """Whatever a line is, the object stays as it was."""
    replayed = Log()
    replayed.take(b'{"kind": 0, "v": {"a": [1]}}')
    with pytest.raises(BrokenLine):
        replayed.take(line)
    assert replayed.state == {"a": [1]}


@given(st.fixed_dictionaries({}, optional={"kind": VALUES | st.integers(0, 3), "k": VALUES, "v": VALUES, "i": VALUES}))
def test_wrong_types_anywhere_in_a_change_do_no_harm(entry: dict[str, Any]) -> None:
    """It is applied or refused, and nothing else is raised."""
    replayed = Log()
    replayed.take(log(whole({"a": [1, {"text": "x"}], "requests": []})))
    before = json.dumps(replayed.state)
    try:
        replayed.take(json.dumps(entry).encode())
    except BrokenLine:
        assert json.dumps(replayed.state) == before


@pytest.mark.parametrize(
    "line",
    [
        push(["requests"], cut=10**9),
        put(["requests", 10**9], {}),
        put(["requests", -1], {}),
        push(["version"], 1),
        put([], {}),
        {"kind": 4, "k": ["requests"], "v": 1},
        {"kind": True, "k": ["requests"], "v": 1},
        {"kind": 1, "k": "requests", "v": 1},
        put(["requests", 7, "message"], 1),
    ],
)
def test_a_change_that_cannot_be_ends_the_reading_there(line: dict[str, Any]) -> None:
    """What was good before it is told, what comes behind it is not, and the damage is reported."""
    reading = LineReading(DialogLog())
    data = log(whole(session("quokka")), line, push(["requests"], request("two", 2)))
    chat = reading.read(io.BytesIO(data))
    assert [each.text for each in chat.requests] == ["quokka"]
    assert chat.problem is not None
    assert "quokka" not in chat.problem


def test_a_broken_last_line_is_dropped_without_a_word() -> None:
    """It is one that is still being written, even where it looks complete or is only zeros."""
    for tail in (
        b'{"kind":1,"k":["customTitle"],"v":"half',
        b'{"kind":1\n',
        b"\0" * 4096,
        b"\0" * 100 + b"\n",
        b"\n\n",
    ):
        chat = LineReading(DialogLog()).read(io.BytesIO(log(whole(session("one"))) + tail))
        assert [each.text for each in chat.requests] == ["one"]
        assert chat.problem is None


def test_what_is_nested_too_deep_is_left_out() -> None:
    """In a part that nobody looks at it costs nothing; in one that is kept, what lies too deep is not."""
    deep = json.loads("[" * 250 + '"\\ud83d"' + "]" * 250)
    call = {"kind": "toolInvocationSerialized", "toolId": "x", "toolSpecificData": {"rawInput": {"a": 1, "b": deep}}}
    data = log(
        whole(session("one")),
        put(["requests", 0, "variableData"], deep),
        push(["requests"], request("two", 2, response=[call])),
    )
    chat = LineReading(DialogLog()).read(io.BytesIO(data))
    assert ([each.text for each in chat.requests], chat.problem) == (["one", "two"], None)
    assert chat.requests[1].tool_calls[0].input["a"] == 1
    assert Packed.of(chat.requests[1]).body


class Growing(io.BytesIO):
    """A file that somebody writes on as soon as a reader has met its end."""

    def __init__(self, now: bytes, later: bytes) -> None:
        super().__init__(now)
        self._later = later

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if line and not line.endswith(b"\n"):
            at = self.tell()
            self.seek(0, io.SEEK_END)
            self.write(self._later)
            self._later = b""
            self.seek(at)
        return line


def test_a_log_that_grows_while_it_is_read_is_not_damaged() -> None:
    """Two halves of one line are no two lines; the next look reads all of it."""
    data = log(whole(session("one")), push(["requests"], request("two", 2)), push(["requests"], request("three", 3)))
    for cut in range(len(log(whole(session("one")))) + 1, len(data), 7):
        reading = LineReading(DialogLog())
        assert reading.read(Growing(data[:cut], data[cut:])).problem is None
        chat = reading.read(io.BytesIO(data))
        assert [each.text for each in chat.requests] == ["one", "two", "three"]
        assert chat.problem is None


def test_damage_is_told_only_as_long_as_it_is_there() -> None:
    """What a log said last time is not said of what it is now."""
    start = log(whole(session("one")))
    reading = LineReading(DialogLog())
    assert reading.read(io.BytesIO(start + b'{"kind":1,\n' + start)).problem is not None
    assert reading.read(io.BytesIO(start + start)).problem is None


def test_a_later_whole_object_replaces_all() -> None:
    """The editor writes its log anew from time to time."""
    data = log(whole(session("one", "two")), whole(session("three")), push(["requests"], request("four", 2)))
    chat = LineReading(DialogLog()).read(io.BytesIO(data))
    assert [each.text for each in chat.requests] == ["three", "four"]


def test_a_push_can_cut_first_and_a_delete_takes_away() -> None:
    """As after an undo, and after a title was taken back."""
    data = log(
        whole(session("one", "two", "three", customTitle="Mine")),
        push(["requests"], request("other", 2), cut=1),
        delete(["customTitle"]),
        put(["requests", 0, "message", "text"], "first"),
    )
    chat = LineReading(DialogLog()).read(io.BytesIO(data))
    assert [each.text for each in chat.requests] == ["first", "other"]
    assert chat.title is None


def test_a_log_written_anew_is_not_read_on() -> None:
    """Shorter, or different where the reading stopped or began."""
    data = log(whole(session("one")), push(["requests"], request("two", 2)))
    reading = LineReading(DialogLog())
    reading.read(io.BytesIO(data))
    assert reading.goes_on(io.BytesIO(data + b"\n"), len(data) + 1)
    assert not reading.goes_on(io.BytesIO(data[:-5]), len(data) - 5)
    other = log(whole(session("uno"))) + data
    assert not reading.goes_on(io.BytesIO(other), len(other))
    assert not LineReading(DialogLog()).goes_on(io.BytesIO(data), len(data))


def test_bytes_that_are_no_utf_8_spoil_one_word() -> None:
    """And half of a surrogate pair likewise; a mark of the byte order is passed over."""
    data = b"\xef\xbb\xbf" + log(whole(session("caf#")), put(["customTitle"], "\ud83d half")).replace(b"#", b"\xe9")
    chat = LineReading(DialogLog()).read(io.BytesIO(data))
    assert chat.problem is None
    assert [each.text for each in chat.requests] == ["caf\ufffd"]
    assert chat.title == "\ufffd half"


def test_a_log_without_its_beginning_is_no_chat() -> None:
    """Nothing, blank lines, zeros, changes of an object that is not there."""
    for data in (b"", b"\n\n", b"\0" * 8192, log(push(["requests"], request("one"))), b"not a log"):
        with pytest.raises(UnreadableChat):
            LineReading(DialogLog()).read(io.BytesIO(data))


@given(st.lists(VALUES | OBJECTS, max_size=4), OBJECTS)
def test_a_chat_is_made_of_any_object(requests: list[Any], rest: dict[str, Any]) -> None:
    """Whatever its fields hold."""
    chat = chat_of({**rest, "requests": requests})
    assert len(chat.requests) <= len(requests)
