"""What toolsets take from callers: texts, numbers and words, each checked, with a clear refusal that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from pegboard.result import invalid
from pegboard.text import quote_start

_SHOWN = 100
W = TypeVar("W", bound=str)


def validate_text(text: str, parameter: str, most: int, hint: str = "") -> str:
    """A text that can be kept, or a clear refusal; the hint says what to do about one that is too long."""
    if len(text) > most:
        raise invalid(f"{parameter} has {len(text):,} characters, {most:,} is the most{hint}")
    if "\0" in text:
        raise invalid(f"{parameter} must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid(f"{parameter} is not valid Unicode: it contains half of a surrogate pair") from None
    return text


def validate_number(number: float, parameter: str, least: int, most: int) -> int:
    """A whole number within bounds, or a clear refusal. JSON tells no 10 from 10.0."""
    whole = int(number) if isinstance(number, int) or number.is_integer() else None
    if whole is None or isinstance(number, bool) or not least <= whole <= most:
        raise invalid(f"{parameter} must be a whole number between {least} and {most}, found {number}")
    return whole


def validate_choice(word: str, parameter: str, choices: Sequence[W]) -> W:
    """One of these words, or a clear refusal."""
    if word not in choices:
        raise invalid(f"{parameter} must be one of {', '.join(choices)}, found {quote(word)}")
    return cast("W", word)


def quote(text: str) -> str:
    """What somebody gave, as far as it is said back to them."""
    return repr(quote_start(text, _SHOWN))
