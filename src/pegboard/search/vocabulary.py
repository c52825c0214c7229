"""The terms of an index: a number for each, and which of them a word may mean that is none of them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

import numpy as np

from pegboard.edit_distance import distance_to_beginning
from pegboard.lru_dict import LruDict
from pegboard.search.tokens import stem_word

_ALIKE = 0.5
_MOST_ALIKE = 3
_SHORTEST_MISSPELT = 4
_SHORTEST_PART = 3
# From this length on, people get two letters wrong.
_LONG_ENOUGH_FOR_TWO = 7
# How many letters a part of another word has, and two forms of one word have in common, at least.
_SHORTEST_IN_WORD, _SHORTEST_STEM, _STEM = 4, 5, 0.6
# How many of the most alike are looked at to tell whether one of them was meant.
_MOST_LIKELY = 16
_MOST_REMEMBERED = 4096


class Vocabulary:
    """Terms and their numbers. A term that no tool has any more is forgotten, and its number used again."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.terms: list[str] = []
        self._unused: list[int] = []
        self._sizes = array("i")  # of each term, how many pieces it has
        self._by_piece: dict[str, array[int]] = {}
        self._alike = LruDict[str, list[tuple[str, float]]](_MOST_REMEMBERED)

    def number(self, term: str) -> int:
        """The number of a term, a new one if need be."""
        known = self.numbers.get(term)
        return self._learn(term) if known is None else known

    def forget(self, numbers: list[int]) -> None:
        """Take out terms that are in no tool, all at once: each list of theirs is gone through once."""
        for _ in self.forgetting(numbers):
            pass

    def forgetting(self, numbers: list[int]) -> Iterator[None]:
        """The same in small steps."""
        if not numbers:
            return
        gone = np.zeros(len(self.terms), dtype=np.bool_)
        gone[numbers] = True
        touched: set[str] = set()
        for number in numbers:
            term = self.terms[number]
            del self.numbers[term]
            touched |= _pieces(term)
            yield
        for piece in touched:
            known = np.asarray(self._by_piece[piece])
            self._by_piece[piece] = array("i", known[~gone[known]].tobytes())
            yield
        self._unused += numbers
        self._alike.clear()

    def compounds(self, word: str) -> list[str]:
        """Known terms that an unknown word is made of: `webpage` of `web` and `page`."""
        ends = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
        parted = ((stem_word(word[:end]), stem_word(word[end:])) for end in ends)
        return [part for parts in parted if all(part in self.numbers for part in parts) for part in parts]

    def alike(self, word: str) -> list[tuple[str, float]]:
        """Known terms that an unknown word resembles, with how much (up to 1), the most alike first."""
        return self._resembling(word)[:_MOST_ALIKE]

    def knows(self, word: str) -> bool:
        """Whether a word is a known term, a compound or form of one, or one misspelt; to resemble one is less."""
        if word in self.numbers or self.compounds(word):
            return True
        return any(_is_misspelling(word, term) or _is_form(word, term) for term, _ in self._resembling(word))

    def _resembling(self, word: str) -> list[tuple[str, float]]:
        if len(word) < _SHORTEST_MISSPELT or word.isdigit():
            return []
        found = self._alike.get(word)
        if found is None:
            found = self._alike[word] = self._look_for(word)
        return found

    def _learn(self, term: str) -> int:
        self._alike.clear()
        pieces = _pieces(term)
        if self._unused:
            number = self._unused.pop()
            self.terms[number] = term
            self._sizes[number] = len(pieces)
        else:
            number = len(self.terms)
            self.terms.append(term)
            self._sizes.append(len(pieces))
        self.numbers[term] = number
        for piece in pieces:
            self._by_piece.setdefault(piece, array("i")).append(number)
        return number

    def _look_for(self, word: str) -> list[tuple[str, float]]:
        pieces = _pieces(word)
        lists = [self._by_piece[piece] for piece in pieces if self._by_piece.get(piece)]
        if not lists:
            return []
        shared = np.bincount(np.concatenate(lists), minlength=len(self.terms))
        # Dice's coefficient: the share of pieces that two words have in common.
        alikeness = 2 * shared / (np.asarray(self._sizes) + len(pieces))
        good = np.flatnonzero(alikeness >= _ALIKE)
        ranked = sorted((-float(alikeness[number]), self.terms[number]) for number in good)
        return [(term, -negative) for negative, term in ranked[:_MOST_LIKELY]]


def _pieces(term: str) -> set[str]:
    """The pairs of letters in a term that are neighbours, or have one letter between; the ends count as letters.

    Two letters swapped, or one too many, leave most of these as they are; of trigrams they would break too many.
    """
    if term.isdigit():
        return set()
    marked = f"^{term}$"
    return {marked[at] + marked[at + apart] for apart in (1, 2) for at in range(len(marked) - apart)}


def _is_misspelling(word: str, term: str) -> bool:
    most = 2 if max(len(word), len(term)) >= _LONG_ENOUGH_FOR_TWO else 1
    return len(term) >= _SHORTEST_MISSPELT and distance_to_beginning(word, term) <= most


def _is_form(word: str, term: str) -> bool:
    """Whether one word is a part of the other, or both begin as forms of one word do that the stemmer leaves apart."""
    shorter, longer = sorted((word, term), key=len)
    stem = max(_SHORTEST_STEM, math.ceil(_STEM * len(longer)))
    return (len(shorter) >= _SHORTEST_IN_WORD and shorter in longer) or word[:stem] == term[:stem]
