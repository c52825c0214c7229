"""Real-looking memories, as many as wanted, the same on every run; and queries made from them.

Words follow Zipf's law, as in any language: a few are everywhere, most are rare. Content words are made of syllables,
function words are English.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from pegboard.toolsets.memory.memory import Link

_FUNCTION_WORDS = (
    "the of and to a in is that it for was on are as with be by at this have from or had not but what all were when we"
    " there can an your which their if will each about how up out them then she many some so these would other into has"
    " more her two like him see time could no make than been its who now did get come made after back only me our under"
).split()
_KINDS = "decision constrained bug design assumption experiment".split()
_ONSETS = "b br c ch d dr f fl g gr h j k l m n p pl pr r s st t tr v w".split()
_VOWELS = "a e i o u ai ea io ou".split()
_CODAS = ("", "", "", "l", "n", "r", "s", "t", "nd")
# The kinds of queries.
KINDS = ("1 word", "3 words", "6 words", "3 scattered", "rare word", "typo")
_BETWEEN = re.compile(r"[:.\-]")
_VOCABULARY = 150_000
# Of all words of a text; about as many as in English prose.
_FUNCTION_SHARE = 0.42


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wrote down."""

    key: str
    summary: str
    lines: tuple[str, ...]
    links: tuple[Link, ...]

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the memory it was made from."""

    kind: str
    query: str
    key: str


def notes(count: int, seed: int = 7) -> list[Note]:
    """Memories of eighty words on average."""
    words = _words(count, np.random.default_rng(seed))
    draw = random.Random(seed)
    found: list[Note] = []
    for number in range(count):
        title = [next(words) for _ in range(3)]
        key = f"project{number % 7}:{title[0]}:{draw.choice(_KINDS)}:{title[1]}-{title[2]}-{number}"
        lines = tuple(_sentence(words, draw) for _ in range(draw.randint(4, 12)))
        targets = {found[draw.randrange(number)].key for _ in range(draw.randint(0, 3))} if number else set[str]()
        links = tuple(Link(target, draw.choice(_KINDS), weight=draw.randint(1, 10) / 10) for target in sorted(targets))
        found.append(Note(key, _sentence(words, draw), lines, links))
    return found


def questions(given: Sequence[Note], each: int, seed: int = 11) -> list[Question]:
    """So many of every kind: words as they stand in a text, scattered ones, rare ones, and some with a slip."""
    draw = random.Random(seed)
    rare = _rare(given)
    found: list[Question] = []
    for _ in range(each):
        for kind, number in (("1 word", 1), ("3 words", 3), ("6 words", 6)):
            note = draw.choice(given)
            found.append(Question(kind, " ".join(_run(note, number, draw)), note.key))
        note = draw.choice(given)
        found.append(Question("3 scattered", " ".join(draw.sample(_content(note), 3)), note.key))
        note, word = draw.choice(rare)
        found.append(Question("rare word", word, note.key))
        note, word = draw.choice(rare)
        found.append(Question("typo", _slip(word, draw), note.key))
    return found


def words_of(note: Note) -> set[str]:
    """Every word that it has anywhere."""
    return set(_BETWEEN.sub(" ", f"{note.key} {note.summary} {note.text}".lower()).split())


def content(query: str) -> set[str]:
    """The words of a query that mean something."""
    return set(query.split()).difference(_FUNCTION_WORDS)


def _words(count: int, draw: np.random.Generator) -> Iterator[str]:
    """Words without end, drawn a block at a time."""
    vocabulary = _vocabulary()
    content, function = _cumulative(len(vocabulary)), _cumulative(len(_FUNCTION_WORDS))
    while True:
        block = min(count, 1000) * 100
        is_function = draw.random(block) < _FUNCTION_SHARE
        places = np.searchsorted(content, draw.random(block))
        others = np.searchsorted(function, draw.random(block))
        for functional, place, other in zip(is_function.tolist(), places.tolist(), others.tolist(), strict=True):
            yield _FUNCTION_WORDS[other] if functional else vocabulary[place]


def _cumulative(size: int) -> np.ndarray:
    weights = 1 / (np.arange(size) + 2.7)
    return np.cumsum(weights) / weights.sum()


def _vocabulary() -> list[str]:
    """Words that can be spoken, the shorter ones more frequent, as in life."""
    draw = random.Random(3)
    syllables = ["".join(parts) for parts in product(_ONSETS, _VOWELS, _CODAS)]
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        number = 2 if len(words) < 4000 else draw.choice((2, 3, 3, 4))
        words["".join(draw.choices(syllables, k=number))] = None
    return list(words)


def _sentence(words: Iterator[str], draw: random.Random) -> str:
    return " ".join(next(words) for _ in range(draw.randint(6, 14))).capitalize() + "."


def _content(note: Note) -> list[str]:
    """Its words that mean something, each once."""
    words = note.text.lower().replace(".", "").split()
    return [word for word in dict.fromkeys(words) if word not in _FUNCTION_WORDS]


def _run(note: Note, number: int, draw: random.Random) -> list[str]:
    """Words that stand side by side in one line, with one among them that means something."""
    runs = [
        words[at : at + number]
        for line in note.lines
        for words in [line.lower().rstrip(".").split()]
        for at in range(len(words) - number + 1)
        if not all(word in _FUNCTION_WORDS for word in words[at : at + number])
    ]
    return draw.choice(runs)


def _rare(given: Sequence[Note]) -> list[tuple[Note, str]]:
    """Words that one memory alone has, and that are long enough to be mistyped."""
    holders: dict[str, Note | None] = {}
    for note in given:
        for word in sorted(words_of(note)):
            holders[word] = None if word in holders else note
    return [(note, word) for word, note in holders.items() if note and word.isalpha() and len(word) >= 7]


def _slip(word: str, draw: random.Random) -> str:
    at = draw.randrange(1, len(word) - 2)
    return draw.choice((word[:at] + word[at + 1 :], word[:at] + word[at + 1] + word[at] + word[at + 2 :]))
