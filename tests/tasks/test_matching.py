"""Which task is which, when a file was changed: right, and with little work, which is counted and not timed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from difflib import Match, SequenceMatcher

import pytest

from pegboard.toolsets.tasks import matching
from pegboard.toolsets.tasks.matching import match_tasks
from pegboard.toolsets.tasks.table import TaskRow
from pegboard.toolsets.tasks.taskfile import Item, parse


class Counting(SequenceMatcher[str]):
    """Counts what is compared at length: characters of pairs of texts, and lines of pairs of files."""

    compared = 0
    first: Sequence[str] = ""
    second: Sequence[str] = ""

    def set_seq1(self, a: Sequence[str]) -> None:
        """As it is."""
        self.first = a
        super().set_seq1(a)

    def set_seq2(self, b: Sequence[str]) -> None:
        """As it is."""
        self.second = b
        super().set_seq2(b)

    def get_matching_blocks(self) -> list[Match]:
        """As it is; a ratio is made of them, too."""
        Counting.compared += len(self.first) * len(self.second)
        return super().get_matching_blocks()


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    """Whatever is compared in the test is counted."""
    Counting.compared = 0
    monkeypatch.setattr(matching, "SequenceMatcher", Counting)
    return Counting


def items_of(texts: Sequence[str]) -> list[Item]:
    """Tasks as a file has them."""
    return parse("".join(f"- [ ] {text}\n" for text in texts).encode(), "a").items


def known_of(texts: Sequence[str]) -> list[TaskRow]:
    """Tasks as they were known, each with its place as its row."""
    return [TaskRow(item.number, "a", item.number, item.digest, item.content, 0, "") for item in items_of(texts)]


def rows(known: Sequence[TaskRow], texts: Sequence[str]) -> list[int | None]:
    """The row of each task."""
    return [each.id if each is not None else None for each in match_tasks(known, items_of(texts))]


def test_lines_between_all_others_move_nothing_else(counting: type[Counting]) -> None:
    """Each task is found again, and a long file is not compared line by line with itself."""
    texts = [f"build part {number}" for number in range(1, 2001)]
    between = [line for text in texts for line in (text, f"and see whether {text} is right, all of it")]
    assert rows(known_of(texts), between)[::2] == list(range(1, 2001))
    assert counting.compared < 1_000_000


def test_equal_texts_are_told_by_what_stands_around_them() -> None:
    """A line that is taken out from between two others takes the row of its own place with it."""
    texts = ["Form", "write tests", "Login", "write tests", "Page", "write tests"]
    assert rows(known_of(texts), ["Form", "write tests", "Login", "Page", "write tests"]) == [1, 2, 3, 5, 6]
    assert rows(known_of(texts), ["Form", "Login", "write tests", "Page", "write tests"]) == [1, 3, 4, 5, 6]


def test_what_moved_is_found_by_its_words() -> None:
    """In any order at all."""
    texts = [f"number {number} of many" for number in range(1, 200)]
    places = list(range(1, 200))
    random.Random(7).shuffle(places)
    assert rows(known_of(texts), [texts[place - 1] for place in places]) == places


def test_fifty_long_texts_that_were_all_rewritten_are_compared_with_few_others(counting: type[Counting]) -> None:
    """Nobody waits while fifty long texts are compared with fifty others in all their length."""
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
    chance = random.Random(3)
    old, new = ([" ".join(chance.choices(words, k=100)) for _ in range(50)] for _ in range(2))
    match_tasks(known_of(old), items_of(new))
    assert counting.compared < 10_000_000


def test_a_few_words_more_are_the_same_task() -> None:
    """Also among others that are like it, and wherever it went."""
    old = ["Draw the form for users", "Draw the form for admins", "Check all passwords"]
    new = ["Check all the passwords", "Draw the form for admins, too", "Draw the big form for users"]
    assert rows(known_of(old), new) == [3, 2, 1]


def test_of_very_many_rewritten_only_the_same_number_is_compared(counting: type[Counting]) -> None:
    """A file that is another one altogether is read in no time."""
    old = [f"old part {number}" for number in range(300)]
    new = [f"old part {number}!" for number in range(300)]
    assert rows(known_of(old), new) == list(range(1, 301))
    assert counting.compared < 300 * 300 + 300 * 200


def test_of_two_that_are_gone_the_same_one_comes_back_however_rows_were_read() -> None:
    """A list and a sync read them in different orders, and have to agree."""
    known = [TaskRow(row, "a", 1, items_of(["one"])[0].digest, "one", 0, "", gone=1) for row in (1, 2)]
    assert rows(known, ["one"]) == rows(known[::-1], ["one"]) == [1]
