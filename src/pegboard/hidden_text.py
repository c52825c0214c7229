"""Hidden text: characters that a model reads and a person does not see, or sees in another order.

It is found by structure alone, never by what words mean: tag characters, direction controls, control characters and
escape sequences, private use, variation selectors that vary nothing, and what has no width, except where emoji and
scripts need them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from pegboard.text import truncate

# All that is looked at closely. Most texts have none of it.
_SUSPECT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"
    "\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 15))
    + "\U000f0000-\U0010ffff]"
)
# What looks like a blank, and is none; in Chinese and Japanese the wide one is the usual one.
_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f]")
_SEPARATORS = frozenset("\u2028\u2029")
# In JSON a control character is an escape, a line end too, and whatever else hides is not ASCII.
_MAY_HIDE = re.compile(rb"[\x7f-\xff]|\\[ubfnrt]")
_LINE = frozenset("\n\t\r")
_ZWNJ, _ZWJ, _ZWSP = "\u200c", "\u200d", "\u200b"
_MARKS = frozenset("\u200e\u200f\u061c")
_KEYCAP, _BRAILLE_BLANK = "\u20e3", "\u2800"
_EMOJI_SELECTORS = frozenset("\ufe0e\ufe0f")
# Flags of England, Scotland and Wales: a black flag, the tags of a region, and the tag that ends it.
_BLACK_FLAG, _CANCEL_TAG = "\U0001f3f4", "\U000e007f"
_FLAGS = tuple(
    _BLACK_FLAG + "".join(chr(0xE0000 + ord(letter)) for letter in region) + _CANCEL_TAG
    for region in ("gbeng", "gbsct", "gbwls")
)
# Emoji that are no symbols to Unicode.
_ODD_EMOJI = frozenset("\u203c\u2049\u3030\u303d\u00a9\u00ae\u2122\u2139\u2194")
# Scripts in which letters are joined, or kept apart, by characters without width: Arabic, Syriac, N'Ko and Mandaic;
# those of India, Sri Lanka and Southeast Asia; Mongolian.
_JOINING = (
    *((0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0F00, 0x109F), (0x1780, 0x18AF), (0xA840, 0xA87F), (0xFB50, 0xFDCF)),
    *((0xFE70, 0xFEFC), (0x11000, 0x11FFF)),
)
# Scripts without blanks between words: Thai, Lao, Myanmar, Khmer and their neighbours.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x1AAF), (0xA9E0, 0xAA7F))
# How many variants of ideographs and symbols a definition may have: names have one or two, a hidden text has hundreds.
_MOST_VARIANTS = 8
_LONGEST_PLACE, _LONGEST_SPELT = 300, 120


def may_hide(text: bytes) -> bool:
    """Whether a JSON text can have hidden text in it; most cannot, which is found out quickly."""
    return _MAY_HIDE.search(text) is not None


def explain_hidden_text(value: Any) -> str | None:
    """Where the first hidden text of a definition is, and what; `None` if there is none. Names of members are looked at
    as well, in which there is no line end."""
    variants = 0
    for text, place, is_name in _texts(value):
        if text.isascii() and text.isprintable():
            continue
        found = find_hidden(text, one_line=is_name)
        variants += 0 if found is not None else sum(_is_rare_variant(match[0]) for match in _SUSPECT.finditer(text))
        if found is None and variants > _MOST_VARIANTS:
            found = 0, "more variation selectors than a definition needs"
        if found is not None:
            at, what = found
            return f"{_write_place(place)} has hidden text: {what} (U+{ord(text[at]):04X}) at character {at + 1}"
    return None


def describe_hidden_text(value: Any) -> str:
    """The kinds of hidden text in a definition, and what its tag characters spell: each is a letter in disguise."""
    kinds: Counter[str] = Counter()
    letters: list[str] = []
    for text, _, is_name in _texts(value):
        for match in _SUSPECT.finditer(text):
            if (what := _explain(text, match.start(), one_line=is_name)) is not None:
                kinds[what.removeprefix("a ")] += 1
                letters += _letter_of_tag(match[0])
    spelt = truncate("".join(letters).strip(), _LONGEST_SPELT)
    found = ", ".join(f"{what} ({count})" for what, count in kinds.items())
    return "; ".join([*([f"in all: {found}"] if found else ()), *([f'it spells: "{spelt}"'] if spelt else ())])


def _letter_of_tag(character: str) -> str:
    return chr(ord(character) - 0xE0000) if "\U000e0020" <= character <= "\U000e007e" else ""


def find_hidden(text: str, *, one_line: bool = False) -> tuple[int, str] | None:
    """The place of the first hidden character of a text, and what it is."""
    if text.isascii() and text.isprintable():
        return None
    variants = 0
    for match in _SUSPECT.finditer(text):
        at, character = match.start(), match.group()
        if (what := _explain(text, at, one_line=one_line)) is not None:
            return at, what
        if _is_rare_variant(character):
            variants += 1
            if variants > _MOST_VARIANTS:
                return at, "more variation selectors than a text needs"
    return None


def reveal(text: str) -> str:
    r"""The text with `\u{…}` for each character that a person would not see, but for line ends and tabs."""
    text = _SUSPECT.sub(
        lambda match: match[0] if _is_line_end_or_tab(match.string, match.start()) else _escape(match), text
    )
    return _BLANKS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match[0]):x}}}"


# Where something stands: the place that it is in, and its own key or number there; written for what is found alone.
_Place = tuple[Any, str | int] | None


def _texts(value: Any) -> Iterator[tuple[str, _Place, bool]]:
    """Every text of a value with its place, in their order; whether it is a name."""
    left: list[tuple[Any, _Place, bool]] = [(value, None, False)]
    while left:
        item, place, is_name = left.pop()
        if isinstance(item, str):
            yield (
                item,
                place,
                is_name or (place is not None and place[0] is None and place[1] in {"uri", "uriTemplate"}),
            )
        elif isinstance(item, dict):
            for key, inner in reversed(cast("dict[str, Any]", item).items()):
                left += ((inner, (place, key), False), (key, (place, ""), True))
        elif isinstance(item, (list, tuple)):
            inside = cast("list[Any]", item)
            left += ((inside[at], (place, at), False) for at in range(len(inside) - 1, -1, -1))


def _write_place(place: _Place) -> str:
    steps: list[str] = []
    is_name = place is not None and place[1] == ""
    place = place[0] if is_name and place is not None else place
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    written = truncate("".join(reversed(steps)).removeprefix("."), _LONGEST_PLACE) or "it"
    return f"a name in {written}" if is_name else written


def _explain(text: str, at: int, *, one_line: bool) -> str | None:
    """What a suspect character is; `None` where it has a reason to be there."""
    character = text[at]
    if character < "\xa0":
        return None if not one_line and _is_line_end_or_tab(text, at) else "a control character"
    if character in _SEPARATORS:
        return "a line separator" if one_line else None
    has_reason, what = _judge(text, at, one_line=one_line)
    return None if has_reason else what


def _is_line_end_or_tab(text: str, at: int) -> bool:
    """A carriage return alone is none: in a terminal what follows stands in place of what came before."""
    return text[at] in _LINE and (text[at] != "\r" or text.startswith("\n", at + 1))


def _judge(text: str, at: int, *, one_line: bool) -> tuple[bool, str]:
    """Whether a character has a reason to be where it is, and what it is if not."""
    character, code = text[at], ord(text[at])
    if _is_selector(character):
        return _varies(text, at), "a variation selector that varies nothing"
    if 0xE0000 <= code <= 0xE0FFF:
        return _is_in_flag(text, at), "a tag character"
    if character in _MARKS or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
        return character in _MARKS and not one_line and _is_beside_rtl(text, at), "a direction control"
    if unicodedata.category(character) == "Co":
        return False, "a character of private use"
    return _is_needed(text, at), "a character without width"


def _is_needed(text: str, at: int) -> bool:
    """Whether a character without width does something for the script, or the emoji, that it stands in."""
    character = text[at]
    if character in {_ZWJ, _ZWNJ}:
        return _joins(text, at)
    if character == _ZWSP:
        return _is_between(text, at, _UNSPACED)
    if character == _BRAILLE_BLANK:
        return any(_is_in(text[near : near + 1], ((0x2801, 0x28FF),)) for near in (at - 1, at + 1) if near >= 0)
    if "\U00013430" <= character <= "\U0001345f":
        return _is_in(text[at - 1 : at], ((0x13000, 0x1345F),))
    if character == "\U00016fe4":
        return _is_in(text[at - 1 : at], ((0x18B00, 0x18CFF),))
    return "\u180b" <= character <= "\u180f" and _is_in(text[at - 1 : at], ((0x1800, 0x18AF),))


def _is_rare_variant(character: str) -> bool:
    """Whether it is a variation selector, and none of the two that emoji have."""
    return _is_selector(character) and character not in _EMOJI_SELECTORS


def _is_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _varies(text: str, at: int) -> bool:
    """Whether a variation selector follows something that has variants."""
    base, code = text[at - 1 : at], ord(text[at])
    if not base:
        return False
    category = unicodedata.category(base)
    if text[at] in _EMOJI_SELECTORS:
        if base in "#*0123456789":
            return text[at + 1 : at + 2] == _KEYCAP or code == 0xFE0E
        return category in {"Sk", "Sm"} or _is_pictograph(base)
    return category == "Lo" or (code <= 0xFE02 and category in {"Sm", "Po", "So"} and not base.isascii())


def _is_in_flag(text: str, at: int) -> bool:
    begin = text.rfind(_BLACK_FLAG, max(at - 6, 0), at)
    return begin >= 0 and text.startswith(_FLAGS, begin)


def _joins(text: str, at: int) -> bool:
    """Whether a joiner stands in an emoji, or in a script that needs it."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not before or _SUSPECT.match(after):
        return False
    if (
        text[at] == _ZWJ
        and _is_emoji(text, at - 1)
        and after
        and (_is_pictograph(after) or unicodedata.category(after) == "Sm")
    ):
        return True
    return _is_in(before, _JOINING) and unicodedata.category(before)[0] in "LM"


def _is_emoji(text: str, at: int) -> bool:
    character = text[at]
    if character == "\ufe0f":
        return at > 0 and _varies(text, at)
    return unicodedata.category(character) == "Sk" or _is_pictograph(character)


def _is_pictograph(character: str) -> bool:
    # Emoji that are newer than this Python have a place already.
    is_new = "\U0001f000" <= character <= "\U0001faff"
    return is_new or unicodedata.category(character) == "So" or character in _ODD_EMOJI


def _is_beside_rtl(text: str, at: int) -> bool:
    """Whether a direction mark stands at a word of a script that is written from right to left."""
    if _SUSPECT.match(text[at + 1 : at + 2]) and text[at + 1 : at + 2] not in _LINE:
        return False
    near = (each for each in text[max(at - 8, 0) : at + 9] if each not in _MARKS)
    return any(unicodedata.bidirectional(each) in {"R", "AL"} for each in near)


def _is_between(text: str, at: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return _is_in(text[at - 1 : at], ranges) and _is_in(text[at + 1 : at + 2], ranges)


def _is_in(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return character != "" and any(low <= ord(character) <= high for low, high in ranges)
