"""Unicode normalization (UAX #15) of what others wrote, in time that grows with its length and no faster.

Python puts a run of combining marks into order by insertion, which takes quadratic time: 40 KB of marks hold everybody
for a second, 4 MB for hours. So a long run is parted first as in Stream-Safe Text Format, the way the standard has it:
no letter of any script has more marks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import takewhile
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

# COMBINING GRAPHEME JOINER: it is not seen, and no mark is moved across it.
_JOINER = "\N{COMBINING GRAPHEME JOINER}"
_MOST_MARKS = 30
# What may have more marks: one character is two of them at most, and the letter before ends with three at most. For
# Python a mark is no letter or digit, save the two of halfwidth katakana.
_RUN = re.compile(r"(?<![\W\uff9e\uff9f])[\W\uff9e\uff9f]{14,}")
# Python works on so many characters at a time while no other thread does anything.
_SLICE = 8_192
# How far from there a slice ends at most: a letter with all of its marks is shorter.
_NEAR = 64
# One character becomes up to 4 in NFC and NFD, and up to 18 in the others.
_MOST_GROWTH, _ANY_GROWTH = 4, 1_000


def normalize(form: Form, text: str) -> str:
    """The text in a normalization form. Where more than 30 combining marks stand together, a joiner parts them; and in
    NFKC and NFKD a text that becomes more than four times as long ends there."""
    if text.isascii():
        return text
    text = _RUN.sub(_stream_safe, text)
    most = _MOST_GROWTH * len(text) + _ANY_GROWTH
    slices: list[str] = []
    start = length = 0
    while start < len(text) and length < most:
        end = _boundary(form, text, start + _SLICE)
        slices.append(unicodedata.normalize(form, text[start:end]))
        length += len(slices[-1])
        start = end
    return "".join(slices)[:most]


def is_normalized(form: Form, text: str) -> bool:
    """Whether a text is in a normalization form: linear in Python, which sorts nothing that is not in order."""
    return unicodedata.is_normalized(form, text)


def _stream_safe(run: re.Match[str]) -> str:
    """A run of characters with a joiner wherever more than 30 marks would stand together."""
    if not any(_marks(character)[1] for character in set(run.group())):
        return run.group()
    safe: list[str] = []
    together, _ = _marks(run.string[run.start() - 1]) if run.start() else (0, False)
    for character in run.group():
        number, is_mark = _marks(character)
        together = together + number if is_mark else number
        if together > _MOST_MARKS:
            safe.append(_JOINER)
            together = number
        safe.append(character)
    return "".join(safe)


@lru_cache(maxsize=1 << 12)
def _marks(character: str) -> tuple[int, bool]:
    """How many combining marks a character ends with when it is decomposed, and whether it is nothing else."""
    decomposed = unicodedata.normalize("NFKD", character)
    marks = sum(1 for _ in takewhile(unicodedata.combining, reversed(decomposed)))
    return marks, marks == len(decomposed)


def _boundary(form: Form, text: str, end: int) -> int:
    """Where a slice of a text ends, here or a little before, so that nothing across it becomes one."""
    if end >= len(text):
        return len(text)
    return next((at for at in range(end, end - _NEAR, -1) if _begins(form, text, at)), end)


def _begins(form: Form, text: str, at: int) -> bool:
    """Whether something begins here: it is no mark, and does not become one with what stands before it."""
    if unicodedata.combining(unicodedata.normalize("NFKD", text[at])[0]):
        return False
    before, here = text[at - _NEAR : at], text[at]
    apart = unicodedata.normalize(form, before) + unicodedata.normalize(form, here)
    return unicodedata.normalize(form, before + here) == apart
