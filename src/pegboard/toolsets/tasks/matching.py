"""Which task of a file is which of those known before: by its words, wherever it stands now."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from difflib import SequenceMatcher

from pegboard.toolsets.tasks.table import Known
from pegboard.toolsets.tasks.taskfile import Item

# From here on two texts are taken for one task that was reworded.
_ALIKE = 0.6
# More comparisons than this are not worth it: then only a task that kept its number counts as reworded.
_MOST_COMPARED = 2_500
# A text that stands in a file so often says nothing about its neighbours.
_MOST_EQUAL = 50


def matched(known: Sequence[Known], items: Sequence[Item]) -> list[Known | None]:
    """For each task of a file what is known of it; of tasks that were gone only those come back that say the same."""
    here = sorted((each for each in known if not each.gone), key=lambda each: each.number)
    if len(here) == len(items) and all(a.digest == b.digest for a, b in zip(here, items, strict=True)):
        return list(here)
    found: list[Known | None] = [None] * len(items)
    if not known:
        return found
    _match_in_order(here, items, found)
    _match_moved(known, items, found)
    _match_reworded(here, items, found)
    return found


def _match_in_order(here: Sequence[Known], items: Sequence[Item], found: list[Known | None]) -> None:
    """Those that say the same and stand in the same order: of equal texts, the neighbours tell which is which."""
    before, now = [each.digest for each in here], [item.digest for item in items]
    if max(Counter(before).values(), default=0) > _MOST_EQUAL:
        return
    for block in SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            found[block.b + step] = here[block.a + step]


def _match_moved(known: Sequence[Known], items: Sequence[Item], found: list[Known | None]) -> None:
    """Those that say the same elsewhere; what is there goes before what was gone."""
    taken = {each.id for each in found if each is not None}
    waiting: defaultdict[str, deque[Known]] = defaultdict(deque)
    for each in sorted(known, key=lambda each: (each.gone, each.number)):
        if each.id not in taken:
            waiting[each.digest].append(each)
    for at, item in enumerate(items):
        if found[at] is None and waiting.get(item.digest):
            found[at] = waiting[item.digest].popleft()


def _match_reworded(here: Sequence[Known], items: Sequence[Item], found: list[Known | None]) -> None:
    """Those that say nearly the same, the most alike first."""
    taken = {each.id for each in found if each is not None}
    left = [each for each in here if each.id not in taken]
    new = [at for at, each in enumerate(found) if each is None]
    all_of_them = len(left) * len(new) <= _MOST_COMPARED
    pairs = [
        (-_likeness(each.content, items[at].content), abs(each.number - items[at].number), at, each)
        for each in left
        for at in new
        if all_of_them or each.number == items[at].number
    ]
    for likeness, _, at, each in sorted(pairs, key=lambda pair: (*pair[:3], pair[3].id)):
        if -likeness >= _ALIKE and found[at] is None and each.id not in taken:
            found[at] = each
            taken.add(each.id)


def _likeness(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one[:500], other[:500], autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE else 0.0
