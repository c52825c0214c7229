"""Unicode normalization of what others wrote: as the standard has it, and linear whatever it is."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.names import fold_server_name
from pegboard.normalization import _RUN, Form, is_normalized, normalize
from pegboard.search.tokens import pieces

FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
JOINER = "\N{COMBINING GRAPHEME JOINER}"
MARKS = "\u0301\u0316"
# Marks out of order; those that are marks only when decomposed; halfwidth katakana; what becomes 18 characters.
ATTACKS = [MARKS, "\u0f73\u0f75", "\u0344\u0316", "\uff9e\u0316", "\ufdfa"]


def decomposed(character: str) -> str:
    return unicodedata.normalize("NFKD", character)


def longest_run(text: str) -> int:
    """How many combining marks stand together at most."""
    runs = groupby(map(unicodedata.combining, decomposed(text)), bool)
    return max((len(list(run)) for is_mark, run in runs if is_mark), default=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "plain",
            "Grüße",
            "Gru\u0308ße",
            "Å \u212b A\u030a",
            "한국어",
            "\u1112\u1161\u11ab",
            "ﬁx ﷺ ①",
            "㍿ が か\u3099",
        ),
        # Longer than a slice, and with no place in the middle where nothing belongs together but a few.
        *("e\u0301\u0323" * 9_000, "\u1112\u1161\u11ab" * 9_000, "\u09c7\u09be\u0dd9\u0dcf\u0dca" * 4_000),
        *("x" * 8_191 + "e\u0301", "x" * 8_192 + "\u0301", "漢字" * 9_000),
        *("q" + MARKS * 15, "━" * 50 + "é", " " * 50 + "é"),
    ],
    ids=lambda text: text[:6],
)
def test_text_of_people_is_normalized_as_the_standard_has_it(form: Form, text: str) -> None:
    """Where no run has more than 30 marks, nothing is parted; and slices are joined where nothing belongs together."""
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_run_has_more_than_thirty_marks(form: Form, attack: str) -> None:
    """However they are encoded; the marks themselves are all kept."""
    text = f"ǖ{attack * 500}\u0958{attack * 8}"
    found = normalize(form, text)
    assert longest_run(found) <= 30
    if JOINER in found:
        marks = decomposed(text)
        assert sorted(decomposed(found.replace(JOINER, ""))) == sorted(marks)


@pytest.mark.parametrize("form", FORMS)
@given(
    text=st.text(st.sampled_from([*MARKS, *"\u0344\u0f73\u0f75\uff9e\u3099\u0323aéǖ\u0958\u1f82 ─한"]), max_size=120)
)
def test_normalized_again_it_is_the_same(form: Form, text: str) -> None:
    """So a key that was kept is found by the key that was answered."""
    once = normalize(form, text)
    assert longest_run(once) <= 30
    assert normalize(form, once) == once


def test_every_combining_mark_is_seen() -> None:
    """Of all characters: what is nothing but marks is looked at, and is two of them at most."""
    for character in map(chr, range(0x110000)):
        alone = decomposed(character)
        marks = [bool(unicodedata.combining(each)) for each in alone]
        if all(marks):
            assert _RUN.fullmatch(character * 14), hex(ord(character))
            assert len(alone) <= 2
        else:
            assert not marks[0]
            assert sum(marks) <= 3


@pytest.mark.parametrize("form", FORMS)
def test_growth_is_bounded(form: Form) -> None:
    """A text of the one character that becomes 18 is cut; a sentence that has it is not."""
    assert len(normalize(form, "\ufdfa" * 10_000)) <= 41_000
    assert normalize("NFKD", "ﷺ") == decomposed("ﷺ")


def composed(text: str) -> None:
    normalize("NFC", text)


def checked(text: str) -> None:
    is_normalized("NFKC", text)


def folded(text: str) -> None:
    list(pieces(text))


def cpu_time(work: Callable[[str], object], text: str) -> float:
    took: list[float] = []
    # The quickest of three: what else the machine does makes it longer, never shorter.
    for _ in range(3):
        before = time.thread_time()
        work(text)
        took.append(time.thread_time() - before)
    return min(took)


@pytest.mark.parametrize("work", [composed, checked, folded])
@pytest.mark.parametrize("attack", [*ATTACKS, "\u0316" * 500 + "\u0301" * 500])
def test_time_grows_with_the_length_alone(work: Callable[[str], object], attack: str) -> None:
    """Eight times the text takes about eight times as long, not sixty-four times."""
    often = 4_000 // len(attack)
    short, long = cpu_time(work, "a" + attack * often), cpu_time(work, "a" + attack * 8 * often)
    assert long < 0.02 or long < 24 * short


def test_a_name_of_any_length_is_folded_at_once() -> None:
    """A longer name of a server is its beginning and a digest, and no two become the same."""
    one, other = (fold_server_name(("a" + MARKS) * 1_000_000 + end) for end in "xy")
    assert one != other
    assert len(one) < 300
    assert cpu_time(fold_server_name, ("a" + MARKS) * 1_000_000) < 0.2
