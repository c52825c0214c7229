"""The words of memories: how texts are cut up for the full-text index, and what a query may mean by a word.

Both databases index the same words, cut here, so that both find the same. Words are folded and stemmed; scripts without
spaces become pairs of characters, so that any part of a run is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from pegboard.search.tokens import MAX_TEXT, spelt, terms

# What stands between the words of a text and those that are only another form of them: no phrase reaches over it.
BREAK = "¦"
# Words of these lengths are looked for when a query has one that nobody wrote.
_SHORTEST, _LONGEST = 4, 24
_LONG_ENOUGH_FOR_TWO = 8


def indexed(text: str) -> str:
    """A text as the index holds it: its words in order, then other forms of them."""
    found = terms(text, stop_words=True, most=len(text))
    return " ".join([*found.sequence, BREAK, *found.aside])


def phrase(text: str) -> tuple[str, ...]:
    """The words of a text in their order, as a phrase has to have them."""
    return tuple(terms(text, stop_words=True).sequence)


def sought(query: str) -> dict[str, str]:
    """The words that a question in plain words is about, each once, and how each is spelt there."""
    asked = terms(query)
    if not asked.sequence:
        asked = terms(query, stop_words=True)
    written = {term: word for word, term in spelt(query[:MAX_TEXT]).items()}
    return {term: written.get(term, term) for term in asked.sequence}


def distinct(*fields: str) -> set[str]:
    """The words of indexed texts."""
    return {word for text in fields for word in text.split(" ") if word and word != BREAK}


def can_be_misspelt(word: str) -> bool:
    """Whether a word is of the kind that people mistype in a way that can be guessed."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha()


def spellings(word: str) -> set[str]:
    """A word, and what is left of it without one of its letters."""
    return {word, *_without(word, 1)}


def misspellings(word: str) -> set[str]:
    """What a mistyped word may have in common with the spellings of the right one."""
    found = spellings(word)
    return found | set(_without(word, 2)) if len(word) >= _LONG_ENOUGH_FOR_TWO else found


def likely(word: str, candidates: Iterable[str]) -> list[tuple[str, float]]:
    """Which of these a mistyped word stands for, with how sure that is, the surest first."""
    most = 2 if len(word) >= _LONG_ENOUGH_FOR_TWO else 1
    found = ((candidate, distance(word, candidate)) for candidate in candidates)
    return sorted(
        ((candidate, 1 - 0.2 * steps) for candidate, steps in found if 0 < steps <= most),
        key=lambda pair: (-pair[1], pair[0]),
    )


def distance(first: str, second: str) -> int:
    """How many letters have to be added, dropped, changed or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, 1):
        last, before, row = before, row, [at]
        for place, other in enumerate(second, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != other))
            if at > 1 and place > 1 and letter == second[place - 2] and first[at - 2] == other:
                cost = min(cost, last[place - 2] + 1)
            row.append(cost)
    return row[-1]


def _without(word: str, letters: int) -> Iterator[str]:
    for gone in combinations(range(len(word)), letters):
        yield "".join(letter for at, letter in enumerate(word) if at not in gone)
