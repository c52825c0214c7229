"""How well a memory fits a query, from 0 to 1: what share of it is there, and how prominently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from pegboard.toolsets.memory.fulltext import Fields, Phrase
from pegboard.toolsets.memory.query import Query, Sought
from pegboard.toolsets.memory.words import BREAK

# What a word counts in key, summary and text, and how many words these usually have.
_PARTS = ((3.0, 6), (2.0, 12), (1.0, 120))
# How far a part's length tempers its words, how soon more of a word stops to count, and how many are counted.
_LENGTH, _SATURATION, _OFTEN = 0.4, 0.6, 8
# What is left for words that stand together as they do in the query.
_TOGETHER = 0.12


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a memory: how often each word that is sought is there, and what one of them counts."""

    text: str
    words: Mapping[str, int]
    worth: float

    @classmethod
    def of(cls, text: str, sought: frozenset[str], weight: float, usual: int) -> _Part:
        words, _, others = text.partition(f" {BREAK} ")
        counts = _counted(words, sought)
        length = words.count(" ") + 1
        # A word's other forms are there as often as it is, though the words around them stand there again.
        counts = {**_counted(others, sought), **counts} if others else counts
        return cls(f" {text} ", counts, weight / (1 - _LENGTH + _LENGTH * length / usual))

    def times(self, phrase: Phrase) -> int:
        """How often words are there, side by side."""
        if len(phrase) == 1:
            return self.words.get(phrase[0], 0)
        return self.text.count(_spaced(phrase)) if all(word in self.words for word in phrase) else 0


def _counted(text: str, sought: frozenset[str]) -> dict[str, int]:
    """How often each word is there that is asked for: that is a few of a hundred, and they need no Counter."""
    counts: dict[str, int] = {}
    for word in filter(sought.__contains__, text.split(" ")):
        counts[word] = counts.get(word, 0) + 1
    return counts


def relevance(query: Query, fields: Fields) -> float:
    """The share of a query that a memory answers."""
    texts = (fields.key, fields.summary, fields.text)
    parts = [_Part.of(text, query.words, *measure) for text, measure in zip(texts, _PARTS, strict=True)]
    total = sum(each.rarity for each in query.sought)
    if not total:
        return 0.0
    there = {word for part in parts for word in part.words}
    best = [_best(each, parts, there) for each in query.sought]
    share = sum(each.rarity * presence for each, (presence, _) in zip(query.sought, best, strict=True)) / total
    near = _togetherness([form for _, form in best], parts) if len(best) > 1 else share
    return min((1 - _TOGETHER) * share + _TOGETHER * near, 1.0)


def matched(query: Query, fields: Fields) -> list[set[str]]:
    """The words by which a memory is found that are in its text, its summary and its key."""
    forms = {form for each in query.sought for form in each.forms}
    texts = (f" {text} " for text in (fields.text, fields.summary, fields.key))
    return [{word for form in forms if _spaced(form) in text for word in form} for text in texts]


def _best(sought: Sought, parts: Sequence[_Part], there: Set[str]) -> tuple[float, Phrase]:
    """How prominently one thing is there, and in which form that counts most."""
    forms = ((form, share) for form, share in sought.forms.items() if form[0] in there)
    presences = ((share * _prominence(form, parts), form) for form, share in forms)
    return max(presences, default=(0.0, ()), key=lambda presence: presence[0])


def _prominence(phrase: Phrase, parts: Sequence[_Part]) -> float:
    often = sum(part.worth * min(times, _OFTEN) for part in parts if (times := part.times(phrase)))
    return often / (often + _SATURATION)


def _togetherness(forms: Sequence[Phrase], parts: Sequence[_Part]) -> float:
    """The share of neighbours in the query that are neighbours in the memory."""
    # Two parts of a name may be there as the one word that they make.
    pairs = [one if one == other else (*one, *other) if one and other else () for one, other in pairwise(forms)]
    return sum(any(_spaced(pair) in part.text for part in parts) for pair in pairs if pair) / len(pairs)


def _spaced(phrase: Phrase) -> str:
    return f" {' '.join(phrase)} "
