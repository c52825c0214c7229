"""Edit distance (Damerau-Levenshtein): how many letters are added, dropped, changed or swapped with their neighbour."""

from __future__ import annotations

from collections.abc import Iterator


def distance(first: str, second: str) -> int:
    """How many edits make one word of the other."""
    *_, last = _to_beginnings(*_without_ends(first, second))
    return last


def distance_to_beginning(word: str, term: str) -> int:
    """How many edits make a term of some beginning of a word: terms are stems, misspelt words keep their endings."""
    return min(_to_beginnings(word, term))


def _to_beginnings(first: str, second: str) -> Iterator[int]:
    """The distance of the second word to each beginning of the first, from the empty one to the whole."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    yield row[-1]
    for at, letter in enumerate(first, 1):
        last, before, row = before, row, [at]
        for place, other in enumerate(second, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != other))
            if at > 1 and place > 1 and letter == second[place - 2] and first[at - 2] == other:
                cost = min(cost, last[place - 2] + 1)
            row.append(cost)
        yield row[-1]


def _without_ends(first: str, second: str) -> tuple[str, str]:
    """Two words without what they have in common before and behind: nothing has to be done there."""
    begin, shorter = 0, min(len(first), len(second))
    while begin < shorter and first[begin] == second[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and first[-1 - end] == second[-1 - end]:
        end += 1
    return first[begin : len(first) - end], second[begin : len(second) - end]
