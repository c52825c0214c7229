"""What the reader and the in-place editor of the config file promise."""

import copy
import json
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.config.jsonc import JsoncError, Path, add_members, parse, remove, set_value


def error_of(text: str) -> str:
    with pytest.raises(JsoncError) as caught:
        parse(text)
    return str(caught.value)


def same(left: object, right: object) -> bool:
    """Equality that also tells 1 from 1.0 and True, and one order of keys from another."""
    return json.dumps(left) == json.dumps(right)


# Reading: what is accepted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5e3, true, false, null, "x"]}', {"a": [1, -2500.0, True, False, None, "x"]}),
        ("// head\n[1, /* one */ 2] // tail", [1, 2]),
        ("/* a * b ** / */ [/**/]", []),
        ("// ends with the file\r[1]//", [1]),
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ('"http://x /* not a comment */"', "http://x /* not a comment */"),
        ("\ufeff{}", {}),
        (" \t\r\n7\r", 7),
        ("-0", 0),
        ("1E+2", 100.0),
        ('{"": {"": 0}}', {"": {"": 0}}),
    ],
)
def test_reads(text: str, value: object) -> None:
    """JSON, both kinds of comments, trailing commas and a leading BOM are read to plain values."""
    assert same(parse(text).value, value)


def test_reads_escapes() -> None:
    """Every escape of JSON is decoded, a surrogate pair to the one character it stands for."""
    assert parse(r'"\"\\\/\b\f\n\r\t\u0041\u00e9\uD83D\uDE00"').value == '"\\/\b\f\n\r\tAé😀'


@pytest.mark.parametrize("digits", [19, 640, 641, 4300, 4301, 20_000])
def test_integers_of_any_size_stay_exact(digits: int) -> None:
    """An integer beyond 64 bits, and beyond the digits that int() takes, is read exactly."""
    number = 10**digits - 7
    assert parse(f"[{'9' * (digits - 1)}3, -{'9' * (digits - 1)}3]").value == [number, -number]


def test_integers_of_any_size_under_the_lowest_limit() -> None:
    """A long integer is read even where the interpreter is set to its strictest limit of digits."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert parse("1" + "0" * 640).value == 10**640
    finally:
        sys.set_int_max_str_digits(limit)


def test_nesting_up_to_one_hundred_levels() -> None:
    """One hundred levels are read; one more is an error at the bracket that opens it."""
    parse("[" * 100 + "]" * 100)
    assert error_of("[" * 101 + "]" * 101) == "1:101: expected at most 100 levels of nesting, found more"
    assert error_of('{"a":' * 100_000) == "1:501: expected at most 100 levels of nesting, found more"


# Reading: what is refused, where and why


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "// only\n/* comments */"])
def test_empty_file(text: str) -> None:
    """A file without any value says that it is empty."""
    assert error_of(text) == "1:1: the file is empty"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1 "b": 2}', "1:9: expected ',' or '}' after this value, found '\"'"),
        ("[1 2]", "1:4: expected ',' or ']' after this value, found '2'"),
        ("[1}", "1:3: expected ',' or ']' after this value, found '}'"),
        ('{"a": 1', "1:8: expected ',' or '}' after this value, found the end of the file"),
        ('{"a" 1}', "1:6: expected ':' after this key, found '1'"),
        ('{"a":}', "1:6: expected a value, found '}'"),
        ("{a: 1}", "1:2: expected a key in double quotes or '}', found 'a'"),
        ("{'a': 1}", "1:2: expected a key in double quotes or '}', found \"'\""),
        ("{,}", "1:2: expected a key in double quotes or '}', found ','"),
        ('{"a": 1,,}', "1:9: expected a key in double quotes or '}', found ','"),
        ("[,]", "1:2: expected a value or ']', found ','"),
        ("[1,,]", "1:4: expected a value or ']', found ','"),
        ("[1]\n[2]", "2:1: expected the end of the file after this value, found '['"),
        ("# x", "1:1: expected a value, found '#'"),
        ("[\\", "1:2: expected a value or ']', found '\\'"),
        ("[/ 1]", "1:2: expected a value or ']', found '/'"),
        ("[\x0c1]", "1:2: expected a value or ']', found '\\x0c'"),
        ("[\ufeff]", "1:2: expected a value or ']', found '\\ufeff'"),
        ("[" + "x" * 20 + "]", f"1:2: expected a value or ']', found '{'x' * 20}'"),
        ("[" + "x" * 21 + "]", f"1:2: expected a value or ']', found '{'x' * 20}…'"),
    ],
)
def test_wrong_structure(text: str, error: str) -> None:
    """A wrong token is an error at that token which says what was expected and what was found."""
    assert error_of(text) == error


@pytest.mark.parametrize("word", ["NaN", "Infinity", "True", "nul", "nullx", "undefined", "'a'"])
def test_words_that_json_does_not_know(word: str) -> None:
    """No other word than true, false and null is a value."""
    assert error_of(f'{{"a": {word}}}').startswith("1:7: expected a value, found ")


@pytest.mark.parametrize(
    "number", ["01", "-01", "-", "+1", ".5", "1.", "1.e2", "1e", "1e+", "0x10", "1_000", "1.2.3", "-Infinity", "1٣"]
)
def test_numbers_that_json_does_not_know(number: str) -> None:
    """Only the number syntax of RFC 8259 is read: no leading zero, no bare point, no sign of plus."""
    assert error_of(f"[{number}]") == f"1:2: expected a JSON number, found '{number}'"


def test_float_that_would_become_infinite() -> None:
    """A number too large for a float is refused, since infinity could not be written back."""
    assert error_of("[1e999]") == "1:2: expected a number within the range of a float, found a larger one"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('["abc', "1:2: this string is never closed"),
        ('["abc\n"]', "1:2: this string is never closed"),
        ('["abc\r\n"]', "1:2: this string is never closed"),
        ('["abc\\', "1:2: this string is never closed"),
        ('["abc\\\n"]', "1:2: this string is never closed"),
        ('["a\tb"]', "1:4: expected an escape, found the control character U+0009"),
        ('["a\x00"]', "1:4: expected an escape, found the control character U+0000"),
        ('["a\\x41"]', "1:4: expected an escape that JSON knows, found '\\x'"),
        ('["\\u12g4"]', "1:3: expected four hexadecimal digits after '\\u'"),
        ('["\\u"]', "1:3: expected four hexadecimal digits after '\\u'"),
        ('["ab\\ud83d"]', "1:5: expected a surrogate pair, found half of one"),
        ('["\\ude00"]', "1:3: expected a surrogate pair, found half of one"),
        ('["\\ud83d\\u0041"]', "1:3: expected a surrogate pair, found half of one"),
        ('["\\uDE00\\uD83D"]', "1:3: expected a surrogate pair, found half of one"),
        ('["\ud83d"]', "1:3: expected a surrogate pair, found half of one"),
        ('{"a\n": 1}', "1:2: this string is never closed"),
    ],
)
def test_wrong_strings(text: str, error: str) -> None:
    """An open string is reported where it begins, any other fault of a string at the character in question."""
    assert error_of(text) == error


@pytest.mark.parametrize("text", ["[1,\n /* x", "[1,\n /*/ ]", "[1,\n /* x * /]"])
def test_open_comment(text: str) -> None:
    """A block comment without an end is reported where it begins."""
    assert error_of(text) == "2:2: this comment is never closed"


def test_duplicate_key() -> None:
    """A key that stands twice in one object is named with both its places, however it is escaped."""
    error = '3:2: the key "aé" stands twice in this object, first at 2:2'
    assert error_of('{\n "aé": {"aé": 1},\n "\\u0061é": 2}') == error


@pytest.mark.parametrize("line_ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_error_place(line_ending: str, bom: str) -> None:
    """Lines of every ending count once, columns count characters, and a BOM counts as nothing."""
    assert error_of(line_ending.join([f"{bom}{{ // x", "/* ", ' */ "😀é": ?', "}"])).startswith("3:11: ")
    assert error_of(bom + "?").startswith("1:1: ")
    assert error_of(bom + line_ending + "?").startswith("2:1: ")


def test_error_attributes() -> None:
    """The error carries line, column and reason, also through a pickle, and is a ValueError."""
    with pytest.raises(ValueError) as caught:
        parse("[\n ?")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.line, error.column, error.reason) == (2, 2, "expected a value or ']', found '?'")
    assert str(error) == "2:2: expected a value or ']', found '?'"


# Places of values

PLACED = '// head\n{\n  "a": {"b": [10, {"c": 1}]},\n  "d" :\n    "x"\n}'


@pytest.mark.parametrize("line_ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("path", "value_place", "key_place"),
    [
        ((), (2, 1), (2, 1)),
        (("a",), (3, 8), (3, 3)),
        (("a", "b"), (3, 14), (3, 9)),
        (("a", "b", 0), (3, 15), (3, 15)),
        (("a", "b", 1), (3, 19), (3, 19)),
        (("a", "b", 1, "c"), (3, 25), (3, 20)),
        (("d",), (5, 5), (4, 3)),
        (("nothing", "there"), (2, 1), (2, 1)),
        (("a", "nothing", 3), (3, 8), (3, 3)),
        (("a", "b", 2), (3, 14), (3, 9)),
        (("a", "b", -1), (3, 14), (3, 9)),
        (("a", 0), (3, 8), (3, 3)),
        (("d", 0), (5, 5), (4, 3)),
    ],
)
def test_places(bom: str, line_ending: str, path: Path, value_place: object, key_place: object) -> None:
    """Each value and key is placed; a path that does not exist gets the place of its nearest ancestor."""
    document = parse(bom + PLACED.replace("\n", line_ending))
    assert document.place(path) == value_place
    assert document.key_place(path) == key_place


# Replacing a value


def test_replace_touches_only_the_value() -> None:
    """Everything around the replaced value stays: comments, odd blanks, order, number and escape spellings."""
    text = '\ufeff{ // head\r\n\t"b" :/*k*/ 1.50 /*v*/ , // tail\r\n\r\n  "a":"\\u0041",}\r\n'
    assert set_value(text, ("b",), "é\n") == text.replace("1.50", '"é\\n"')


def test_replace_list_item() -> None:
    """A list item is replaced by its index."""
    assert set_value("[1, /* two */ 2, 3,]", (1,), None) == "[1, /* two */ null, 3,]"


def test_replace_whole_document() -> None:
    """The empty path replaces the whole value and keeps the comments around it."""
    assert set_value("// head\n[1] // tail\n", (), {"a": 1}) == '// head\n{\n  "a": 1\n} // tail\n'


def test_replacement_is_indented_like_its_siblings() -> None:
    """A nested value is printed at the depth of its key, in the unit of the siblings rather than of the document."""
    text = '{\n "a": {\n     "b": 1,\n     "c": 2\n }\n}\n'
    new = '{\n         "x": [\n             1,\n             {}\n         ],\n         "y": []\n     }'
    assert set_value(text, ("a", "b"), {"x": [1, {}], "y": []}) == text.replace("1", new)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n "a": {\n     "b": 1\n }\n}', '{\n "a": {\n  "x": 1\n }\n}'),
        ('{\n"a": 1,\n"b": {\n   "c": 2\n}\n}', '{\n"a": {\n   "x": 1\n},\n"b": {\n   "c": 2\n}\n}'),
        ('   {\n "a": 1\n}', '   {\n "a": {\n   "x": 1\n }\n}'),
        ('{"a": 1}', '{"a": {\n  "x": 1\n}}'),
    ],
)
def test_indentation_unit(text: str, expected: str) -> None:
    """The unit comes from the siblings, then from any container that is indented, then it is two blanks."""
    assert set_value(text, ("a",), {"x": 1}) == expected


@pytest.mark.parametrize("line_ending", ["\n", "\r\n", "\r"])
def test_replacement_takes_tabs_and_line_ending_of_the_document(line_ending: str) -> None:
    """Tabs as indentation and the line ending of the document are used for new lines."""
    text = '{\n\t"a": 1\n}\n'.replace("\n", line_ending)
    expected = '{\n\t"a": {\n\t\t"b": "ü"\n\t}\n}\n'.replace("\n", line_ending)
    assert set_value(text, ("a",), {"b": "ü"}) == expected


# Adding a member


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "n": 0\n}\n'),
        ('{\n  "a": 1,\n}\n', '{\n  "a": 1,\n  "n": 0,\n}\n'),
        ('{\n  "a": 1 \t\n}\n', '{\n  "a": 1, \t\n  "n": 0\n}\n'),
        ('{\n  "a": 1 // one\n}\n', '{\n  "a": 1, // one\n  "n": 0\n}\n'),
        ('{\n  "a": 1 /* x\n y */ // one\n}\n', '{\n  "a": 1, /* x\n y */ // one\n  "n": 0\n}\n'),
        ('{\n  "a": 1, // one\n}\n', '{\n  "a": 1, // one\n  "n": 0,\n}\n'),
        ('{\n  "a": 1 // one\n  , // two\n}\n', '{\n  "a": 1 // one\n  , // two\n  "n": 0,\n}\n'),
        ('{\n  "a": 1\n  // end\n}\n', '{\n  "a": 1,\n  "n": 0\n  // end\n}\n'),
        ('{ "a": 1,\n      "b": 2 }', '{ "a": 1,\n      "b": 2,\n      "n": 0 }'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"n": 0\r\n}'),
        ('{\r    "a": 1\r}', '{\r    "a": 1,\r    "n": 0\r}'),
        ('{"a": 1}', '{"a": 1, "n": 0}'),
        ('{ "a": 1, }', '{ "a": 1, "n": 0, }'),
        ('{ "a": 1 /* one */ }', '{ "a": 1, /* one */ "n": 0 }'),
        ("{}", '{\n  "n": 0\n}'),
        ("{  }\r\n", '{\r\n  "n": 0\r\n}\r\n'),
        ("{\n}\n", '{\n  "n": 0\n}\n'),
        ("{ // comment\n }", '{ // comment\n  "n": 0\n }'),
        ("{ /* c */ }", '{ /* c */\n  "n": 0\n}'),
        ("{\n  // nothing yet\n}", '{\n  "n": 0\n  // nothing yet\n}'),
    ],
)
def test_add_member(text: str, expected: str) -> None:
    """A member is added behind the last one in the layout that is there, its comma right behind the last value."""
    assert set_value(text, ("n",), 0) == expected


@pytest.mark.parametrize("text", ["", " \n\n", "\t"])
def test_add_to_empty_text(text: str) -> None:
    """An empty file is started with an object and a final newline."""
    assert set_value(text, ("a", "b"), 1) == '{\n  "a": {\n    "b": 1\n  }\n}\n'


def test_add_to_empty_text_keeps_bom_and_line_ending() -> None:
    """What little an empty file says about itself is kept."""
    assert set_value("\ufeff\r\n", ("a",), 1) == '\ufeff{\r\n  "a": 1\r\n}\r\n'


def test_add_to_comments_only() -> None:
    """A file of comments alone is not overwritten but refused like in reading."""
    with pytest.raises(JsoncError, match="the file is empty"):
        set_value("// my notes", ("a",), 1)


def test_add_creates_missing_parents() -> None:
    """Parents that are missing are created as objects at the right depth in the document's unit."""
    text = '{\n    "a": {\n    }\n}\n'
    expected = (
        '{\n    "a": {\n        "b": {\n            "c": [\n                1\n            ]\n        }\n    }\n}\n'
    )
    assert set_value(text, ("a", "b", "c"), [1]) == expected


def test_add_container_to_one_line_object() -> None:
    """A value that needs lines of its own opens up the one-line object at its end and leaves its members alone."""
    assert set_value('{"a": 1 }', ("b",), {"c": 2}) == '{"a": 1,\n  "b": {\n    "c": 2\n  }\n}'


def test_add_to_empty_object_follows_its_surroundings() -> None:
    """An empty object within a one-line document stays on the line, within lines it opens up."""
    assert set_value('{"a": {}}', ("a", "b"), 1) == '{"a": {"b": 1}}'
    assert set_value('{"a": { /* c */ }}', ("a", "b"), 1) == '{"a": { /* c */ "b": 1 }}'
    assert set_value('{\n "a": {}\n}', ("a", "b"), 1) == '{\n "a": {\n  "b": 1\n }\n}'


def test_add_takes_unit_of_document_where_siblings_show_none() -> None:
    """The unit is the first that any container of the document shows."""
    text = '{"a": 1, "b": [\n   1\n], "c": {}}'
    assert set_value(text, ("c", "d"), 1) == '{"a": 1, "b": [\n   1\n], "c": {\n   "d": 1\n}}'


@pytest.mark.parametrize("path", [("s", "x"), ("l", "x"), ("l", 1), ("l", -1), ("o", 0), ("o", "x", 0), (0,)])
def test_set_where_nothing_can_be_added(path: Path) -> None:
    """A path through a scalar or to a list item that is not there is a KeyError and never overwrites anything."""
    with pytest.raises(KeyError):
        set_value('{"s": 1, "l": [1], "o": {}}', path, 1)


def nested_list(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud83d", nested_list(100), nested_list(5000)])
def test_set_refuses_what_could_not_be_read_back(value: object) -> None:
    """A value that would make the file unreadable is a ValueError."""
    with pytest.raises(ValueError):
        set_value("{}", ("a",), value)


def test_set_accepts_the_deepest_value_that_can_be_read() -> None:
    """One hundred levels in all can be written."""
    assert parse(set_value("{}", ("a",), nested_list(99))).value == {"a": nested_list(99)}


# Removing an entry


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x": 0}', "{}"),
        ('{ "x": 0, }', "{ }"),
        ('{"x": 0, "b": 1}', '{"b": 1}'),
        ('{ "a": 1, "x": 0 }', '{ "a": 1 }'),
        ('{"a": 1, "x": 0,}', '{"a": 1,}'),
        ('{"a": 1, "x": 0, "b": 2}', '{"a": 1, "b": 2}'),
        ('{"a": 1 /* a */, /* ? */ "x": 0 /* x */, /* ? */ "b": 2}', '{"a": 1 /* a */, /* ? */ /* ? */ "b": 2}'),
        ('{"a": 1, /* ? */ "x": 0, /* x */ }', '{"a": 1, /* ? */ }'),
        ('{ /* head */ "x": 0 /* x */ }', "{ /* head */ }"),
    ],
)
def test_remove_on_one_line(text: str, expected: str) -> None:
    """On one line the entry goes with its comma and blanks; a comment between two entries stays."""
    assert remove(text, ("x",)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "x": 0\n}\n', "{\n}\n"),
        ('{ // head\n  "x": 0, // x\n  // end\n}\n', "{ // head\n  // end\n}\n"),
        ('{\n  "x": 0, // x\n  // b\n  "b": 2\n}\n', '{\n  // b\n  "b": 2\n}\n'),
        ('{\n  "a": 1, // a\n  "x": 0, /* x\n  x */ // x\n  "b": 2\n}\n', '{\n  "a": 1, // a\n  "b": 2\n}\n'),
        ('{\n  "a": 1, // a\n  "x": 0 // x\n}\n', '{\n  "a": 1 // a\n}\n'),
        ('{\n  "a": 1, // a\n  "x": 0, // x\n}\n', '{\n  "a": 1, // a\n}\n'),
        ('{\n  "a": 1, // a\n  // x\n  /* x */ // x\n  /* x */ "x": 0,\n}\n', '{\n  "a": 1, // a\n}\n'),
        ('{\n  // free\n \t\n  // x\n  "x": 0\n}\n', "{\n  // free\n \t\n}\n"),
        ('{\r\n  // free\r\n\r\n  // x\r\n  "x": 0\r\n}', "{\r\n  // free\r\n\r\n}"),
        ('{\r  "a": 1, // a\r  // x\r  "x": 0 // x\r}', '{\r  "a": 1 // a\r}'),
        ('{\n  "a": 1, // a\n\n  "x": 0\n\n  // end\n}\n', '{\n  "a": 1 // a\n\n\n  // end\n}\n'),
        ('{\n  "a": 1, // a\n  "x": [\n    0 // 0\n  ], // x\n  "b": 2\n}\n', '{\n  "a": 1, // a\n  "b": 2\n}\n'),
        ('{\n  "x": 0, "b": 2 // b\n}\n', '{\n  "b": 2 // b\n}\n'),
        ('{\n  "a": 1, "x": 0, // x\n  "b": 2\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n'),
        ('{ "a": 1, // a\n  "x": 0 /* x */ }\n', '{ "a": 1 // a\n  }\n'),
        ('{ "x": 0, // x\n  "b": 2 }\n', '{\n  "b": 2 }\n'),
        ('{\n  "x": 0 // x\n  // b\n  , "b": 2\n}\n', '{\n  // b\n   "b": 2\n}\n'),
        ('{\n"x": 0\n,"b": 2\n}\n', '{\n"b": 2\n}\n'),
        ('{\n    "a": 1 // a\n  , "x": 0 // x\n}\n', '{\n    "a": 1 // a\n  \n}\n'),
    ],
)
def test_remove_from_lines(text: str, expected: str) -> None:
    """The entry goes with its own lines and comments; comments of neighbours and those set apart stay."""
    assert remove(text, ("x",)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [((0,), "\ufeff[2, [3]]"), ((1,), "\ufeff[1, [3]]"), ((2,), "\ufeff[1, 2]"), ((2, 0), "\ufeff[1, 2, []]")],
)
def test_remove_list_item(path: Path, expected: str) -> None:
    """List items are removed like members, and a BOM stays."""
    assert remove("\ufeff[1, 2, [3]]", path) == expected


@pytest.mark.parametrize("path", [(), ("x",), ("a", 1), ("a", -1), ("a", 0, 0), ("a", "x"), (0,)])
def test_remove_what_is_not_there(path: Path) -> None:
    """A path that leads to no entry is a KeyError, and the document itself is no entry."""
    with pytest.raises(KeyError):
        remove('{"a": [1]}', path)


# Properties over random documents

# Speed is no promise here: a slow machine must not fail these tests.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYS = st.text(max_size=4) | st.sampled_from(["//", "/*", "*/", '"', "\\", ",}", "\u2028"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
ROOTS = st.lists(VALUES, max_size=4) | st.dictionaries(KEYS, VALUES, max_size=4)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@dataclass(frozen=True)
class Note:
    """A comment of a generated document: the path it goes with, and whether it stands inside of the value there."""

    name: str
    owner: Path
    inside: bool

    def goes_with_removal_of(self, path: Path) -> bool:
        return self.owner[: len(path)] == path

    def goes_with_replacement_of(self, path: Path) -> bool:
        return self.goes_with_removal_of(path) and (self.inside or len(self.owner) > len(path))


class Writer:
    """Writes a value with random layout, comments and trailing commas, and keeps book of the comments."""

    def __init__(self, chance: random.Random, *, lines_only: bool = False) -> None:
        self.random = chance
        self.lines_only = lines_only
        self.line_ending = chance.choice(["\n", "\r\n", "\r"])
        self.unit = chance.choice(["", " ", "  ", "    ", "\t"])
        self.notes: list[Note] = []

    def document(self, value: object) -> str:
        head = self.maybe_line(self.note((), False, may_end_line=True))
        return self.random.choice(["", "\ufeff"]) + head + self.value(value, (), "", one_line=False)

    def footer(self) -> str:
        return self.random.choice(["", self.line_ending, f" // end{self.line_ending}", " /* end */"])

    def perhaps(self, probability: float = 0.3) -> bool:
        return self.random.random() < probability

    def note(self, owner: Path, inside: bool, *, may_end_line: bool, probability: float = 0.3) -> str:
        """A comment or nothing; only a comment that a line break follows may be of the // kind or have many lines."""
        if not self.perhaps(probability):
            return ""
        name = f"<note {len(self.notes)}>"
        self.notes.append(Note(name, owner, inside))
        plain = f"/*{name} // , }} */"
        if not may_end_line:
            return plain
        return self.random.choice([f'// {name} /* , "', plain, f"/* {name}{self.line_ending} ] */"])

    def maybe_line(self, comment: str) -> str:
        return comment + self.line_ending if comment else ""

    def value(self, value: object, path: Path, indent: str, *, one_line: bool) -> str:
        if isinstance(value, dict):
            members = cast("dict[str, object]", value)
            return "{" + self.entries(list(members.items()), path, indent, one_line) + "}"
        if isinstance(value, list):
            items = cast("list[object]", value)
            return "[" + self.entries(list(enumerate(items)), path, indent, one_line) + "]"
        return json.dumps(value, ensure_ascii=False)

    def entries(
        self, entries: list[tuple[str, object]] | list[tuple[int, object]], path: Path, indent: str, one_line: bool
    ) -> str:
        one_line = not self.lines_only and (one_line or self.perhaps())
        breaks = [not one_line and (self.lines_only or self.perhaps(0.8)) for _ in range(len(entries) + 1)]
        trailing_comma = self.perhaps(0.5)
        text = self.note(path, True, may_end_line=breaks[0])
        for index, (key, value) in enumerate(entries):
            is_last = index == len(entries) - 1
            text += self.lead(path, key, indent + self.unit) if breaks[index] else self.random.choice(["", " "])
            text += self.entry(key, value, path, indent + self.unit, one_line)
            text += self.note((*path, key), False, may_end_line=False)
            has_comma = trailing_comma or not is_last
            if has_comma and not one_line and self.perhaps(0.1):
                text += self.note((*path, key), False, may_end_line=True) + self.line_ending + indent + ","
                text += "" if is_last or breaks[index + 1] else self.note(path, True, may_end_line=False)
                continue
            shared = not is_last and not breaks[index + 1]
            behind = self.note(path if shared else (*path, key), shared, may_end_line=breaks[index + 1])
            text += ("," if has_comma else "") + self.random.choice(["", " "]) + behind
        if breaks[-1]:
            text += self.line_ending + self.maybe_line(self.note(path, True, may_end_line=True)) + indent
        return text

    def lead(self, path: Path, key: str | int, indent: str) -> str:
        """The line break before an entry, comments set apart by a blank line, and those that belong to the entry."""
        text = self.line_ending
        apart = self.note(path, True, may_end_line=True)
        if apart:
            text += indent + apart + self.line_ending + self.random.choice(["", " "]) + self.line_ending
        text += self.maybe_line(self.note((*path, key), False, may_end_line=True))
        text += self.maybe_line(self.note((*path, key), False, may_end_line=True))
        return text + indent + self.note((*path, key), False, may_end_line=False, probability=0.1)

    def entry(self, key: str | int, value: object, path: Path, indent: str, one_line: bool) -> str:
        path = (*path, key)
        text = self.value(value, path, indent, one_line=one_line)
        if isinstance(key, int):
            return text
        before_colon = self.note(path, False, may_end_line=False, probability=0.1)
        before_value = self.note(path, False, may_end_line=False, probability=0.1)
        return f"{json.dumps(key, ensure_ascii=False)}{before_colon}:{before_value} {text}"


@st.composite
def writers(draw: st.DrawFn, *, lines_only: bool = False) -> Writer:
    return Writer(draw(st.randoms(use_true_random=False)), lines_only=lines_only)


def children_of(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, dict):
        yield from cast("dict[str, object]", value).items()
    elif isinstance(value, list):
        yield from enumerate(cast("list[object]", value))


def paths_in(value: object, path: Path = ()) -> Iterator[Path]:
    yield path
    for key, child in children_of(value):
        yield from paths_in(child, (*path, key))


def value_at(value: object, path: Path) -> object:
    for step in path:
        value = dict(children_of(value))[step]
    return value


def objects_in(value: object) -> list[Path]:
    return [path for path in paths_in(value) if isinstance(value_at(value, path), dict)]


def edited(value: object, path: Path, edit: Callable[[dict[str | int, object], str | int], object]) -> object:
    """A copy of `value` with `edit` applied to the parent of `path`."""
    result = copy.deepcopy(value)
    edit(cast("dict[str | int, object]", value_at(result, path[:-1])), path[-1])
    return result


def assert_notes(result: str, writer: Writer, goes: Callable[[Note], bool]) -> None:
    for note in writer.notes:
        assert (note.name in result) is not goes(note), note


def pick(data: st.DataObject, options: list[Path]) -> Path:
    return data.draw(st.sampled_from(options), label="path")


@steady
@given(VALUES, st.none() | st.integers(0, 8) | st.sampled_from(["\t", " \t"]), st.booleans())
def test_reads_all_that_json_writes(value: object, indent: int | str | None, ascii_only: bool) -> None:
    """Whatever the standard library writes as JSON is read as the same value."""
    assert same(parse(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).value, value)


@steady
@given(ROOTS, writers())
def test_reads_decorated_documents(value: object, writer: Writer) -> None:
    """Comments, trailing commas, layout and line endings never change the value."""
    assert same(parse(writer.document(value) + writer.footer()).value, value)


@steady
@given(ROOTS, writers(), st.data())
def test_place_points_at_the_value(value: object, writer: Writer, data: st.DataObject) -> None:
    """Reading on from the place of a value finds that value, and from the place of a key that key."""
    text = writer.document(value)
    path = pick(data, list(paths_in(value)))
    document = parse(text)
    lines = text.removeprefix("\ufeff").split(writer.line_ending)

    def token_at(place: tuple[int, int]) -> object:
        rest = lines[place[0] - 1][place[1] - 1 :]
        return rest[0] if rest[0] in "{[" else json.JSONDecoder().raw_decode(rest)[0]

    target = value_at(value, path)
    expected = "{" if isinstance(target, dict) else "[" if isinstance(target, list) else target
    assert same(token_at(document.place(path)), expected)
    if path and isinstance(path[-1], str):
        assert token_at(document.key_place(path)) == path[-1]


@steady
@given(ROOTS, writers(), VALUES, st.data())
def test_replacing_keeps_the_rest(value: object, writer: Writer, new: object, data: st.DataObject) -> None:
    """A replaced value is the only thing that changes, and only the comments inside of it go."""
    text = writer.document(value) + writer.footer()
    path = pick(data, list(paths_in(value)))
    result = set_value(text, path, new)
    expected = edited(value, path, lambda parent, key: parent.__setitem__(key, new)) if path else new
    assert same(parse(result).value, expected)
    assert_notes(result, writer, lambda note: note.goes_with_replacement_of(path))


@steady
@given(OBJECTS, writers(), VALUES, st.data())
def test_replacing_back_gives_the_very_same_text(
    value: object, writer: Writer, new: object, data: st.DataObject
) -> None:
    """Nothing outside of a replaced scalar changes by as much as a byte."""
    text = writer.document(value) + writer.footer()
    scalars = [path for path in paths_in(value) if not isinstance(value_at(value, path), dict | list)]
    if scalars:
        path = pick(data, scalars)
        assert set_value(set_value(text, path, new), path, value_at(value, path)) == text


@steady
@given(OBJECTS, writers(), VALUES, st.lists(KEYS, min_size=1, max_size=3), st.data())
def test_adding_keeps_everything(
    value: object, writer: Writer, new: object, keys: list[str], data: st.DataObject
) -> None:
    """An added member comes last in its object, missing parents are made, and every comment is still there."""
    text = writer.document(value) + writer.footer()
    parent_path = pick(data, objects_in(value))
    key, *inner = [f"new {key}" for key in keys]
    for inner_key in reversed(inner):
        wrapped: object = {inner_key: new}
        new = wrapped
    path = (*parent_path, key)
    target = value_at(new, tuple(inner))
    result = set_value(text, (*path, *inner), target)
    assert same(parse(result).value, edited(value, path, lambda parent, last: parent.__setitem__(last, new)))
    assert_notes(result, writer, lambda note: False)


@steady
@given(OBJECTS, writers(), st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_several_members_are_added_in_one_step(
    value: object, writer: Writer, new: list[object], data: st.DataObject
) -> None:
    """They come last, in their order, and every comment is still there; one that is there is refused."""
    text = writer.document(value) + writer.footer()
    parent_path = pick(data, objects_in(value))
    members = {f"new {at}": each for at, each in enumerate(new)}
    result = add_members(text, parent_path, members)
    expected = copy.deepcopy(value)
    cast("dict[str, object]", value_at(expected, parent_path)).update(members)
    assert same(parse(result).value, expected)
    assert list(cast("dict[str, object]", value_at(parse(result).value, parent_path)))[-len(new) :] == list(members)
    assert_notes(result, writer, lambda note: False)
    with pytest.raises(KeyError):
        add_members(result, parent_path, members)


@steady
@given(OBJECTS, writers(lines_only=True), st.lists(VALUES, max_size=4), st.data())
def test_several_members_look_as_if_they_had_been_added_one_by_one(
    value: object, writer: Writer, new: list[object], data: st.DataObject
) -> None:
    """In an object of lines."""
    text = writer.document(value) + writer.footer()
    path = pick(data, [path for path in objects_in(value) if value_at(value, path)])
    one_by_one = text
    for at, each in enumerate(new):
        one_by_one = set_value(one_by_one, (*path, f"new {at}"), each)
    assert add_members(text, path, {f"new {at}": each for at, each in enumerate(new)}) == one_by_one


@steady
@given(OBJECTS, writers(lines_only=True), VALUES, st.data())
def test_adding_and_removing_gives_the_very_same_text(
    value: object, writer: Writer, new: object, data: st.DataObject
) -> None:
    """A member added to an object of lines and removed again leaves no trace."""
    text = writer.document(value) + writer.footer()
    parents = [path for path in objects_in(value) if value_at(value, path)]
    path = (*pick(data, parents), "brand new")
    assert remove(set_value(text, path, new), path) == text


@steady
@given(ROOTS.filter(bool), writers(), st.data())
def test_removing_keeps_the_rest(value: object, writer: Writer, data: st.DataObject) -> None:
    """A removed entry goes with exactly its own comments; every other entry and comment stays."""
    text = writer.document(value) + writer.footer()
    path = pick(data, [path for path in paths_in(value) if path])
    result = remove(text, path)
    assert same(parse(result).value, edited(value, path, lambda parent, key: parent.pop(cast("str", key))))
    assert_notes(result, writer, lambda note: note.goes_with_removal_of(path))


@steady
@given(OBJECTS, st.none() | st.integers(0, 4), VALUES, st.data())
def test_edits_of_strict_json_stay_strict_json(
    value: object, indent: int | None, new: object, data: st.DataObject
) -> None:
    """No edit brings a trailing comma into a document that had none."""
    text = json.dumps(value, indent=indent)
    paths = [path for path in paths_in(value) if path]
    json.loads(remove(text, pick(data, paths)))
    json.loads(set_value(text, (*pick(data, objects_in(value)), "brand new"), new))


SYNTAX = st.text(alphabet='{}[]":,/*\\ \t\r\n0123456789-+.eEudDtrufalsn\ufeff\ud83d\x00é')
ANY_TEXT = st.text(alphabet=st.characters(codec=None))


def error_or_none(text: str) -> JsoncError | None:
    try:
        parse(text)
    except JsoncError as error:
        return error
    return None


@steady
@given(SYNTAX | ANY_TEXT)
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail with anything but its own error, whose place lies within the text."""
    error = error_or_none(text)
    if error:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@steady
@given(ROOTS, writers(), st.data())
def test_mangled_documents_are_read_or_refused(value: object, writer: Writer, data: st.DataObject) -> None:
    """A document with a piece replaced by junk is read or refused with the reader's own error."""
    text = writer.document(value)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 3)))
    error = error_or_none(text[:start] + data.draw(SYNTAX) + text[stop:])
    assert error is None or error.reason


@steady
@given(ROOTS, writers(), st.data())
def test_truncated_documents_are_refused(value: object, writer: Writer, data: st.DataObject) -> None:
    """A document that is cut off anywhere before its last bracket is refused."""
    text = writer.document(value)
    parse(text)
    with pytest.raises(JsoncError):
        parse(text[: data.draw(st.integers(0, len(text) - 1))])
