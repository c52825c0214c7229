"""The words of memories: how texts are cut up for the full-text index, and what a query may mean by a word.

Both databases index the same words, cut here, so that both find the same. Words are folded and stemmed; scripts without
spaces become pairs of characters, so that any part of a run is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

from pegboard.edit_distance import distance
from pegboard.search.tokens import MAX_TEXT, Pieces, has_unspaced, pieces, terms_by_word

# What stands between the words of a text and those that are only another form of them: no phrase reaches over it.
BREAK = "¦"
# Another form of a word is indexed with so many words before and after it, for phrases that have it.
_AROUND = 3
# What is longer is looked for by its beginning: for each place where a phrase may be, all of its words are compared.
_LONGEST_PHRASE = 32
# Words of these lengths are looked for when a query has one that nobody wrote.
_SHORTEST, _LONGEST = 4, 24
_LONG_ENOUGH_FOR_TWO = 8
# A mistyped word is recognised by its beginning, of this length, without one or two of its letters.
_RECOGNISED = 7


@dataclass(frozen=True, slots=True)
class Asked:
    """A word of a query: how it is spelt there, and the name that it is a part of, as one word."""

    written: str
    whole: str | None


def index_text(text: str) -> str:
    """A text as the index holds it: its words in order, then other forms of them where they have some."""
    found = list(pieces(text))
    sequence = chain.from_iterable(each.sequence for each in found)
    others = chain.from_iterable((BREAK, *_other(found[begin:end])) for begin, end in _surroundings(found))
    return " ".join(chain(sequence, others))


def phrases(text: str) -> list[tuple[str, ...]]:
    """The words of a text in their order, as a phrase has to have them: in one form, or in another."""
    found = list(islice(pieces(text[:MAX_TEXT]), _LONGEST_PHRASE))
    sequence = chain.from_iterable(each.sequence for each in found)
    forms = [sequence, _other(found)] if any(_is_ambiguous(each) for each in found) else [sequence]
    cut = (tuple(islice(form, _LONGEST_PHRASE)) for form in forms)
    return list(dict.fromkeys(form for form in cut if form))


def query_words(query: str) -> dict[str, Asked]:
    """The words that a question in plain words is about, each once."""
    query = query[:MAX_TEXT]
    found = list(pieces(query))
    of_content = any(each.content for each in found)
    written = {term: word for word, term in terms_by_word(query).items()}
    asked: dict[str, Asked] = {}
    for each in found:
        whole = each.other[0] if len(each.other) == 1 else None
        for term in each.content if of_content else each.sequence:
            asked.setdefault(term, Asked(written.get(term, term), whole))
    return asked


def distinct(*fields: str) -> set[str]:
    """The words of indexed texts."""
    return {word for text in fields for word in text.split(" ") if word and word != BREAK}


def can_be_spelt(term: str) -> bool:
    """Whether a word is kept as it is spelt; in scripts without spaces nobody can tell one."""
    return not has_unspaced(term)


def can_be_misspelt(word: str) -> bool:
    """Whether a word is of the kind that people mistype in a way that can be guessed."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha()


def spellings(word: str) -> set[str]:
    """What a word has in common with a mistyped one: its beginning, or what is left without a letter or two."""
    beginning = word[:_RECOGNISED]
    most = 2 if len(word) >= _LONG_ENOUGH_FOR_TWO else 1
    return {left for letters in range(most + 1) for left in _without(beginning, letters)}


def likely(word: str, candidates: Iterable[str]) -> list[tuple[str, float]]:
    """Which of these a mistyped word stands for, with how sure that is, the surest first."""
    most = 2 if len(word) >= _LONG_ENOUGH_FOR_TWO else 1
    near = (candidate for candidate in candidates if abs(len(candidate) - len(word)) <= most)
    found = ((candidate, distance(word, candidate)) for candidate in near)
    return sorted(
        ((candidate, 1 - 0.2 * steps) for candidate, steps in found if 0 < steps <= most),
        key=lambda pair: (-pair[1], pair[0]),
    )


def _other(found: Iterable[Pieces]) -> Iterator[str]:
    return chain.from_iterable(each.other or each.sequence for each in found)


def _is_ambiguous(each: Pieces) -> bool:
    """Whether a text may have it in another form: a name as one word, or a character within a run of them."""
    return len(each.other) == 1 or any(len(term) == 1 and not term.isascii() for term in each.sequence)


def _surroundings(found: Sequence[Pieces]) -> Iterator[tuple[int, int]]:
    """Where words stand that have another form, with those around them."""
    begin = end = 0
    for at in (at for at, each in enumerate(found) if each.other):
        if at - _AROUND > end:
            if end:
                yield begin, end
            begin = at - _AROUND
        end = at + 1 + _AROUND
    if end:
        yield begin, end


def _without(word: str, letters: int) -> Iterator[str]:
    for gone in combinations(range(len(word)), letters):
        yield "".join(letter for at, letter in enumerate(word) if at not in gone)
