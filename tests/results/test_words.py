"""The words of a query: whatever their letters' case, and in time that grows with the text alone."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from typing import Any

import pytest

from pegboard import exactjson
from pegboard.result import ToolFailure
from pegboard.results import passages, words
from pegboard.results.hits import Hits
from pegboard.results.inner_texts import inner_texts
from pegboard.results.passages import PassageSearch
from pegboard.results.words import PORTION, count_words, fold, split_words


def test_letters_that_differ_by_case_alone_are_folded_to_the_same() -> None:
    """Those that a regular expression that ignores case takes for the same, each in its place."""
    letters = [chr(code) for code in range(sys.maxunicode + 1)]
    folded = fold("".join(letters))
    assert len(folded) == len(letters)
    alike: dict[str, list[str]] = defaultdict(list)
    for letter, to in zip(letters, folded, strict=True):
        alike[to].append(letter)
    several = {to: group for to, group in alike.items() if len(group) > 1}
    cased = "".join(letter for group in several.values() for letter in group)
    assert len(cased) > 2500
    for group in several.values():
        assert re.findall(re.escape(group[0]), cased, re.IGNORECASE) == group
    # Of the others, each is the same as itself alone.
    single = [letter for letter in letters if letter.lower() != letter or letter.upper() != letter]
    assert all(fold(letter) == letter for letter in single if len(alike[fold(letter)]) == 1)


@pytest.mark.parametrize("query", ["x" * 201, "short " + "é" * 201])
def test_words_that_nobody_would_write_are_refused(query: str) -> None:
    """And it is said how long they may be."""
    with pytest.raises(
        ToolFailure, match=r'^query: a word, or what is in quotes, has at most 200 characters, and "(x|é)+…" has 201$'
    ):
        split_words(query)
    assert split_words("x" * 200) == ["x" * 200]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"Disk  Full" error', ["disk  full", "error"]),
        ("'a b' 'c'  \"d 'e' f\"", ["a b", "c", "d 'e' f"]),
        ("don't say 'it is'", ["don't", "say", "it is"]),
        ('5" disk "open', ['5"', "disk", '"open']),
        ('"state":"open" x"y z"', ['"state":"open"', 'x"y', 'z"']),
        ("\"\" '  ' x x", ["x"]),
    ],
)
def test_what_has_quotes_around_it_is_one_word(query: str, expected: list[str]) -> None:
    """A quote that has no other one is a letter."""
    assert split_words(query) == expected


@pytest.mark.parametrize("text", ["x" * 450_000, "é\n" * 250_000])
def test_words_are_found_across_portions(text: str) -> None:
    """Also one that begins in the one and ends in the next."""
    for at in (PORTION - 1, 3 * PORTION - 199, len(text) - 200):
        with_word = text[:at] + "N" * 200 + text[at + 200 :]
        assert count_words(split_words("n" * 200 + " " + "m"), [with_word]) == 1


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize("kind", ["text", "record", "escaped record", "records in a record", "object"])
def test_no_more_than_a_portion_is_looked_through_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is, nobody else has a turn."""
    sizes: list[int] = []

    def measure(text: str) -> str:
        sizes.append(len(text))
        return fold(text)

    monkeypatch.setattr(words, "fold", measure)
    monkeypatch.setattr(passages, "fold", measure)
    text = "é€ a" * 500_000
    value: Any = {
        "text": text,
        "record": {"x": text},
        "escaped record": {"x": '\\"' * 500_000 + text},
        "records in a record": [[{"n": text[:1000]}] * 500],
        "object": {f"key {number}": number for number in range(100_000)},
    }[kind]
    if kind == "text":
        hits = Hits(0, None, 1000)
        search = PassageSearch(["nowhere"], hits)
        search.feed(value)
        search.finish()
        assert hits.total == 0
    else:
        assert count_words(["nowhere"], inner_texts(memoryview(exactjson.dump(value)))) == 0
    assert max(sizes) <= 1.1 * PORTION
    assert sum(sizes) >= 400_000


@pytest.mark.parametrize("large", [False, True])
def test_the_texts_of_a_value_are_its_names_and_what_they_stand_for(*, large: bool) -> None:
    """As they are written: with the digits of a fraction, and without escapes."""
    text = "x" * (300_000 if large else 3)
    data = f'{{"a \\"name\\"": [1.50, {"1" * 25}, true, null, "tab\\there"], "more": {{"b": -0.0}}, "long": "{text}"}}'
    expected = {'a "name"', "1.50", "1" * 25, "true", "null", "tab\there", "more", "b", "-0.0", "long", text}
    texts = "\0".join(inner_texts(memoryview(data.encode()))).split("\0")
    assert set(texts) == expected
    assert len(texts) == len(expected)


def test_half_of_a_surrogate_pair_hides_no_word() -> None:
    """Nor the end of a list that cannot be opened for it."""
    for size in (1, 200_000):
        data = f'["a \\ud800 needle", "{"x" * size}"]'.encode()
        assert count_words(["needle"], inner_texts(memoryview(data))) == 1
