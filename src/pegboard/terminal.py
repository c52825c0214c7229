"""Texts of others, made harmless for a terminal: nothing in them steers it, hides, or turns round what is read."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, cast

# All control characters but tabs and line ends, what separates lines otherwise, what changes the direction of writing,
# halves of surrogate pairs, and what Unicode calls `Default_Ignorable_Code_Point` (no width, fillers, tags), except for
# the variation selectors that emoji and some scripts need.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)

_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")
# It is no blank to Unicode, and looks like one.
_BRAILLE_BLANK = "\u2800"


def plain(text: str) -> str:
    """The text without anything that steers a terminal or cannot be seen on it."""
    return _UNSAFE.sub("", text)


def plain_data(data: Any) -> Any:
    """The same data, each text in it plain."""
    if isinstance(data, str):
        return plain(data)
    if isinstance(data, (list, tuple)):
        return [plain_data(each) for each in cast("list[Any]", data)]
    if isinstance(data, dict):
        return {plain_data(name): plain_data(value) for name, value in cast("dict[Any, Any]", data).items()}
    return data


def plain_json(text: str) -> str:
    """A JSON text that means exactly the same, with escapes in place of what `plain` takes out."""
    return _UNSAFE.sub(_escape, text)


def visible_json(text: str) -> str:
    """The same, with escapes also in place of blanks that are none, and of what covers or moves what is beside it."""
    return _BEYOND_ASCII.sub(lambda match: match.group() if _is_visible(match.group()) else _escape(match), text)


def _is_visible(character: str) -> bool:
    """Whether it has a place of its own, which it takes in the order of reading."""
    return (
        character.isprintable()
        and character != _BRAILLE_BLANK
        and _UNSAFE.match(character) is None
        and unicodedata.category(character) not in {"Mn", "Me"}
        and unicodedata.bidirectional(character) not in {"R", "AL"}
    )


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
