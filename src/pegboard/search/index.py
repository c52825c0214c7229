"""ToolIndex: finds tools by what they do, ranked by TF-IDF."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from pegboard.search import document
from pegboard.search.document import Texts
from pegboard.search.phrases import END, Phrases
from pegboard.search.postings import Postings, Scores
from pegboard.search.tokens import Terms, terms
from pegboard.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pegboard.search.semantic import Meanings

# A word said twice is meant a little more, not twice as much; said often, it is no more than a habit.
REPETITION, OFTEN = 0.3, 4
# What a word counts that only resembles one in the index, or is written together or apart there.
RESEMBLANCE = 0.8
JOINED, PARTED = 0.5, 0.8
# Words beyond these, that the index does not know, are of a pasted document and not worth guessing at.
MOST_UNKNOWN = 32
# What words count that stand together in query and tool alike, and how many of the best tools are looked at for it.
PHRASE_WEIGHT = 0.2
PHRASE_CANDIDATES = 64
# What meaning counts beside words.
MEANING = 0.55
# How many hits a step of a search looks at.
_AT_ONCE = 1000


# Server and name: two servers may have a tool of the same name.
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    server: str
    digest: int  # of the texts: tells whether a tool changed
    terms: array[int]
    sequence: array[int]
    tempering: float


class ToolIndex:
    """A TF-IDF index that follows its tools: what comes or goes is entered or struck, the rest stays as it is.

    Every ranking is the one that an index built anew from the same tools would give. Not for use by several threads
    at once.
    """

    def __init__(self, tools: Iterable[object] = (), *, semantic: bool = False) -> None:
        self._vocabulary = Vocabulary()
        self._postings = Postings()
        self._slots: dict[_Key, int] = {}
        self._entries: list[_Entry | None] = []  # by slot
        self._unused: list[int] = []
        self._by_server: dict[str, dict[_Key, None]] = {}
        self._by_name: dict[str, dict[_Key, None]] = {}
        self._meanings = _meanings() if semantic else None
        self._put(texts for tool in tools if (texts := document.read(tool)) is not None)

    def __len__(self) -> int:
        """How many tools can be found."""
        return len(self._slots)

    def add(self, tool: object) -> None:
        """Make a tool findable, in place of one of that server with the same name. Without a name it is passed over."""
        texts = document.read(tool)
        if texts is not None:
            self._put([texts])

    def remove(self, name: str) -> None:
        """Forget the tools of that name; an unknown one is no error."""
        self._strike(list(self._by_name.get(name, ())))

    def replace(self, server: str, tools: Iterable[object]) -> None:
        """Make these the tools of a server, and forget its others. Only what changed is read anew."""
        for _ in self.replacing(server, tools):
            pass

    def replacing(self, server: str, tools: Iterable[object]) -> Iterator[None]:
        """The same in small steps. Until the last one is done, nothing may be sought."""
        wanted: dict[_Key, Texts] = {}
        for tool in tools:
            if (texts := document.read(tool, server)) is not None:
                wanted[_key(texts)] = texts
            yield
        yield from self._striking([key for key in self._by_server.get(server, ()) if key not in wanted])
        new: list[Texts] = []
        for texts in wanted.values():
            if not self._stands(texts):
                new.append(texts)
            yield
        yield from self._striking([_key(texts) for texts in new])
        for texts in new:
            self._enter(texts)
            yield

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """The best tools for a query, best first; equals by name. A query that says nothing finds nothing."""
        return self.find(query, limit)[0]

    def find(self, query: str, limit: int = 10, admits: Callable[[str], bool] | None = None) -> tuple[list[Hit], int]:
        """The best of the tools whose names are admitted, and how many of those fit at all."""
        steps = self.finding(query, limit, admits)
        while True:
            try:
                next(steps)
            except StopIteration as over:
                return over.value

    def finding(
        self, query: str, limit: int = 10, admits: Callable[[str], bool] | None = None
    ) -> Generator[None, None, tuple[list[Hit], int]]:
        """The same in small steps: as the tools are at the first one, whatever changes meanwhile."""
        if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a query is a text, not {type(query).__name__}")
        if not self._slots:
            return [], 0
        asked = terms(query)
        if not asked.sequence:
            asked = terms(query, stop_words=True)
        scores = self._scores(self._factors(asked) if self._is_known(asked) else {})
        phrases, size, near = self._phrases(asked), len(self._vocabulary.terms), self._nearness(query, len(scores))
        entries = cast("list[_Entry]", self._entries.copy())  # with gaps, which no score leads to
        best = yield from _ranking(scores, entries, PHRASE_CANDIDATES)
        _add_phrases(scores, best, phrases.score([entries[slot].sequence for slot in best], size), entries)
        if near is not None:
            scores = _with_meanings(scores, near)
        if admits is not None:
            yield from _refuse(scores, entries, admits)
        ranked = yield from _ranking(scores, entries, limit)
        return [Hit(entries[slot].name, float(scores[slot])) for slot in ranked], int(np.count_nonzero(scores > 0))

    def _put(self, tools: Iterable[Texts]) -> None:
        """Enter tools, striking first, all at once, those of the same name that say something else."""
        wanted = {_key(texts): texts for texts in tools}
        new = [texts for texts in wanted.values() if not self._stands(texts)]
        self._strike([_key(texts) for texts in new])
        for texts in new:
            self._enter(texts)

    def _stands(self, texts: Texts) -> bool:
        slot = self._slots.get(_key(texts))
        entry = None if slot is None else self._entries[slot]
        return entry is not None and entry.digest == hash(texts)

    def _enter(self, texts: Texts) -> None:
        weighed = document.weigh(texts)
        slot = self._unused.pop() if self._unused else len(self._entries)
        number = self._vocabulary.number
        numbers = array("i", [number(term) for term in weighed.weights])
        for term, weight in zip(numbers, weighed.weights.values(), strict=True):
            self._postings.add(term, slot, weight)
        sequence = array("i", [number(term) if term else END for term in weighed.sequence])
        entry = _Entry(texts.name, texts.server, hash(texts), numbers, sequence, weighed.tempering)
        if slot == len(self._entries):
            self._entries.append(entry)
        else:
            self._entries[slot] = entry
        if self._meanings:
            self._meanings.put(slot, texts)
        key = _key(texts)
        self._slots[key] = slot
        self._by_server.setdefault(texts.server, {})[key] = None
        self._by_name.setdefault(texts.name, {})[key] = None

    def _strike(self, keys: Iterable[_Key]) -> None:
        for _ in self._striking(keys):
            pass

    def _striking(self, keys: Iterable[_Key]) -> Iterator[None]:
        slots = [self._slots.pop(key) for key in keys if key in self._slots]
        if not slots:
            return
        gone = np.zeros(len(self._entries), dtype=np.bool_)
        gone[slots] = True
        touched: dict[int, None] = {}
        for slot in slots:
            entry = self._entry(slot)
            touched.update(dict.fromkeys(entry.terms))
            _drop(self._by_server, entry.server, (entry.server, entry.name))
            _drop(self._by_name, entry.name, (entry.server, entry.name))
            self._entries[slot] = None
            yield
        unused: list[int] = []
        for term in touched:
            if not self._postings.remove(term, gone):
                unused.append(term)
            yield
        yield from self._vocabulary.forgetting(unused)
        self._unused += slots
        if self._meanings:
            self._meanings.drop(slots)

    def _is_known(self, asked: Terms) -> bool:
        """Whether any word of a query is one that a tool has: what only resembles one here and there is noise."""
        numbers = self._vocabulary.numbers
        joined = (first + second for first, second in pairwise(asked.sequence))
        if any(term in numbers for term in chain(asked.sequence, asked.aside, joined)):
            return True
        return any(map(self._vocabulary.knows, asked.sequence[:MOST_UNKNOWN]))

    def _factors(self, asked: Terms) -> dict[int, float]:
        """What each term of the index counts for a query: more the rarer it is, and the more often it is said."""
        factors: dict[int, float] = {}
        for term, share in self._expand_query(asked):
            number = self._vocabulary.numbers.get(term)
            if number is not None:
                factors[number] = max(factors.get(number, 0.0), share * self._rarity(number))
        return factors

    def _expand_query(self, asked: Terms) -> Iterator[tuple[str, float]]:
        """The terms that a query may mean, and how surely."""
        unknown = 0
        for word, times in Counter(asked.sequence).items():
            said = min(times, OFTEN) ** REPETITION
            if word in self._vocabulary.numbers:
                yield word, said
                continue
            unknown += 1
            if unknown > MOST_UNKNOWN:
                continue
            yield from ((term, said * RESEMBLANCE * alikeness) for term, alikeness in self._vocabulary.alike(word))
            yield from ((term, said * PARTED) for term in self._vocabulary.compounds(word))
        yield from ((word, 1.0) for word in asked.aside)
        yield from ((first + second, JOINED) for first, second in pairwise(asked.sequence))

    def _rarity(self, term: int) -> float:
        """The inverse document frequency of a term."""
        frequency = self._postings.frequency(term)
        return math.log(1 + (len(self._slots) - frequency + 0.5) / (frequency + 0.5))

    def _scores(self, factors: dict[int, float]) -> Scores:
        scores = np.zeros(len(self._entries), dtype=np.float32)
        for term, factor in factors.items():
            self._postings.score(scores, term, factor)
        return scores

    def _phrases(self, asked: Terms) -> Phrases:
        numbers = self._vocabulary.numbers
        sequence = [numbers[word] for word in asked.sequence if word in numbers]
        return Phrases(sequence, {number: self._rarity(number) for number in set(sequence)})

    def _nearness(self, query: str, size: int) -> Scores | None:
        """How near each tool is to what a query means, if anything is known of that."""
        return self._meanings.likeness(query, size) if self._meanings and self._meanings.knows(query) else None

    def _entry(self, slot: int) -> _Entry:
        entry = self._entries[slot]
        assert entry is not None
        return entry


def _ranking(scores: Scores, entries: list[_Entry], most: int) -> Generator[None, None, list[int]]:
    """The slots of the best tools in order, as many as asked for."""
    if most <= 0:
        return []
    slots = np.flatnonzero(scores > 0)
    found = scores[slots]
    if most < len(found):
        # Which of those that equal the last one are in is a matter of names.
        least = np.partition(found, -most)[-most]
        better, equal = slots[found > least].tolist(), slots[found == least].tolist()
        chosen = [*better, *(yield from _first_by_name(equal, entries, most - len(better)))]
    else:
        chosen = slots.tolist()
    named = ((-float(scores[slot]), entries[slot], slot) for slot in chosen)
    ranked = [(score, entry.name, entry.server, slot) for score, entry, slot in named]
    return [slot for *_, slot in sorted(ranked)]


def _first_by_name(slots: list[int], entries: list[_Entry], most: int) -> Generator[None, None, list[int]]:
    if len(slots) <= most:
        return slots
    first: list[tuple[str, str, int]] = []
    for start in range(0, len(slots), _AT_ONCE):
        some = slots[start : start + _AT_ONCE]
        first = nsmallest(most, chain(first, ((entries[slot].name, entries[slot].server, slot) for slot in some)))
        yield
    return [slot for *_, slot in first]


def _refuse(scores: Scores, entries: list[_Entry], admits: Callable[[str], bool]) -> Iterator[None]:
    """Take the score of every tool whose name is not admitted."""
    slots = np.flatnonzero(scores > 0).tolist()
    for start in range(0, len(slots), _AT_ONCE):
        scores[[slot for slot in slots[start : start + _AT_ONCE] if not admits(entries[slot].name)]] = 0
        yield


def _add_phrases(scores: Scores, best: list[int], added: NDArray[np.float64], entries: list[_Entry]) -> None:
    """Raise the best by what phrases add; none of the others could overtake those by it."""
    scores[best] += (PHRASE_WEIGHT * added * [entries[slot].tempering for slot in best]).astype(np.float32)


def _with_meanings(scores: Scores, near: Scores) -> Scores:
    """Words and meanings, each on a scale from the worst to the best tool, in one score."""
    words = scores / (scores.max() or np.float32(1))
    return np.asarray(near * MEANING + words * (1 - MEANING), dtype=np.float32)


def _key(texts: Texts) -> _Key:
    return texts.server, texts.name


def _drop(held: dict[str, dict[_Key, None]], under: str, key: _Key) -> None:
    del held[under][key]
    if not held[under]:
        del held[under]


def _meanings() -> Meanings | None:
    from pegboard.search.semantic import Meanings, model

    known = model()
    return None if known is None else Meanings(known)
