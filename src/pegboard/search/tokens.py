"""Text becomes terms: identifiers are taken apart, words folded and stemmed, scripts without spaces cut in pairs.

`createPullRequest`, `create_pull_request` and `create-pull-request` give the same terms: `creat`, `pull`, `request`,
and the whole, `createpullrequest`. The whole is what lets `github` find `GitHub`, whose parts are other words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import Stemmer

# Beyond this, a text is a pasted document and its first pages say what it is about.
MAX_TEXT = 20_000
_MAX_WORD = 64
# Of how many parts a name can be that people write as one word.
_MAX_PARTS = 3

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
_WRITTEN = re.compile(r"[^\W_]+(?:['\u2019_-]+[^\W_]+)*")
_PART = re.compile(rf"[{_UNSPACED}]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_ACCENT = re.compile("[\u0300-\u036f]")
_stem = cast("Callable[[str], str]", cast("Any", Stemmer).Stemmer("english").stemWord)


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
    return map(_pieces, _IDENTIFIER.findall(_folded(text)))


def words(text: str) -> list[str]:
    """The words of a text as they are spelt, in lower case, identifiers taken apart, without stop words."""
    found: list[str] = []
    for identifier in _IDENTIFIER.findall(_folded(text[:MAX_TEXT])):
        found += _words(identifier)
    return found


def spelt(text: str) -> dict[str, str]:
    """The words of a text as they are spelt, in lower case, with the term of each; names both taken apart and whole.
    Without stop words, and without scripts that have no spaces, where nobody can tell a word."""
    found: dict[str, str] = {}
    for identifier in _IDENTIFIER.findall(_folded(text)):
        for word in _words(identifier):
            if word not in found and not _UNSPACED_RUN.search(word):
                found[word] = stemmed(word)
        if len(whole := _pieces(identifier).other) == 1:
            found["".join(_PART.findall(identifier))[:_MAX_WORD].lower()] = whole[0]
    return found


def spans(text: str, wanted: Set[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Where words of a text stand, from its beginning, and the terms that each is known by. Those that are known by
    none of the wanted may be left out."""
    for match in _WRITTEN.finditer(text):
        identifier = match.group()
        # Most words of a text are not wanted, and what each is known by is remembered.
        if len(identifier) <= _MAX_REMEMBERED and wanted.isdisjoint(_remembered_terms(identifier)):
            continue
        start = match.start()
        for begin, end, known in _spans(identifier):
            yield start + begin, start + end, known


def _terms_of(identifier: str) -> frozenset[str]:
    """Every term that a word is known by, whole or in part."""
    return frozenset(term for _, _, known in _spans(identifier) for term in known)


def _spans(identifier: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    found: list[tuple[int, int, frozenset[str]]] = []
    if not _UNSPACED_RUN.search(identifier):
        folded = _folded(identifier)
        known = _pieces(folded)
        whole = frozenset(known.aside)
        if folded == identifier:
            found = [(part.start(), part.end(), _known(part.group())) for part in _PART.finditer(identifier)]
        else:
            # Its parts stand elsewhere when accents are taken off.
            whole |= frozenset(known.sequence)
        return ((0, len(identifier), whole), *found)
    for part in _PART.finditer(identifier):
        if not _UNSPACED_RUN.match(part.group()):
            found.append((part.start(), part.end(), _known(part.group())))
            continue
        for at in range(part.start(), part.end()):
            if at + 1 < part.end():
                found.append((at, at + 2, _known(identifier[at : at + 2])))
            found.append((at, at + 1, _known(identifier[at])))
    return tuple(found)


def _known(part: str) -> frozenset[str]:
    return frozenset(_pieces(_folded(part)).sequence)


def _words(identifier: str) -> tuple[str, ...]:
    return _remembered_words(identifier) if len(identifier) <= _MAX_REMEMBERED else _words_of(identifier)


def _words_of(identifier: str) -> tuple[str, ...]:
    lower = (part[:_MAX_WORD].lower() for part in _PART.findall(identifier))
    return tuple(word for word in lower if word not in _STOP_WORDS)


def _folded(text: str) -> str:
    """Apostrophes closed, width and accents dropped: `what's` is `whats`, `Grüße` is `Grusse`."""
    if "'" in text or "\N{RIGHT SINGLE QUOTATION MARK}" in text:
        text = _APOSTROPHE.sub("", text)
    if text.isascii():
        return text
    # A lone surrogate can stand in JSON, and nowhere else.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text))).replace("ß", "ss")


def _pieces(identifier: str) -> Pieces:
    return _remembered_pieces(identifier) if len(identifier) <= _MAX_REMEMBERED else _pieces_of(identifier)


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
        term = stemmed(part)
        sequence.append(term)
        other.append(term)
        if part.lower() not in _STOP_WORDS:
            content.append(term)
    whole = "".join(parts)
    if 1 < len(parts) <= _MAX_PARTS and not _UNSPACED_RUN.search(whole):
        aside.append(stemmed(whole))
        other = [stemmed(whole)]
    return Pieces(tuple(sequence), tuple(content), tuple(aside), tuple(other) if other != sequence else ())


# Almost every word comes again; what is longer than words are is somebody's pasted data, and would fill the memory.
_MAX_REMEMBERED = 64
_remembered_pieces = lru_cache(maxsize=1 << 16)(_pieces_of)
_remembered_words = lru_cache(maxsize=1 << 16)(_words_of)
_remembered_terms = lru_cache(maxsize=1 << 16)(_terms_of)


def stemmed(word: str) -> str:
    """A word as the index knows it."""
    word = word[:_MAX_WORD].lower()
    # The stemmer knows English.
    return _stem(word) if word.isascii() else word
