"""What a search looks for: words or phrases, each in the forms it may have been written in."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pegboard.toolsets.memory.fulltext import CandidatePool, FullText, Phrase, Term, Wanted
from pegboard.toolsets.memory.words import Asked, can_be_misspelt, likely, phrases, query_words

Operator = Literal["AND", "OR"]
OPERATORS = ("AND", "OR")

_MOST_WORDS = 32
_MOST_FORMS = 16
# What a longer word counts that begins with the one that was asked for.
_BEGINNING = 0.6
_SHORTEST_BEGINNING = 3
# A word that is itself there is completed only from this length on: "use" does not mean "user".
_SHORTEST_COMPLETED = 4
# Ranking looks at each memory that has a word. With words that many have, it goes by the rarer ones.
_MOST_CANDIDATES = 1500
_KEYWORD = re.compile(r'(?:"[^"]*"|[^,])+')


@dataclass(frozen=True, slots=True)
class Sought:
    """One thing that is looked for: a phrase or word, its forms with what each counts, and how rare it is."""

    forms: Mapping[Phrase, float]
    rarity: float
    frequency: int


@dataclass(frozen=True, slots=True)
class Query:
    """Everything that is looked for."""

    sought: Sequence[Sought]
    operator: Operator = "OR"

    @property
    def groups(self) -> Wanted:
        """What a memory must have to be found."""
        if self.operator == "AND":
            return [list(each.forms) for each in self.sought]
        return [[form for each in self.sought for form in each.forms]]

    @property
    def total(self) -> int | None:
        """How many memories have it, where that is known: of a single word it is counted all the time."""
        forms = [form for each in self.sought for form in each.forms]
        return self.sought[0].frequency if len(self.sought) == 1 and len(forms) == len(forms[0]) == 1 else None

    @property
    def impossible(self) -> bool:
        """Whether no memory can have it."""
        missing = [not each.forms for each in self.sought]
        return all(missing) or (self.operator == "AND" and any(missing))

    @property
    def terms(self) -> list[Term]:
        """The same as things of some worth: the rarer, the more."""
        return [Term(list(each.forms), each.rarity) for each in self.sought if each.forms]

    def pools(self, size: int) -> list[CandidatePool]:
        """Where the best are to be looked for, one after the other until there are enough; in the last one are all.

        To weigh all memories that have a word which half of them have takes long, and tells little.
        """
        everything = (
            CandidatePool(all_of=self.groups) if self.operator == "AND" else CandidatePool(any_of=self.groups[0])
        )
        common = sorted((each for each in self.sought if each.forms), key=lambda each: each.frequency)
        if self.operator == "AND" or sum(each.frequency for each in common) <= _MOST_CANDIDATES:
            return [everything]
        few: list[Sought] = []
        while sum(each.frequency for each in [*few, common[0]]) <= _MOST_CANDIDATES:
            few.append(common.pop(0))
        return [_pool(few, common) if few else _together(common, size), everything]


def _pool(few: Sequence[Sought], common: Sequence[Sought]) -> CandidatePool:
    """What has one of the rarer words, or all of the others."""
    rare = [form for each in few for form in each.forms]
    return CandidatePool(rare, [list(each.forms) for each in common] if len(common) > 1 else ())


def _together(common: Sequence[Sought], size: int) -> CandidatePool:
    """Where every word is common, memories that have several of them, or have one where it says what they are."""
    expected = float(common[0].frequency)
    chosen = [list(common[0].forms)]
    for each in common[1:]:
        if expected <= _MOST_CANDIDATES:
            break
        expected *= each.frequency / max(size, 1)
        chosen.append(list(each.forms))
    return CandidatePool(all_of=chosen, titled=len(chosen) == 1)


def natural(text: str, index: FullText) -> Query:
    """A question in plain words: any of them, as it is written, longer, or mistyped."""
    asked = dict(islice(query_words(text).items(), _MOST_WORDS))
    known = index.frequencies([*asked, *(each.whole for each in asked.values() if each.whole)]).keys()
    forms = {word: _forms(word, each, index, known) for word, each in asked.items()}
    frequencies = index.frequencies(word for found in forms.values() for word in found)
    size = index.size
    return Query([_weigh({(form,): share for form, share in forms[word].items()}, frequencies, size) for word in asked])


def keywords(given: Sequence[str], operator: Operator, index: FullText) -> Query:
    """Keywords, each as it is; one of several words is a phrase."""
    asked = list(dict.fromkeys(tuple(found) for word in given if (found := phrases(word))))
    frequencies = index.frequencies(word for forms in asked for form in forms for word in form)
    size = index.size
    there = [[form for form in forms if all(word in frequencies for word in form)] for forms in asked]
    return Query([_weigh(dict.fromkeys(forms, 1.0), frequencies, size) for forms in there], operator)


def split(text: str) -> list[str]:
    """Keywords that stand in one text, parted by commas; what is in quotes stays together."""
    return [found for word in _KEYWORD.findall(text) if (found := word.replace('"', " ").strip())]


def _forms(word: str, asked: Asked, index: FullText, known: Collection[str]) -> dict[str, float]:
    """The words of the index that a word of a query may mean, each with what it counts."""
    written = asked.written
    forms = {form: 1.0 for form in (word, asked.whole) if form and form in known}
    is_known = bool(forms)
    if len(written) >= (_SHORTEST_COMPLETED if is_known else _SHORTEST_BEGINNING):
        for longer in index.beginning_with(written, _MOST_FORMS):
            forms.setdefault(longer, _BEGINNING)
    if not is_known and can_be_misspelt(written):
        terms = index.find_similar(written)
        for right, sureness in likely(written, terms)[:_MOST_FORMS]:
            forms[terms[right]] = max(forms.get(terms[right], 0.0), sureness)
    return forms


def _weigh(forms: Mapping[Phrase, float], frequencies: Mapping[str, int], size: int) -> Sought:
    """A phrase is at most as frequent as the rarest of its words."""
    frequency = sum(min(frequencies.get(word, 0) for word in form) for form in forms)
    return Sought(forms, math.log(1 + (size + 0.5) / (min(frequency, size) + 0.5)), frequency)
