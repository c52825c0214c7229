"""Which task of a file is which of those known before: by its words, wherever it stands now.

Unique texts that kept their order (the longest increasing subsequence of places) cut a long file into short parts.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from pegboard.toolsets.tasks.table import TaskRow
from pegboard.toolsets.tasks.taskfile import Item

# From here on two texts are taken for one task that was reworded.
_ALIKE = 0.6
# More comparisons than this are not worth it: then only a task that kept its number counts as reworded.
_MOST_COMPARED = 2_500
# Characters of a text that are compared, and with how many others.
_COMPARED, _CLOSEST = 200, 4
# A text that stands in a file so often says nothing about its neighbours.
_MOST_EQUAL = 50


def match_tasks(known: Sequence[TaskRow], items: Sequence[Item]) -> list[TaskRow | None]:
    """For each task of a file what is known of it; of tasks that were gone only those come back that say the same."""
    here = sorted((each for each in known if not each.gone), key=lambda each: each.number)
    if len(here) == len(items) and all(a.digest == b.digest for a, b in zip(here, items, strict=True)):
        return list(here)
    found: list[TaskRow | None] = [None] * len(items)
    if not known:
        return found
    _match_in_order(here, items, found)
    _match_moved(known, items, found)
    _match_reworded(here, items, found)
    return found


def _match_in_order(here: Sequence[TaskRow], items: Sequence[Item], found: list[TaskRow | None]) -> None:
    """Those that say the same and stand in the same order: of equal texts, the neighbours tell which is which."""
    before, now = [each.digest for each in here], [item.digest for item in items]
    at_a = at_b = 0
    for a, b in [*_anchors(before, now), (len(before), len(now))]:
        for a_start, b_start, size in _blocks(before[at_a:a], now[at_b:b]):
            for step in range(size):
                found[at_b + b_start + step] = here[at_a + a_start + step]
        if b < len(now):
            found[b] = here[a]
        at_a, at_b = a + 1, b + 1


def _blocks(before: Sequence[str], now: Sequence[str]) -> Sequence[tuple[int, int, int]]:
    """What is the same in both, in the same order; where a text stands very often there is no telling."""
    if not before or not now or max(Counter(before).values()) > _MOST_EQUAL:
        return ()
    return SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()


def _anchors(before: Sequence[str], now: Sequence[str]) -> list[tuple[int, int]]:
    """The places of texts that stand once in both, as many as are in the same order.

    Between them there is little left to compare, so that a long file takes no longer than its length.
    """
    once_before = _once(before)
    once_now = _once(now)
    pairs = [(once_before[text], b) for text, b in once_now.items() if text in once_before]
    # The longest increasing subsequence: for each length the pair that ends it lowest, and who comes before each.
    ends: list[int] = []
    lowest: list[int] = []
    earlier: list[int] = []
    for number, (a, _) in enumerate(pairs):
        length = bisect(lowest, a)
        earlier.append(ends[length - 1] if length else -1)
        lowest[length : length + 1] = [a]
        ends[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        row.append(pairs[number])
        number = earlier[number]
    return row[::-1]


def _once(texts: Sequence[str]) -> dict[str, int]:
    """The place of each text that stands there once, in their order."""
    counts = Counter(texts)
    return {text: at for at, text in enumerate(texts) if counts[text] == 1}


def _match_moved(known: Sequence[TaskRow], items: Sequence[Item], found: list[TaskRow | None]) -> None:
    """Those that say the same elsewhere; what is there goes before what was gone."""
    taken = {each.id for each in found if each is not None}
    waiting: defaultdict[str, deque[TaskRow]] = defaultdict(deque)
    for each in sorted(known, key=lambda each: (each.gone, each.number, each.id)):
        if each.id not in taken:
            waiting[each.digest].append(each)
    for at, item in enumerate(items):
        if found[at] is None and waiting.get(item.digest):
            found[at] = waiting[item.digest].popleft()


def _match_reworded(here: Sequence[TaskRow], items: Sequence[Item], found: list[TaskRow | None]) -> None:
    """Those that say nearly the same, the most alike first."""
    taken = {each.id for each in found if each is not None}
    left = [each for each in here if each.id not in taken]
    new = [at for at, each in enumerate(found) if each is None]
    pairs = [
        (-likeness, abs(each.number - items[at].number), at, each)
        for at, each, likeness in _alike(left, {at: items[at] for at in new})
    ]
    for _, _, at, each in sorted(pairs, key=lambda pair: (*pair[:3], pair[3].id)):
        if found[at] is None and each.id not in taken:
            found[at] = each
            taken.add(each.id)


def _alike(left: Sequence[TaskRow], new: Mapping[int, Item]) -> Iterator[tuple[int, TaskRow, float]]:
    """Pairs that could be one task, and how much alike they are."""
    by_number = {each.number: each for each in left}
    all_of_them = len(left) * len(new) <= _MOST_COMPARED
    for at, item in new.items():
        # The matcher keeps what it knows of the second text.
        matcher = SequenceMatcher(None, "", item.content[:_COMPARED], autojunk=False)
        same_number = by_number.get(item.number)
        others = left if all_of_them else [same_number] if same_number is not None else []
        for each in _likely(matcher, others, item.number):
            matcher.set_seq1(each.content[:_COMPARED])
            if (likeness := matcher.ratio()) >= _ALIKE:
                yield at, each, likeness


def _likely(matcher: SequenceMatcher[str], others: Sequence[TaskRow], number: int) -> list[TaskRow]:
    """The few that share the most characters with a text: to compare it with all of them takes too long."""
    close: list[tuple[float, int, int, TaskRow]] = []
    for each in others:
        matcher.set_seq1(each.content[:_COMPARED])
        if matcher.real_quick_ratio() >= _ALIKE and (most := matcher.quick_ratio()) >= _ALIKE:
            close.append((-most, abs(each.number - number), each.id, each))
    return [each for *_, each in sorted(close, key=lambda one: one[:3])[:_CLOSEST]]
