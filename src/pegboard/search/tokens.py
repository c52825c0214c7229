"""Text becomes terms: identifiers are taken apart, words folded and stemmed, scripts without spaces cut in pairs.

`createPullRequest`, `create_pull_request` and `create-pull-request` give the same terms: `creat`, `pull`, `request`,
and the whole, `createpullrequest`. The whole is what lets `github` find `GitHub`, whose parts are other words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias, cast

import Stemmer

from pegboard.normalization import is_normalized, normalize

# Beyond this, a text is a pasted document and its first pages say what it is about.
MAX_TEXT = 20_000
_MAX_WORD = 64
# Of how many parts a name can be that people write as one word: few say a longer one, but some copy it.
_MAX_PARTS, _MAX_PARTS_COPIED = 3, 6

# Words that carry grammar, and the politeness around a wish; nothing about any field of tools.
_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing dont down during each few for from further had has have having he help
    her here hers him his how i id if im in into is it its itself ive just let lets like me more most my myself
    need no nor not now of off on once only or other our ours out over own please same she should so some such
    than that the their them then there these they this those through to too under until up us very want was we
    were what whats when where which while who whom why will with would you your yours
    """.split()  # noqa: SIM905 (a hundred quoted words would not be read)
)

# Scripts written without spaces (or, as Hangul, with particles joined on): kana, ideographs, Hangul, Thai to Khmer.
_UNSPACED = "぀-ヿㇰ-ㇿ㐀-䶿一-鿿豈-﫿가-힯" + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff" + "\U00020000-\U0003ffff"
_IDENTIFIER = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)*")
# Where a letter and its accent make no letter of their own, the accent stands by itself within the word.
_WRITTEN = re.compile(r"[^\W_]+(?:['\u2019_\u0300-\u036f-]+[^\W_]+)*[\u0300-\u036f]*")
_PART = re.compile(rf"[{_UNSPACED}]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_ACCENT = re.compile("[\u0300-\u036f]+")
_stem = cast("Callable[[str], str]", cast("Any", Stemmer).Stemmer("english").stemWord)


# Where a word begins and ends in a text, and the terms that it is known by.
Span: TypeAlias = tuple[int, int, frozenset[str]]


@dataclass(slots=True)
class Terms:
    """The terms of a text: in their order, and besides them the wholes of identifiers and single characters."""

    sequence: list[str] = field(default_factory=list[str])
    aside: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Pieces:
    """The terms of one identifier or word."""

    sequence: tuple[str, ...]
    content: tuple[str, ...]  # the sequence without stop words
    aside: tuple[str, ...]
    # The same in another form, if there is one: joined to one word, or each character of an unspaced script by itself.
    other: tuple[str, ...]


def terms(text: str, *, stop_words: bool = False, most: int = MAX_TEXT) -> Terms:
    """The terms of a text, or of as much of it; with `stop_words` those of its every word."""
    found = Terms()
    for each in pieces(text[:most]):
        found.sequence += each.sequence if stop_words else each.content
        found.aside += each.aside
    return found


def pieces(text: str) -> Iterator[Pieces]:
    """The terms of each identifier or word of a text, every one of them."""
    return map(_pieces, _IDENTIFIER.findall(_fold(text)))


def words(text: str) -> list[str]:
    """The words of a text as they are spelt, in lower case, identifiers taken apart, without stop words."""
    found: list[str] = []
    for identifier in _IDENTIFIER.findall(_fold(text[:MAX_TEXT])):
        found += _words(identifier)
    return found


def terms_by_word(text: str) -> dict[str, str]:
    """The words of a text as they are spelt, in lower case, with the term of each; names both taken apart and whole.
    Without stop words, and without scripts that have no spaces, where nobody can tell a word."""
    found: dict[str, str] = {}
    for identifier in _IDENTIFIER.findall(_fold(text)):
        for word in _words(identifier):
            if word not in found and not _UNSPACED_RUN.search(word):
                found[word] = stem_word(word)
        if len(whole := _pieces(identifier).other) == 1:
            found["".join(_PART.findall(identifier))[:_MAX_WORD].lower()] = whole[0]
    return found


def spans(text: str, wanted: Set[str]) -> Iterator[Span]:
    """Where words of a text stand that are known by a wanted term, from its beginning, and the terms of each."""
    # What a wanted pair or single character of an unspaced script can begin with.
    first = "".join({term[0] for term in wanted if _UNSPACED_RUN.match(term)})
    may_begin = re.compile(f"[{first}]") if first else None
    for match in _WRITTEN.finditer(text):
        identifier, start = match.group(), match.start()
        if has_unspaced(identifier):
            found = _spans_of_unspaced(identifier, may_begin)
        # Most words of a text are not wanted, and what each is known by is remembered.
        elif len(identifier) <= _MAX_REMEMBERED and wanted.isdisjoint(_remembered_terms(identifier)):
            continue
        else:
            found = _spans(identifier)
        for begin, end, known in found:
            if not wanted.isdisjoint(known):
                yield start + begin, start + end, known


def _terms_of(identifier: str) -> frozenset[str]:
    """Every term that a word is known by, whole or in part."""
    return frozenset(term for _, _, known in _spans(identifier) for term in known)


def _spans(identifier: str) -> Iterator[Span]:
    whole = frozenset(term for each in pieces(identifier) for term in each.other)
    if _fold(identifier) != identifier:
        # Its parts stand elsewhere when accents are taken off.
        yield 0, len(identifier), whole | _part_terms(identifier)
        return
    yield 0, len(identifier), whole
    for part in _PART.finditer(identifier):
        yield part.start(), part.end(), _part_terms(part.group())


def _spans_of_unspaced(identifier: str, may_begin: re.Pattern[str] | None) -> Iterator[Span]:
    """The pairs and single characters that may be wanted, without looking at each of perhaps many thousands."""
    for part in _PART.finditer(identifier):
        run, start = part.group(), part.start()
        if not _UNSPACED_RUN.match(run):
            yield start, part.end(), _part_terms(run)
            continue
        for first in range(0, len(run), _WINDOW):
            # With the beginning of the next one, for the pair that stands in both.
            window = run[first : first + _WINDOW + 1]
            for at, end, known in _spans_of_window(window, may_begin):
                yield start + first + at, start + first + end, known


def _spans_of_window(window: str, may_begin: re.Pattern[str] | None) -> Iterator[Span]:
    # What is normalised is not changed by folding, as no character of these scripts has an accent.
    is_folded = is_normalized("NFKC", window)
    places = _places(window[:_WINDOW], may_begin) if is_folded else range(min(len(window), _WINDOW))
    for at in places:
        for length in (2, 1):
            piece = window[at : at + length]
            if len(piece) == length:
                yield at, at + length, frozenset((piece,)) if is_folded else _known_piece(piece)


def _places(run: str, may_begin: re.Pattern[str] | None) -> Iterator[int]:
    return (match.start() for match in may_begin.finditer(run)) if may_begin else iter(())


def _part_terms(part: str) -> frozenset[str]:
    return frozenset(term for each in pieces(part) for term in each.sequence)


# A window with a character that folding changes, as Thai texts have many, is looked at pair by pair.
_known_piece = lru_cache(maxsize=1 << 12)(_part_terms)


def _words(identifier: str) -> tuple[str, ...]:
    return _remembered_words(identifier) if _comes_again(identifier) else _words_of(identifier)


def _words_of(identifier: str) -> tuple[str, ...]:
    lower = (part[:_MAX_WORD].lower() for part in _PART.findall(identifier))
    return tuple(word for word in lower if word not in _STOP_WORDS)


def _fold(text: str) -> str:
    """Apostrophes closed, width and accents dropped: `what's` is `whats`, `Grüße` is `Grusse`."""
    if "'" in text or "\N{RIGHT SINGLE QUOTATION MARK}" in text:
        text = _APOSTROPHE.sub("", text)
    if text.isascii():
        return text
    # A lone surrogate can stand in JSON, and nowhere else.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return normalize("NFC", _ACCENT.sub("", normalize("NFKD", text))).replace("ß", "ss").replace("ẞ", "SS")


def _pieces(identifier: str) -> Pieces:
    return _remembered_pieces(identifier) if _comes_again(identifier) else _pieces_of(identifier)


def _pieces_of(identifier: str) -> Pieces:
    sequence: list[str] = []
    content: list[str] = []
    aside: list[str] = []
    other: list[str] = []
    parts = cast("list[str]", _PART.findall(identifier))
    for part in parts:
        if _UNSPACED_RUN.match(part):
            pairs = [first + second for first, second in pairwise(part)] or [part]
            sequence += pairs
            content += pairs
            aside += part if len(part) > 1 else ""
            other += part
            continue
        term = stem_word(part)
        sequence.append(term)
        other.append(term)
        if part.lower() not in _STOP_WORDS:
            content.append(term)
    whole = "".join(parts)
    if 1 < len(parts) <= _MAX_PARTS_COPIED and not _UNSPACED_RUN.search(whole):
        other = [stem_word(whole)]
        aside += other if len(parts) <= _MAX_PARTS else []
    return Pieces(tuple(sequence), tuple(content), tuple(aside), tuple(other) if other != sequence else ())


def _comes_again(identifier: str) -> bool:
    """Whether it is a word: almost every one comes again. What is longer than words are is somebody's pasted data, and
    a run of an unspaced script is half a sentence; these would fill the memory."""
    return len(identifier) <= _MAX_REMEMBERED and not has_unspaced(identifier)


def has_unspaced(identifier: str) -> bool:
    """Whether a part of it is of a script without spaces."""
    return not identifier.isascii() and _UNSPACED_RUN.search(identifier) is not None


_MAX_REMEMBERED = 64
# So much of an unspaced text is looked at pair by pair, if one of its characters asks for that.
_WINDOW = 64
_remembered_pieces = lru_cache(maxsize=1 << 16)(_pieces_of)
_remembered_words = lru_cache(maxsize=1 << 16)(_words_of)
_remembered_terms = lru_cache(maxsize=1 << 16)(_terms_of)


def stem_word(word: str) -> str:
    """A word as the index knows it."""
    word = word[:_MAX_WORD].lower()
    # The stemmer knows English.
    return _stem(word) if word.isascii() else word
