"""Values of files that others write: each is taken if it is what it should be, and is missing if not."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object

# The last moment that JavaScript knows, in milliseconds; ours ends with the year 9999.
_LAST = 253_402_300_799_999
_DEEPEST = 100
# To parse is one step in which no other thread runs, the event loop's included: a larger text is parsed in parts.
_PART = 512 * 1024
_MOST_LEVELS = 8
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])


def parse_json(data: bytes) -> Any:
    """A JSON text's value. Bytes that are no UTF-8 become U+FFFD, and spoil only the word that they stand in."""
    return _in_parts(data.removeprefix(b"\xef\xbb\xbf"), _MOST_LEVELS)


def _in_parts(data: bytes, levels: int) -> Any:
    """An object or a list that is large, as the values of its parts."""
    if len(data) <= _PART or not levels:
        return _at_once(data)
    try:
        if data.lstrip()[:1] == b"{":
            return {name: _in_parts(bytes(part), levels - 1) for name, part in _members.decode(data).items()}
        if data.lstrip()[:1] == b"[":
            return [_in_parts(bytes(part), levels - 1) for part in _elements.decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # What can be read of it all the same is known only there.
        pass
    return _at_once(data)


def _at_once(data: bytes) -> Any:
    try:
        return exactjson.parse_well_formed(data)
    except exactjson.NotJson as exc:
        if isinstance(exc, exactjson.TooDeep) or "NaN" in str(exc):
            return _parse_deep(data)
        try:
            data.decode()
        except UnicodeDecodeError:
            return exactjson.parse_well_formed(data.decode("utf-8", "replace").encode())
        raise


def _parse_deep(data: bytes) -> Any:
    """A text that is nested deeper than anything that is looked at, or has a NaN: without those."""
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
        return exactjson.parse(exactjson.dump(_cut(value, _DEEPEST)))
    except (ValueError, RecursionError):
        raise exactjson.NotJson("it is nested too deep") from None


def _cut(value: Any, deepest: int) -> Any:
    if deepest == 0:
        return None
    if isinstance(value, dict):
        return {key: _cut(item, deepest - 1) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut(item, deepest - 1) for item in cast("list[Any]", value)]
    return value


def an_object(value: object) -> dict[str, Any]:
    """The object, or an empty one."""
    return as_object(value) or {}


def a_list(value: object) -> list[Any]:
    """The list, or an empty one."""
    return as_list(value) or []


def a_text(value: object) -> str:
    """The text, or an empty one."""
    return value if isinstance(value, str) else ""


def a_name(value: object) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def a_moment(value: object) -> int | None:
    """Milliseconds since 1970, from such a number or from a date in ISO 8601."""
    if isinstance(value, str):
        value = _milliseconds(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value) if 1 <= value <= _LAST else None


def a_markdown(value: object) -> str:
    """A text, plain or as VS Code's object for Markdown."""
    return a_text(value) or a_text(an_object(value).get("value"))


def iso(moment: int | None) -> str | None:
    """A moment for people."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _milliseconds(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        return None
