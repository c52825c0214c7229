"""Which part of a text is shown, and what is marked in it."""

from __future__ import annotations

from collections.abc import Iterator, Set

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.search import excerpt, tokens
from pegboard.search.excerpt import highlight
from pegboard.search.tokens import Span, pieces, terms

# Latin with accents that compose and one that does not, kana with a mark that stands by itself, a digraph and a Thai
# vowel that folding takes apart, an ideograph that folding replaces, Hangul, a character beyond the first plane.
LETTERS = "abBéx\u0302'_-3 。,\n車火票はがか\u3099ヿ\u0e19\u0e33\uf900韓한𠀀ßẞ"
texts = st.text(st.sampled_from(LETTERS), max_size=60)


def known(part: str) -> frozenset[str]:
    """The terms of a text by itself."""
    return frozenset(terms(part, stop_words=True).sequence)


def plain_spans(text: str, wanted: Set[str]) -> Iterator[Span]:
    """What `spans` stands for, done plainly: every word, part, pair and character is folded and looked at by itself."""
    for match in tokens._WRITTEN.finditer(text):
        word, start = match.group(), match.start()
        found: list[Span] = []
        if not tokens._UNSPACED_RUN.search(word):
            whole = frozenset(term for each in pieces(word) for term in each.other)
            changed = tokens._fold(word) != word
            found.append((0, len(word), whole | known(word) if changed else whole))
            parts = [] if changed else tokens._PART.finditer(word)
            found += [(part.start(), part.end(), known(part.group())) for part in parts]
        else:
            for part in tokens._PART.finditer(word):
                if not tokens._UNSPACED_RUN.match(part.group()):
                    found.append((part.start(), part.end(), known(part.group())))
                    continue
                for at in range(part.start(), part.end()):
                    found += [
                        (at, at + size, known(word[at : at + size])) for size in (2, 1) if at + size <= part.end()
                    ]
        for begin, end, each in found:
            if each & wanted:
                yield start + begin, start + end, each


@settings(max_examples=400, deadline=None)
@given(text=texts, query=texts)
@example(text="本をPDFで保存する\u0e19\u0e33火車票", query="火車 \u0e19\u0e33")
@example(text="か\u3099か\u3099", query="が")
def test_an_excerpt_is_what_a_plain_search_would_show(text: str, query: str) -> None:
    """Looking only at what may be wanted marks the same words in the same part of the text."""
    found = terms(query, stop_words=True)
    for words in (set(found.sequence), set(found.aside), {*found.sequence, *found.aside}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(excerpt, "spans", plain_spans)
            expected = highlight(text, words)
        assert highlight(text, words) == expected


@pytest.mark.parametrize("odd", ["", "\u0e33"])
def test_an_excerpt_of_a_text_without_spaces_looks_at_few_of_its_pairs(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of any length, without a comma, also one that folding changes somewhere: once it took seconds."""
    text = "".join(chr(0x4E00 + n * 7919 % 4000) for n in range(190_000)) + odd + "火車票"
    looked: list[str] = []
    known = tokens._part_terms
    monkeypatch.setattr(tokens, "_known_piece", lambda piece: looked.append(piece) or known(piece))
    shown = highlight(text, {"火車", "車票"})
    assert shown is not None
    assert "<mark>火車票</mark>" in shown
    assert len(looked) < 1_000


def test_what_does_not_come_again_is_not_remembered() -> None:
    """Half sentences without spaces would fill the memory; words are kept."""
    caches = (tokens._remembered_pieces, tokens._remembered_words, tokens._remembered_terms)
    sentences = "。".join(chr(0x4E00 + n) * 20 for n in range(500))
    before = [cache.cache_info().currsize for cache in caches]
    terms(sentences)
    tokens.words(sentences)
    highlight(sentences, {"一一"})
    assert [cache.cache_info().currsize for cache in caches] == before
    highlight("unforgettableword", {"x"})
    assert tokens._remembered_terms.cache_info().currsize == before[2] + 1


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("at x\u0302yz once", "x\u0302yz", "at <mark>x\u0302yz</mark> once"),
        ("at yx\u0302 once", "yx", "at <mark>yx\u0302</mark> once"),
        ("STRAẞE", "strasse", "<mark>STRAẞE</mark>"),
        ("Straße", "STRAẞE", "<mark>Straße</mark>"),
        ("use getUserById!", "getuserbyid", "use <mark>getUserById</mark>!"),
        ("cafe\u0301!", "cafe", "<mark>café</mark>!"),
    ],
)
def test_what_is_found_is_marked(text: str, query: str, shown: str) -> None:
    """In any form that it is known by: without accents, with the capital sharp s as two, with its parts as one word."""
    assert highlight(text, set(terms(query).sequence)) == shown


FILLER = "charge, card and some other words that stand around here. " * 20


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        (("charg", "the", "card"), "charged the card"),
        (("charg", "the", "card"), "charge: the (card)"),
        (("get", "user"), "getUser"),
        (("creme", "brule"), "crème-brûlée"),
        (("火车", "车票"), "火车票"),
    ],
)
def test_a_phrase_is_shown_where_it_stands(phrase: tuple[str, ...], written: str) -> None:
    """Not where its words are near each other first, in another order or apart."""
    apart = "the card charge, user get brulee creme 车票火车 the "
    text = f"{apart}{FILLER}{apart}{FILLER}here it is: {written}, at last. {FILLER}"
    shown = highlight(text, {*phrase, "card"}, [phrase])
    assert shown is not None
    assert f"here it is: {written}, at last" in shown.replace("<mark>", "").replace("</mark>", "")


def test_of_two_phrases_the_one_is_shown_that_has_more_around_it() -> None:
    """An excerpt begins at a phrase, and has as many of the other words as can be."""
    phrase = ("red", "car")
    text = f"a red car. {FILLER} a red car and a blue boat. {FILLER}"
    shown = highlight(text, {"red", "car", "blue", "boat"}, [phrase])
    assert shown is not None
    assert "<mark>blue</mark> <mark>boat</mark>" in shown


def test_words_that_are_everywhere_hide_no_phrase() -> None:
    """A phrase is found far behind many places of one of its words."""
    shown = highlight("the cat and " * 1500 + "the needle", {"the", "needl"}, [("the", "needl")])
    assert shown is not None
    assert shown.endswith("<mark>the</mark> <mark>needle</mark>")
