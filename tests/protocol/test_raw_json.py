"""Envelopes: what is opened only as far as needed is still JSON to its last byte, and comes out as it went in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.protocol import raw_json
from pegboard.protocol.eras import SERVER_INFO_KEY

# How long an example takes says how busy the machine is, and nothing else.
unhurried = settings(deadline=None, max_examples=100)

BLANKS = st.text(" \t\r\n", max_size=2)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(2**64, 2**200).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["-0", "1e400", "-1E+400", "0.10", "1e-999", "123456789012345678901234567890.5"]),
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])).map(json.dumps),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from([r'"\/\b\f\u0041\ud83d\ude00"', '"\\u2028\u2028"', '"\x7f"', '""']),
)


def _spaced(parts: tuple[str, list[str]], brackets: str) -> str:
    blank, items = parts
    return brackets[0] + blank + ("," + blank).join(items) + blank + brackets[1]


def _lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(BLANKS, st.lists(inner, max_size=4)).map(lambda parts: _spaced(parts, "[]"))


def _objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.tuples(TEXTS, BLANKS, inner).map(lambda each: f"{each[0]}{each[1]}:{each[1]}{each[2]}")
    return st.tuples(BLANKS, st.lists(members, max_size=4)).map(lambda parts: _spaced(parts, "{}"))


VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(_lists(inner), _objects(inner)),
    max_leaves=8,
)
OBJECTS = _objects(VALUES)
# Texts that are mostly JSON, and mostly just not.
BROKEN = st.tuples(OBJECTS, st.integers(0, 200), st.binary(max_size=3), st.integers(0, 2)).map(
    lambda each: each[0].encode()[: each[1]] + each[2] + each[0].encode()[each[1] + each[3] :]
)


def strict(text: bytes) -> Any:
    """The value of a text by the standard library, without its leniencies."""

    def no_constant(word: str) -> None:
        raise ValueError(word)

    # As decimal text, since not all numbers fit a float.
    return json.loads(text.decode("utf-8"), parse_constant=no_constant, parse_float=str, parse_int=str)


@unhurried
@given(OBJECTS, st.one_of(NUMBERS, TEXTS), BLANKS)
def test_a_request_is_taken_apart_without_touching_its_params(params: str, number: str, blank: str) -> None:
    """Numbers of any size, escapes, order and blanks stay as they were written; an odd id is for the general way."""
    text = f'{{{blank}"jsonrpc":"2.0",{blank}"method":"x",{blank}"params":{params},"id"{blank}:{number}}}'.encode()
    opened = raw_json.request(text)
    if not number.startswith('"') and not number.removeprefix("-").isdigit():
        assert opened is None
        return
    assert opened is not None
    assert isinstance(opened.params, raw_json.Raw)
    assert (bytes(opened.params), bytes(opened.id), opened.method) == (params.encode(), number.encode(), "x")


@unhurried
@given(OBJECTS, st.integers(0, 10**18 - 1), BLANKS)
def test_an_answer_gives_its_result_as_it_came(result: str, number: int, blank: str) -> None:
    """Byte for byte, for the request with this number."""
    text = f'{blank}{{"id":{blank}{number},"result":{blank}{result}{blank},"jsonrpc":"2.0"}}{blank}'.encode()
    assert raw_json.answer(text) == (number, result.encode())


@unhurried
@given(BROKEN)
def test_whatever_is_accepted_is_json(text: bytes) -> None:
    """A text that is damaged anywhere, in a part that nobody looks at, too, is not passed on."""
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % text
    answered = b'{"jsonrpc":"2.0","id":1,"result":%b}' % text
    called = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%b}}' % text
    for opened, whole in (
        (raw_json.request(asked), asked),
        (raw_json.answer(answered), answered),
        (raw_json.members(text), text),
    ):
        if opened is not None:
            strict(whole)
    request = raw_json.request(called)
    if request is not None and (params := raw_json.call_params(request.params)) is not None:
        assert isinstance(params.arguments, raw_json.Raw)
        assert strict(bytes(params.arguments)) == strict(called)["params"]["arguments"]


@unhurried
@given(OBJECTS)
def test_an_object_that_is_taken_apart_and_joined_is_the_same(text: str) -> None:
    """Each member keeps its bytes, and all of them their order; of one that comes twice the last counts."""
    parts = raw_json.members(text.encode())
    assert parts is not None
    joined = raw_json.join(parts)
    assert strict(joined) == strict(text.encode())
    assert list(strict(joined)) == list(strict(text.encode()))
    assert all(value in text.encode() for value in parts.values())


@unhurried
@given(OBJECTS)
def test_nothing_with_the_end_of_a_line_goes_to_a_pipe(text: str) -> None:
    """One message is one line there, and still the same message."""
    line = raw_json.one_line(text.encode())
    assert b"\n" not in line
    assert b"\r" not in line
    assert strict(line) == strict(text.encode())


@unhurried
@given(OBJECTS)
def test_a_meta_names_us_beside_all_that_it_had(text: str) -> None:
    """The server's own name gives way to ours; the rest stays."""
    stamped = raw_json.with_server_info(text.encode(), b'{"name":"us"}')
    assert stamped is not None
    assert strict(stamped) == {**strict(text.encode()), SERVER_INFO_KEY: {"name": "us"}}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_text_is_that_text(text: str) -> None:
    """Whatever characters it has, and on one line."""
    quoted = raw_json.quote(text)
    assert json.loads(quoted) == text
    assert raw_json.one_line(quoted) == quoted


ODD = {
    "half a character": rb'"\ud800"',
    "the other half": rb'"\ude00"',
    "a half in a name": rb'{"\ud800":1}',
    "not a number": b"NaN",
    "infinity": b"-Infinity",
    "no utf-8": b'"\xff"',
    "utf-16 in utf-8": b'"\xed\xa0\x80"',
    "no utf-8 in a name": b'{"\xff":1}',
    "a line end in a text": b'"a\nb"',
    "a nul": b'"\x00"',
    "a comment": b"/* */1",
    "a comma too many": b"[1,]",
    "a leading zero": b"01",
    "an unknown escape": rb'"\q"',
    "a bottomless pit": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_what_is_odd_is_left_to_the_general_way(value: bytes) -> None:
    """It has the words for what is wrong, and knows what can be repaired."""
    assert raw_json.request(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":%b}}' % value) is None
    assert raw_json.answer(b'{"jsonrpc":"2.0","id":1,"result":{"a":%b}}' % value) is None
    assert raw_json.members(b'{"a":%b}' % value) is None


@pytest.mark.parametrize(
    "text",
    [
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x"}{}',
        b'{"jsonrpc":"2.0","id":1,"method":"x"}\0',
        b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
        b'{"jsonrpc":"1.0","id":1,"method":"x"}',
        b'{"jsonrpc":"2.0","id":null,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"x"}',
        b'{"jsonrpc":"2.0","id":true,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","\xff":1}',
        b'{"jsonrpc":"2.0","method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","more":1}',
        b"",
    ],
)
def test_a_text_that_is_no_plain_request_is_left_to_the_general_way(text: bytes) -> None:
    """A BOM, something behind the end, a batch, a notification, or anything that a request has not."""
    assert raw_json.request(text) is None


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":-1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1e0,"result":{}}',
        b'{"jsonrpc":"2.0","id":1000000000000000000000,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"extra":1}',
    ],
)
def test_an_answer_that_is_not_just_a_result_is_left_to_the_general_way(text: bytes) -> None:
    """Errors, ids that are not quite ours, and results that are no objects."""
    assert raw_json.answer(text) is None


@pytest.mark.parametrize(
    ("params", "plain"),
    [
        (b'{"name":"x"}', True),
        (b'{"name":"x","arguments":null}', True),
        (b'{"name":"x","arguments":{},"_meta":{}}', True),
        (b'{"name":"x","arguments":[]}', False),
        (b'{"name":"x","_meta":null}', False),
        (b'{"name":"x","task":{}}', False),
        (b'{"arguments":{}}', False),
        (b'{"name":1}', False),
        (b'{"name":"\xff"}', False),
    ],
)
def test_a_call_is_plain_if_it_has_nothing_but_a_name_arguments_and_meta(params: bytes, *, plain: bool) -> None:
    """Anything else about it may mean something that has to be understood."""
    assert (raw_json.call_params(raw_json.Raw(params)) is not None) is plain


@unhurried
@given(st.lists(st.tuples(st.sampled_from(["id", "method"]), st.integers(0, 9)), min_size=1, max_size=4))
def test_of_members_that_come_twice_the_last_counts(members: list[tuple[str, int]]) -> None:
    """As for whoever reads the whole, so that nobody can be told two things at once."""
    body = ",".join(f'"{name}":{json.dumps(f"{number}")}' for name, number in members)
    text = f'{{"jsonrpc":"2.0","id":1,"method":"first",{body}}}'.encode()
    opened = raw_json.request(text)
    assert opened is not None
    whole = strict(text)
    assert (strict(bytes(opened.id)), opened.method) == (whole["id"], whole["method"])
