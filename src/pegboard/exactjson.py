"""JSON in and out without loss: integers of any size, nulls, key order, every character.

The parser bounds nesting at 200 levels by itself, so that a hostile answer cannot exhaust the stack.
"""

from __future__ import annotations

import codecs
import json
from typing import Any, cast

from pydantic_core import from_json, to_json

_REPLACE = "pegboard.replace_lone_surrogates"


class NotJson(ValueError):  # noqa: N818  it says what the text is
    """The text is not JSON, or not JSON that can be carried on."""


def parse(text: bytes | str) -> Any:
    """The value a JSON text stands for."""
    data = text.encode("utf-8", _REPLACE) if isinstance(text, str) else text
    try:
        return from_json(data)
    except ValueError as exc:
        # JavaScript writes half of a cut emoji as a lone surrogate escape, which is legal JSON;
        # no UTF-8 wire can carry it further, so it becomes U+FFFD, as in every browser.
        if b"\\ud" in data.lower():
            return _parse_with_lone_surrogates(data)
        raise NotJson(str(exc)) from None


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The object a JSON text stands for; anything else is an error."""
    value = as_object(parse(text))
    if value is None:
        raise NotJson("expected a JSON object")
    return value


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


def dump(value: Any) -> bytes:
    """The shortest JSON text of a value, in UTF-8; what JSON has no word for (NaN, infinity) is null."""
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError as exc:
        # A file name that is not UTF-8, in an error's message for instance.
        if "surrogates not allowed" in str(exc):
            return _dump_with_lone_surrogates(value)
        raise NotJson(str(exc)) from None


def _parse_with_lone_surrogates(text: bytes) -> Any:
    try:
        value = json.loads(text.decode())
        return from_json(json.dumps(value, ensure_ascii=False).encode("utf-8", _REPLACE))
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from None


def _dump_with_lone_surrogates(value: Any) -> bytes:
    try:
        return to_json(_repaired(value), inf_nan_mode="null")
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from None


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", _REPLACE).decode()
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_repaired(item) for item in cast("list[Any]", value)]
    return value


def _replace(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    # As bytes: from a handler that gives text, the UTF-8 codec takes nothing beyond ASCII.
    return "\N{REPLACEMENT CHARACTER}".encode() * (error.end - error.start), error.end


codecs.register_error(_REPLACE, _replace)
