"""How well a memory fits a query, from 0 to 1: what share of it is there, and how prominently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pegboard.toolsets.memory.fulltext import Fields, Phrase
from pegboard.toolsets.memory.query import Query
from pegboard.toolsets.memory.words import BREAK

# What a word counts in key, summary and text, and how many words these usually have.
_PARTS = ((3.0, 6), (2.0, 12), (1.0, 120))
# How far a part's length tempers its words, how soon more of a word stops to count, and how many are counted.
_LENGTH, _SATURATION, _OFTEN = 0.4, 0.6, 8
# What is left for words that stand together as they do in the query.
_TOGETHER = 0.12
_BETWEEN = f" {BREAK} "


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of something that is looked for: as it stands among other words, and what it counts."""

    phrase: Phrase
    spaced: str
    share: float


class _Part(NamedTuple):
    """One part of a memory: its words, other forms of them, and what one of them counts."""

    words: str
    others: str
    worth: float

    @classmethod
    def of(cls, text: str, weight: float, usual: int) -> _Part:
        words, _, others = text.partition(_BETWEEN)
        length = words.count(" ") + 1
        return cls(f" {words} ", f" {others} " if others else "", weight / (1 - _LENGTH + _LENGTH * length / usual))


class Ranking:
    """A query, to compare memories by."""

    def __init__(self, query: Query) -> None:
        self._sought = [
            (each.rarity, [_Form(form, _pad(form), share) for form, share in each.forms.items()])
            for each in query.sought
        ]
        self._total = sum(each.rarity for each in query.sought)

    def relevance(self, fields: Fields) -> float:
        """The share of the query that a memory answers."""
        texts = (fields.key, fields.summary, fields.text)
        parts = [_Part.of(text, *measure) for text, measure in zip(texts, _PARTS, strict=True)]
        # Most forms are nowhere, which is seen at one glance; with two blanks between them no phrase reaches over.
        whole = f" {'  '.join(texts)} "
        share = 0.0
        best: list[Phrase] = []
        for rarity, forms in self._sought:
            presence, phrase = _best([form for form in forms if form.spaced in whole], parts)
            share += rarity * presence
            best.append(phrase)
        share /= self._total
        near = _togetherness(best, whole) if len(best) > 1 else share
        return min((1 - _TOGETHER) * share + _TOGETHER * near, 1.0)

    def matches(self, fields: Fields) -> list[list[Phrase]]:
        """The words and phrases by which a memory is found that are in its text, its summary and its key."""
        forms = [form for _, forms in self._sought for form in forms]
        texts = [f" {text} " for text in (fields.text, fields.summary, fields.key)]
        return [[form.phrase for form in forms if form.spaced in text] for text in texts]


def _best(forms: Sequence[_Form], parts: Sequence[_Part]) -> tuple[float, Phrase]:
    """How prominently one thing is there, and in which form that counts most."""
    most, phrase = 0.0, ()
    for form in forms:
        spaced = form.spaced
        often = 0.0
        for words, others, worth in parts:
            # What stands around other forms is there already.
            if times := words.count(spaced) or (others and others.count(spaced)):
                often += worth * min(times, _OFTEN)
        presence = form.share * often / (often + _SATURATION)
        if presence > most:
            most, phrase = presence, form.phrase
    return most, phrase


def _togetherness(forms: Sequence[Phrase], whole: str) -> float:
    """The share of neighbours in the query that are neighbours in the memory."""
    # Two parts of a name may be there as the one word that they make.
    pairs = [one if one == other else (*one, *other) if one and other else () for one, other in pairwise(forms)]
    return sum(_pad(pair) in whole for pair in pairs if pair) / len(pairs)


def _pad(phrase: Phrase) -> str:
    return f" {' '.join(phrase)} "
