"""JSON that comes through unharmed, and JSON that is refused."""

import asyncio
import copy
import json
import math
import pickle
import re
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import from_json

from pegboard.exactjson import (
    MAX_DEPTH,
    NotJson,
    Number,
    Placeholders,
    ValueCounter,
    approximation,
    as_list,
    as_object,
    dump,
    is_same,
    is_too_deep,
    is_well_formed,
    may_be_deep,
    parse,
    parse_in_steps,
    parse_object,
    parse_well_formed,
    write_exactly,
)
from pegboard.exactjson import exact as exact_value
from pegboard.pace import Pace

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]))
)
keys = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=25
)

LONG = "0.1000000000000000055511151231257827"


def exact(value: Any) -> str:
    """A text that tells 1 from 1.0 and True, -0.0 from 0.0, and one order of keys from another."""
    return repr(value)


@given(values)
@example([2**63, -(2**63) - 1, 2**64, 10**80])
@example({"b": None, "a": [None]})
@example([0.1, -0.0, 1e300, 5e-324, 1.0, 1])
def test_round_trip(value: Any) -> None:
    """Whatever JSON can say is the same after it was written and read, and every other reader agrees."""
    written = dump(value)
    assert exact(parse(written)) == exact(value)
    assert exact(json.loads(written)) == exact(value)
    assert exact(parse(written.decode())) == exact(value)


@given(values)
def test_reads_what_others_write(value: Any) -> None:
    """Escapes and white space, as other writers use them, change nothing."""
    assert exact(parse(json.dumps(value, ensure_ascii=True, indent=2))) == exact(value)
    assert exact(parse(json.dumps(value, ensure_ascii=False).encode())) == exact(value)


@pytest.mark.parametrize(
    "number", [2**53 + 1, 2**63, 2**64 + 1, -(10**40), 10**4299], ids=lambda n: f"2^{n.bit_length()}"
)
def test_integers_of_any_size(number: int) -> None:
    """Integers beyond what a float or a machine word holds keep every digit."""
    text = str(number)
    assert parse(f'{{"n":{text}}}') == {"n": number}
    assert dump({"n": number}) == f'{{"n":{text}}}'.encode()


def test_key_order_and_nulls_stay() -> None:
    """Keys come out in the order they came in, and a null is neither dropped nor anything else."""
    text = b'{"z":null,"a":[null,{}],"m":{"y":1,"b":null}}'
    assert dump(parse(text)) == text


@pytest.mark.parametrize(
    "text", ["\u2028\u2029", "😀", "e\u0301", "\x00\x1f\x7f", 'a"\\/b', "\ufeff", "\U0010ffff", "日本語"]
)
def test_every_character(text: str) -> None:
    """Line separators, emoji, controls, quotes and a BOM inside of a text are the same on the other side."""
    written = dump({text: text})
    assert parse(written) == {text: text}
    assert b"\n" not in written


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.0", 1.0), ("-0.0", -0.0), ("1e5", 100000.0), ("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308)],
)
def test_floats(text: str, value: float) -> None:
    """A number with a fraction or an exponent is the nearest float, and stays a float."""
    assert exact(parse(text)) == exact(value)
    assert exact(parse(dump(value))) == exact(value)


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e400",
        "1e-400",
        "1E+2",
        "-0.0",
        "0.1000000000000000055511151231257827",
        "1e99999999999999999999",
        "0.30000000000000000",
        "9" * 5000,
        "-" + "9" * 5000,
    ],
    ids=lambda text: text[:24],
)
def test_a_number_that_a_float_cannot_hold_keeps_its_digits(text: str) -> None:
    """It is a float to whoever looks at it, and is written as it was, also after it was copied."""
    value = parse(f"[{text}, 1]")
    assert isinstance(value[0], float)
    assert dump(value) == f"[{text},1]".encode()
    assert dump(copy.deepcopy(value)) == f"[{text},1]".encode()
    assert dump(pickle.loads(pickle.dumps(value))) == f"[{text},1]".encode()
    assert dump(value, indent=2) == f"[\n  {text},\n  1\n]".encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_word_for_is_refused(number: float) -> None:
    """NaN and infinity are neither written nor read: as null they would be another value, and nobody would know."""
    for write in (dump, exact_value):
        with pytest.raises(NotJson, match="NaN and Infinity are not JSON"):
            write({"n": [number]})
    with pytest.raises(NotJson, match="NaN and Infinity are not JSON"):
        parse(json.dumps({"n": [1, number]}))
    with pytest.raises(NotJson, match="NaN and Infinity are not JSON"):
        parse(json.dumps(["\ud800", number]))


def test_a_text_may_say_nan() -> None:
    """Only the bare word is refused."""
    value = {"NaN": "[NaN, Infinity]", "n": 1e300}
    assert parse(dump(value)) == value
    assert exact_value(value) is value


@pytest.mark.parametrize(
    "text",
    [
        r'"\ud83d"',
        r'"cut \ud83d here"',
        r'"\ude00\ud83d"',
        r'[18446744073709551617,null,1.0,{"a":"\udfff"},1e400]',
    ],
)
def test_half_of_a_surrogate_pair_stays_the_escape_it_was(text: str) -> None:
    """Half an emoji, as JavaScript writes it, comes out as it went in, and so does everything around it."""
    assert dump(parse(text)) == text.encode()
    assert dump(exact_value(json.loads(text.replace("1e400", "1")))) == text.replace("1e400", "1").encode()


def test_half_of_a_surrogate_pair_in_a_name_is_refused() -> None:
    """The SDK cannot write such a name, so nobody carries it."""
    with pytest.raises(NotJson, match="the name of a member"):
        parse(rb'{"\ud800": 1}')
    with pytest.raises(NotJson, match="the name of a member"):
        exact_value({"\ud800": 1})
    with pytest.raises(NotJson):
        parse('"\ud83d"')


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\udcff", '"a\ufffd"'), ({"\ud800": [1, ("\udfff",)]}, '{"\ufffd":[1,["\ufffd"]]}')],
)
def test_half_of_a_surrogate_pair_of_our_own_is_never_written(value: object, text: str) -> None:
    """A file name that is not UTF-8 does not stop the message it stands in."""
    assert dump(value) == text.encode()


def test_who_needs_unicode_reads_replacement_characters() -> None:
    """What goes into a database or to a model provider has U+FFFD instead, in names too."""
    read = parse_well_formed(rb'{"\ud800": ["a\udfff", "\ud83d\ude00", 1e400]}')
    assert dump(read) == '{"\ufffd":["a\ufffd","😀",1e400]}'.encode()
    assert is_well_formed(read)
    assert not is_well_formed([{"a": "\ud800"}])
    assert not is_well_formed({"\ud800": 1})


odd = st.sampled_from(
    ["1e400", "-2.5E-400", "0.1000000000000000055511151231257827", "9" * 4400, r'"\ud800"', r'"x\udfffy"', "1E+2"]
)


@given(st.lists(odd | values.map(lambda value: dump(value).decode()), max_size=6))
def test_a_reader_that_knows_neither_is_given_the_nearest(parts: list[str]) -> None:
    """What the SDK reads is JSON of the same shape, and beside it stands the exact value."""
    text = f"[{','.join(parts)}]".encode()
    readable, value = approximation(text)
    assert (value is None) == (readable is text)
    assert dump(text if value is None else value) == dump(text if value is None else parse(text))
    assert shape(json.loads(readable)) == shape(from_json(readable)) == shape(parse(text))
    # What marks the odd ones is not left in it, unless somebody wrote it.
    assert b"pegboard" not in readable or b"pegboard" in text


def shape(value: Any) -> Any:
    """A value without its texts and numbers."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in as_object(value).items()}  # pyright: ignore[reportOptionalMemberAccess]
    if isinstance(value, list):
        return [shape(item) for item in as_list(value) or []]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__[:0]


def test_the_nearest_can_be_read_by_everybody() -> None:
    """A float that is not infinite, and U+FFFD; also while a text with placeholders is written around it."""
    text = rb'{"a":[1e400,-1e400,0.1000000000000000055511151231257827],"b":"x\ud800"}'
    with Placeholders().activate():
        readable, value = approximation(text)
    largest = sys.float_info.max
    assert from_json(readable) == {"a": [largest, -largest, 0.1], "b": "x\ufffd"}
    assert dump(value) == text


class _Model(BaseModel):
    value: Any


# What somebody would send who wants a text to be taken for another: the mark of an earlier text, and all that could
# make a reader of finished JSON lose its place.
EARLIER = Placeholders().add(b"1").removesuffix("0")
FORGED = ["", '"', "\\", '\\"', '"\\', ",", ":", "{", "}", "0", "1", "00", "x", "\ud800", "\n"]


def forgeries(mark: str) -> st.SearchStrategy[Any]:
    """Values whose texts and names are made of a mark and of the signs of JSON, with odd values between them."""
    pieces = st.lists(st.sampled_from([mark, f'"{mark}0"', f'"{mark}0', f"{mark}0", *FORGED]), max_size=6)
    texts = pieces.map("".join)
    names = texts.map(lambda text: text.replace("\ud800", ""))
    leaves = texts | st.sampled_from([1, None, Number("1e400"), Number("-0.50000000000000000000")])
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=15
    )


@given(forgeries(EARLIER), st.sampled_from([None, 2]), st.booleans())
@example({"a": f'z"{EARLIER}0', f'{EARLIER}0"x': Number("1e400"), "b": f"{EARLIER}0", "\\": "\\"}, None, False)
def test_no_text_is_taken_for_a_placeholder(value: Any, indent: int | None, ascii_only: bool) -> None:
    """Whatever a text says, another reader finds in the JSON exactly the values that were to be written."""
    expected = plain(value)
    written = dump(exact_value(value), indent=indent, ascii_only=ascii_only)
    assert plain(json.loads(written, parse_float=Number)) == expected
    assert plain(parse(written)) == expected
    model = _Model(value=exact_value(value))
    assert plain(parse(write_exactly(lambda: model.model_dump_json().encode()))["value"]) == expected
    placeholders = Placeholders()
    with placeholders.activate():
        shown = json.dumps(model.model_dump(mode="json"))
    assert plain(parse(placeholders.fill(shown.encode()))["value"]) == expected


@given(forgeries("pegboard.known."))
def test_the_rest_of_a_text_is_the_same_even_if_the_mark_is_known(value: Any) -> None:
    """Only a whole text that is a value could be another then: no name, no part of a text, not the JSON around it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegboard.exactjson.secrets.token_hex", lambda _: "known")  # pyright: ignore[reportUnknownLambdaType]
        written = dump(exact_value([value, Number("1e400")]))
    known = re.compile(r"pegboard\.known\.[0-9]+")

    def blurred(item: Any) -> Any:
        if isinstance(item, dict):
            return [(name, blurred(inner)) for name, inner in (as_object(item) or {}).items()]
        if isinstance(item, list):
            return [blurred(inner) for inner in as_list(item) or []]
        odd = isinstance(item, Number) or (
            isinstance(item, str) and (not is_well_formed(item) or known.fullmatch(item))
        )
        return "odd" if odd else item

    assert blurred(parse(written)) == blurred(exact_value([value, Number("1e400")]))


def plain(value: Any) -> Any:
    """A value that can be compared: `Number("1e400")` is equal to any other infinity."""
    if isinstance(value, dict):
        return [(name, plain(item)) for name, item in (as_object(value) or {}).items()]
    if isinstance(value, list):
        return [plain(item) for item in as_list(value) or []]
    return ("number", value.digits) if isinstance(value, Number) else value


def test_placeholders_are_never_the_same_twice() -> None:
    """Whoever saw one knows nothing of the next."""
    marks = {Placeholders().add(b"1") for _ in range(100)}
    assert len(marks) == 100


def test_a_text_without_anything_odd_is_passed_on_as_it_is() -> None:
    """Nothing is written anew that need not be."""
    for text in (b'{"a": [1, 0.5, "e5"] }', b"[", '{"a":"é"}'.encode()):
        assert approximation(text) == (text, None)
        assert Placeholders().fill(text) is text
    with pytest.raises(NotJson, match="NaN"):
        approximation(b"[NaN]")


def test_an_escaped_backslash_is_no_surrogate() -> None:
    """Text that only looks like an escape is left alone."""
    assert parse(r'"\\ud83d"') == r"\ud83d"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1,]",
        b"{'a': 1}",
        b"{} {}",
        b"nul",
        b'"\x01"',
        b"01",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        rb'["\ud800", "' + b'\xff"]',
        rb'["\ud800", "' + b'\xed\xa0\x80"]',
        rb'["\ud83d\ude00",]',
        rb'"\ud83d',
        rb'"\ud83d" 1',
        '{"a": 1}'.encode("utf-16"),
    ],
)
def test_what_is_not_json(text: bytes) -> None:
    """Broken syntax and bytes that are not UTF-8 are `NotJson`, with or without surrogate escapes about."""
    with pytest.raises(NotJson):
        parse(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
@pytest.mark.parametrize("inside", ["1", r'"\ud800"', "1e400", "9" * 5000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused(depth: int, inside: str, left: str, right: str) -> None:
    """A text nested without end is refused, however deep, and crashes nothing."""
    with pytest.raises(NotJson):
        parse(left * depth + inside + right * depth)


@given(
    st.lists(st.sampled_from(['[1,"]",', '{"a]":', '{"\\\\":', '["\\"[",'])), st.integers(MAX_DEPTH - 40, MAX_DEPTH + 5)
)
def test_depth_is_told_without_reading(odd: list[str], depth: int) -> None:
    """Brackets in texts do not count, wherever backslashes and quotes stand."""
    openings = [*odd[:40], *["["] * (depth - len(odd[:40]))]
    closings = ["}" if opening.startswith("{") else "]" for opening in reversed(openings)]
    text = "".join([*openings, '"[[{"', *closings]).encode()
    assert is_too_deep(text) is (depth > MAX_DEPTH)
    wide = b"[" + b",".join([b"[[[1]]]"] * 300) + b"]"
    assert not is_too_deep(wide)


def test_sensible_nesting_is_read_and_written() -> None:
    """Nesting up to the limit of 200 goes both ways."""
    for inside in (b"1", b"1e400", rb'"\ud800"'):
        text = b"[" * MAX_DEPTH + inside + b"]" * MAX_DEPTH
        assert dump(parse(text)) == text


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def surrogate_circle() -> list[Any]:
    value: list[Any] = ["\ud800"]
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [object(), print, {"a": object()}, b"\xff", nested(5_000), circle(), surrogate_circle(), [object(), "\ud800"]],
    ids=["object", "function", "inside", "bytes", "deep", "circle", "surrogate circle", "surrogate and object"],
)
def test_what_cannot_be_written(value: object) -> None:
    """A value that JSON cannot say is `NotJson`, not a crash."""
    with pytest.raises(NotJson):
        dump(value)


def test_only_an_object_is_an_object() -> None:
    """Where an object is needed, anything else is refused by name."""
    assert parse_object(b'{"a":1}') == {"a": 1}
    for text in ("[]", "null", "1", '"{}"'):
        with pytest.raises(NotJson, match="expected a JSON object"):
            parse_object(text)


@pytest.mark.parametrize("value", [None, 1, "x", (), True])
def test_as_object_and_as_list_tell_kinds_apart(value: object) -> None:
    """A value of another kind is none at all."""
    assert as_object({"a": 1}) == {"a": 1}
    assert as_list([1]) == [1]
    assert as_object([1]) is None
    assert as_list({"a": 1}) is None
    assert as_object(value) is None
    assert as_list(value) is None


@given(values, st.data())
def test_values_are_counted_in_pieces_of_any_size(value: Any, data: st.DataObject) -> None:
    """At least as many as there are, at most twice as many, wherever the text is cut."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    counter = ValueCounter()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        counter.feed(text[start:end])
    assert count(value) <= counter.values <= 2 * count(value)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text()), st.integers(1, 20))
def test_a_text_read_in_steps_is_read_as_at_once(value: list[Any], portion: int) -> None:
    """A number that keeps its digits may stand on both sides of a cut."""
    text = json.dumps([*value, "x"]).encode().replace(b".5", b".50000000000000000000001")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegboard.exactjson._PORTION", portion)
        value = asyncio.run(Pace().outcome(parse_in_steps(text)))
    assert dump(value) == dump(parse(text))


def test_a_negative_zero_stays_one() -> None:
    """A whole number in JSON that Python's integers do not have; other readers get a zero."""
    text = b'{"a":-0,"b":[-0, -0.0,0,-0e1],"c":"-0","d":"2026-01-05"}'
    written = b'{"a":-0,"b":[-0,-0.0,0,-0e1],"c":"-0","d":"2026-01-05"}'
    assert dump(parse(text)) == written
    readable, value = approximation(text)
    assert json.loads(readable)["a"] == 0
    assert b"-0," not in readable
    assert dump(value) == written
    assert dump(parse(b"-0")) == b"-0"
    long = b"[" + b" " * 300_000 + b"-0" + b" " * 300_000 + b"]"
    assert dump(asyncio.run(Pace().outcome(parse_in_steps(long)))) == b"[-0]"
    assert approximation(b'{"a":"x-01"}') == (b'{"a":"x-01"}', None)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "true"), ("1", "1.0"), ("0", "false"), ("0", "-0"), ("0.0", "-0.0"), ("1e400", "1e500"), ("0.1", LONG)],
)
def test_what_is_written_differently_is_not_the_same(one: str, other: str) -> None:
    """Though it is equal in Python, however deep it stands; the order of members does not matter."""
    for shape in ("%s", "[2,%s]", '{"a":{"b":[%s]},"c":null}'):
        before, after = parse(shape % one), parse(shape % other)
        assert before == after or one == "1e400"
        assert not is_same(before, after)
        assert is_same(before, parse(shape % one))
    assert is_same(parse(f'{{"a":1,"b":[{LONG}]}}'), parse(f'{{"b":[{LONG}],"a":1}}'))


@pytest.mark.parametrize("padding", [0, 10_000])
@pytest.mark.parametrize("bracket", [b"[", b"{", b"[{"])
def test_whether_a_text_may_be_deep_is_told_by_its_brackets(bracket: bytes, padding: int) -> None:
    """Alike for short texts and for long ones, wherever the brackets stand."""
    few = bracket * (MAX_DEPTH // len(bracket))
    for text in (few + b"x" * padding, b"x" * padding + few, b"x".join([b"x" * padding, *[bracket] * 3])):
        assert not may_be_deep(text)
        assert may_be_deep(text + few + b"[")
