"""The words of a query, and the search for them: whatever their letters' case, and in time that grows with the text
alone, whatever the words are. A regular expression takes the product of both, and no other thread has its turn while it
is matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pegboard.result import invalid
from pegboard.text import quote_start

# Characters that are looked through at once: about a millisecond, for which no other thread has its turn.
PORTION = 100_000
_MOST_WORDS, _LONGEST_WORD = 20, 200
_SHOWN = 60
_PART = re.compile(r"""(?<!\S)"([^"]*)"(?!\S)|(?<!\S)'([^']*)'(?!\S)|(\S+)""")
# Small letters that have one capital letter in common, and so are the same but for case: each with what stands for it.
_TWINS = {
    "\u0131": "i",
    "\u017f": "s",
    "\u00b5": "\u03bc",
    "\u0345": "\u03b9",
    "\u1fbe": "\u03b9",
    "\u1fd3": "\u0390",
    "\u1fe3": "\u03b0",
    "\u03d0": "\u03b2",
    "\u03f5": "\u03b5",
    "\u03d1": "\u03b8",
    "\u03f0": "\u03ba",
    "\u03d6": "\u03c0",
    "\u03f1": "\u03c1",
    "\u03c2": "\u03c3",
    "\u03d5": "\u03c6",
    "\u1c80": "\u0432",
    "\u1c81": "\u0434",
    "\u1c82": "\u043e",
    "\u1c83": "\u0441",
    "\u1c84": "\u0442",
    "\u1c85": "\u0442",
    "\u1c86": "\u044a",
    "\u1c87": "\u0463",
    "\u1c88": "\ua64b",
    "\u1e9b": "\u1e61",
    "\ufb06": "\ufb05",
}


def split_words(query: str) -> list[str]:
    """The words of a query, folded; what has quotes around it counts as one."""
    parts = (next(filter(None, found.groups()), "") for found in _PART.finditer(query))
    words = [part for part in parts if part.strip()]
    if (long := next((word for word in words if len(word) > _LONGEST_WORD), None)) is not None:
        what = f'"{quote_start(long, _SHOWN)}" has {len(long):,}'
        raise invalid(f"query: a word, or what is in quotes, has at most {_LONGEST_WORD} characters, and {what}")
    words = list(dict.fromkeys(map(fold, words)))
    if not words or len(words) > _MOST_WORDS:
        raise invalid(f"query must have 1 to {_MOST_WORDS} words")
    return words


def fold(text: str) -> str:
    """A text in which letters that differ by case alone are the same. Each has the place that it had: nothing gets
    longer, as it does when `casefold` makes two letters of one."""
    if text.isascii():
        return text.lower()
    # The one letter that is two when it is small.
    folded = text.replace("\u0130", "i").lower()
    for letter, twin in _TWINS.items():
        folded = folded.replace(letter, twin)
    return folded


def count_words(words: Sequence[str], texts: Iterable[str]) -> int:
    """How many of the words stand in one of these texts, or another."""
    left = list(words)
    for text in texts:
        for portion in _portions(text):
            folded = fold(portion)
            left = [word for word in left if word not in folded]
            if not left:
                return len(words)
    return len(words) - len(left)


def _portions(text: str) -> Iterator[str]:
    """A text in portions, each with what a word at its end may go on with."""
    if len(text) <= PORTION:
        yield text
        return
    for start in range(0, len(text), PORTION):
        yield text[start : start + PORTION + _LONGEST_WORD]
