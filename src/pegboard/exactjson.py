"""JSON in and out without loss: numbers of any size, nulls, key order, every character.

A number that a float cannot hold (`1e400`, `0.1000000000000000055511151231257827`) is read as a `Number`: a float that
remembers its digits. Half of a surrogate pair, which JavaScript writes when it cuts an emoji, is read as a `Text`. Both
are written as they were. NaN and Infinity are not JSON: they are refused on the way in and on the way out.

Other readers are given an `approximation`. Pydantic, which also writes what the MCP SDK sends, can write neither: it
writes `Placeholders`, which are filled in behind it.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, cast

from pydantic_core import SchemaSerializer, core_schema, from_json, to_json

# In how many lists and objects a value may stand, wherever it comes from: the limit of the parser here and in the SDK.
MAX_DEPTH = 200

_NO_CONSTANTS = "NaN and Infinity are not JSON"
_NO_TEXT = "it is not valid Unicode: half of a surrogate pair"
# Numbers that a float may not hold: many digits, or an exponent. Most are held all the same.
_LONG_NUMBER = re.compile(rb"[0-9](?:[eE][-+0-9]|[0-9.]{16})")
# A whole number that is none in Python.
_NEGATIVE_ZERO = re.compile(rb"-0(?![.0-9eE])")
# So many bytes they look at.
_LONGEST_LOOK = 17
_PORTION = 256 * 1024
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_FEW_BYTES = 4096
_MAX_FLOAT = sys.float_info.max
_MINUS_ZERO = "-0"
# No text has more placeholders than this has digits for.
_MAX_DIGITS = 9


class NotJson(ValueError):  # noqa: N818  it says what the text is
    """The text is not JSON, or not JSON that can be carried on."""


class TooDeep(NotJson):
    """The text is nested deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {MAX_DEPTH} levels")


class Placeholders(list[bytes]):
    """What stands for the odd values of a text until it is written. They begin with a mark that is made when the first
    is needed: no value that is written can have it in it, because it was there before the mark was."""

    __slots__ = ("_mark",)
    _mark: str

    @contextmanager
    def activate(self) -> Generator[None]:
        """While this lasts, whatever Pydantic writes has them."""
        token = _placeholders.set(self)
        try:
            yield
        finally:
            _placeholders.reset(token)

    def add(self, text: bytes) -> str:
        """One that stands for this JSON."""
        if not self:
            self._mark = f"pegboard.{secrets.token_hex(16)}."
        self.append(text)
        return f"{self._mark}{len(self) - 1}"

    def fill(self, text: bytes) -> bytes:
        """A JSON text with what they stand for. Only a whole text that is a value is one of them; the rest of the JSON
        would be the same even if somebody knew the mark."""
        if not self:
            return text
        opening = b'"' + self._mark.encode()
        first, *others = text.split(opening)
        pieces = [first]
        for part in others:
            number, quote, rest = part.partition(b'"')
            known = number.isdigit() and len(number) <= _MAX_DIGITS and int(number) < len(self)
            # A quote behind a backslash is within a text, and a text before a colon is a name.
            if known and quote and not pieces[-1].endswith(b"\\") and not rest.startswith(b":"):
                pieces += (self[int(number)], rest)
            else:
                pieces += (opening, part)
        return b"".join(pieces)


_placeholders: ContextVar[Placeholders | None] = ContextVar("placeholders", default=None)


def _serializer(write: Callable[[Any], object]) -> SchemaSerializer:
    function = core_schema.plain_serializer_function_ser_schema(write)
    return SchemaSerializer(core_schema.any_schema(serialization=function))


def _write_number(number: Number) -> object:
    placeholders = _placeholders.get()
    if placeholders is None:
        return max(-_MAX_FLOAT, min(float(number), _MAX_FLOAT)) if number.digits != _MINUS_ZERO else 0
    return placeholders.add(number.digits.encode())


def _write_text(text: SurrogateText) -> object:
    placeholders = _placeholders.get()
    return well_formed(str(text)) if placeholders is None else placeholders.add(json.dumps(text).encode())


class Number(float):
    """A float that is written with the digits it was read with."""

    __slots__ = ("digits",)
    __pydantic_serializer__ = _serializer(_write_number)
    digits: str

    def __new__(cls, digits: str) -> Number:
        number = super().__new__(cls, digits)
        number.digits = digits
        return number

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.digits,)


class SurrogateText(str):
    """A text with half of a surrogate pair in it, which is written as the escape it was read from."""

    __slots__ = ()
    __pydantic_serializer__ = _serializer(_write_text)


def parse(text: bytes | str) -> Any:
    """The value a JSON text stands for."""
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise NotJson(_NO_TEXT) from None
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        return _parse_slowly(data, exc)
    return _parse_slowly(data, None) if _has_odd_number(data) else value


def parse_in_steps(data: bytes) -> Generator[None, None, Any]:
    """The same of a text that may be large: to look for long numbers takes most of the time."""
    if len(data) <= _PORTION:
        return parse(data)
    odd = False
    for start in range(0, len(data), _PORTION):
        if _has_odd_number(data, start, start + _PORTION + _LONGEST_LOOK):
            odd = True
            break
        yield
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        return _parse_slowly(data, exc)
    return _parse_slowly(data, None) if odd else value


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The object a JSON text stands for; anything else is an error."""
    value = as_object(parse(text))
    if value is None:
        raise NotJson("expected a JSON object")
    return value


def parse_well_formed(text: bytes) -> Any:
    """The value of a JSON text for whoever needs proper Unicode: half of a surrogate pair becomes U+FFFD."""
    return parse(text) if _SURROGATE_ESCAPE.search(text) is None else well_formed(_load(text))


def as_object(value: object) -> dict[str, Any] | None:
    """The value, if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """The value, if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


class ValueCounter:
    """Counts the values of a JSON text while it comes in, without making them: at most twice as many as there are."""

    def __init__(self) -> None:
        self.values = 1
        self._in_string = False
        self._escape = b""

    def feed(self, data: bytes) -> None:
        """The next part of the text."""
        data = self._escape + data
        # A backslash at the end escapes what is not here yet; those before it come in pairs.
        self._escape = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        data = data.removesuffix(self._escape)
        parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")


def may_be_deep(text: bytes) -> bool:
    """Whether a JSON text has more opening brackets than it may have levels."""
    if len(text) <= _FEW_BYTES:
        return text.count(b"[") + text.count(b"{") > MAX_DEPTH
    found = 0
    for bracket in (b"[", b"{"):
        # Where there are few, to look for the next is thirty times as fast as to count.
        at = text.find(bracket)
        while at >= 0:
            found += 1
            if found > MAX_DEPTH:
                return True
            at = text.find(bracket, at + 1)
    return False


def is_too_deep(text: bytes) -> bool:
    """Whether a JSON text is nested deeper than `MAX_DEPTH`, found out without reading it."""
    if not may_be_deep(text):
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Most texts are two quotes by now, and go; whatever is left between two others is a text's own.
    brackets = text.translate(_AS_LISTS, _NO_BRACKETS).replace(b'""', b"")
    brackets = b"".join(brackets.split(b'"')[::2])
    # Each turn takes the innermost lists and objects away.
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def dump(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> bytes:
    """The JSON text of a value, the shortest unless it is indented. What Pegboard itself has to say may hold half of a
    surrogate pair, as a file name that is not UTF-8 does: that becomes U+FFFD."""
    try:
        text = _write(value, indent, ascii_only)
    except ValueError as exc:
        if "surrogates not allowed" not in str(exc):
            raise NotJson(str(exc)) from None
        text = _write_well_formed(value, indent, ascii_only)
    if b"NaN" in text or b"Infinity" in text:
        _refuse_constants(text)
    return text


def exact(value: Any) -> Any:
    """A value that a program made, so that it is written exactly; `NotJson` if it cannot be."""
    try:
        text = _write(value, None, ascii_only=False)
    except ValueError as exc:
        if "surrogates not allowed" not in str(exc):
            raise NotJson(str(exc)) from None
        value = _keep_surrogates(value)
        text = _write(value, None, ascii_only=False)
    if b"NaN" in text or b"Infinity" in text:
        _refuse_constants(text)
    return value


def well_formed(value: Any, *, but: type[str] | None = None) -> Any:
    """The value with U+FFFD for each half of a surrogate pair, but for texts of one type."""
    if isinstance(value, str):
        is_kept = but is not None and isinstance(value, but)
        return value if is_kept else _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value).items()
        return {well_formed(key): well_formed(item, but=but) for key, item in members}
    if isinstance(value, (list, tuple)):
        return [well_formed(item, but=but) for item in cast("list[Any]", value)]
    return value


def as_floats(value: Any) -> Any:
    """The value with a plain float for each `Number`, for whoever computes with it; `NotJson` if one is too large."""
    if isinstance(value, Number):
        number = float(value)
        if math.isinf(number):
            raise NotJson(f"the number {value.digits[:20]}… is too large")
        return number
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in cast("dict[Any, Any]", value).items()}
    return [as_floats(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def is_same(one: Any, other: Any) -> bool:
    """Whether two values would be written alike, but for the order of members: for Python 1, 1.0 and true are equal,
    and so are numbers that a float cannot tell apart."""
    return one is other or (one == other and _is_written_alike(one, other))


def is_well_formed(value: Any) -> bool:
    """Whether no text in a value holds half of a surrogate pair."""
    if isinstance(value, str):
        return value.isascii() or _LONE_SURROGATE.search(value) is None
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value).items()
        return all(is_well_formed(key) and is_well_formed(item) for key, item in members)
    return all(map(is_well_formed, cast("list[Any]", value))) if isinstance(value, (list, tuple)) else True


def approximation(text: bytes) -> tuple[bytes, Any]:
    """A JSON text that every parser can read, with the nearest float for each `Number` and U+FFFD in each `Text`, and
    the exact value of the given one; mostly that text can be read as it is, and there is no value."""
    odd = _has_odd_number(text) or _SURROGATE_ESCAPE.search(text) or b"NaN" in text or b"Infinity" in text
    if not odd:
        return text, None
    value = parse(text)
    token = _placeholders.set(None)
    try:
        return to_json(value), value
    finally:
        _placeholders.reset(token)


def write_exactly(write: Callable[[], bytes]) -> bytes:
    """What Pydantic writes here, with odd values as they were read."""
    placeholders = Placeholders()
    with placeholders.activate():
        text = write()
    return placeholders.fill(text)


def _has_odd_number(data: bytes, start: int = 0, end: int = sys.maxsize) -> bool:
    """Whether a number is here that the fast parser may change."""
    if _LONG_NUMBER.search(data, start, end) is not None:
        return True
    return data.find(b"-0", start, end) >= 0 and _NEGATIVE_ZERO.search(data, start, end) is not None


def _parse_slowly(data: bytes, exc: ValueError | None) -> Any:
    """Read what the fast parser cannot: numbers with their digits, and half of a surrogate pair."""
    if exc is not None and "number out of range" not in str(exc) and _SURROGATE_ESCAPE.search(data) is None:
        raise _refusal(data, exc) from None
    value = _load(data)
    return value if _SURROGATE_ESCAPE.search(data) is None else _keep_surrogates(value)


def _load(data: bytes) -> Any:
    try:
        value = json.loads(data.decode(), parse_float=_number, parse_int=_integer, parse_constant=_refuse)
    except RecursionError:
        raise TooDeep from None
    except ValueError as exc:
        raise NotJson(str(exc)) from None
    if may_be_deep(data):
        _check_depth(value)
    return value


def _refusal(data: bytes, exc: ValueError) -> NotJson:
    """Why a text cannot be read; the parser only says that it expected something else than NaN."""
    if b"NaN" in data or b"Infinity" in data:
        try:
            from_json(data)
        except ValueError:
            return NotJson(str(exc))
        return NotJson(_NO_CONSTANTS)
    return TooDeep() if "recursion limit" in str(exc) else NotJson(str(exc))


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise TooDeep
        level = [item for each in level for item in _items(each)]
        depth += 1


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _number(digits: str) -> float:
    value = float(digits)
    return value if repr(value) == digits else Number(digits)


def _integer(digits: str) -> int | Number:
    if digits == _MINUS_ZERO:
        return Number(digits)
    try:
        return int(digits)
    except ValueError:
        # More digits than Python reads.
        return Number(digits)


def _refuse(_: str) -> NoReturn:
    raise NotJson(_NO_CONSTANTS)


def _refuse_constants(text: bytes) -> None:
    """Look closely at a text that has the word: it may stand in a text."""
    try:
        json.loads(text, parse_float=len, parse_int=len, parse_constant=_refuse)
    except RecursionError:
        raise TooDeep from None


def _is_written_alike(one: Any, other: Any) -> bool:
    """The same for what is equal, so that it has the same members."""
    if isinstance(one, dict):
        members = cast("dict[Any, Any]", other)
        return all(_is_written_alike(item, members[key]) for key, item in cast("dict[Any, Any]", one).items())
    if isinstance(one, list):
        return all(map(_is_written_alike, cast("list[Any]", one), cast("list[Any]", other)))
    if type(one) is not type(other):
        return False
    return _digits(one) == _digits(other) if isinstance(one, float) else True


def _digits(number: float) -> str:
    return number.digits if isinstance(number, Number) else repr(number)


def _keep_surrogates(value: Any) -> Any:
    try:
        return _with_texts(value)
    except RecursionError:
        raise TooDeep from None


def _with_texts(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_well_formed(value) else SurrogateText(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        if not all(map(is_well_formed, members)):
            raise NotJson(f"the name of a member cannot be carried: {_NO_TEXT}")
        return {key: _with_texts(item) for key, item in members.items()}
    return [_with_texts(item) for item in cast("list[Any]", value)] if isinstance(value, (list, tuple)) else value


def _write(value: Any, indent: int | None, ascii_only: bool) -> bytes:
    placeholders = Placeholders()
    token = _placeholders.set(placeholders)
    try:
        text = to_json(value, inf_nan_mode="constants", indent=indent, ensure_ascii=ascii_only)
    finally:
        _placeholders.reset(token)
    return placeholders.fill(text) if placeholders else text


def _write_well_formed(value: Any, indent: int | None, ascii_only: bool) -> bytes:
    try:
        return _write(well_formed(value, but=SurrogateText), indent, ascii_only)
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from None
