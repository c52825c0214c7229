"""Records: the list with the most bytes in a JSON text, wherever it is nested, or an object whose members are as alike
as items of a list; found without reading them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Raw

from pegboard.results.path import Step, items_of, lead_of, members_of

# What has more values than this is treated as a text: to make objects of all would take too much memory.
MOST_VALUES = 1_000_000
_MOST_STEPS, _MOST_INNER = 200, 100
_OPENING, _QUOTE, _MOST_DEPTH = b"{[", ord('"'), 20
# A list of fewer items, or one of which a single item is most, is only what the real one is wrapped in.
_FEW = 3
# An object has records if it has so many members that are objects with keys in common, or so many of any one kind.
_FEW_ALIKE, _MANY_ALIKE = 10, 50
# What has a longer name is no record: a page has all names of its records.
_LONGEST_NAME = 200
_SAMPLE = 40
_KINDS = {ord(lead): kind for kind, leads in enumerate(("{", "[", '"', "-0123456789", "tf")) for lead in leads}


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a JSON text: where they stand, and each as the bytes it is."""

    path: tuple[Step, ...]
    items: list[Raw]
    # Their names, where they are members of an object.
    keys: list[str] | None = None

    def step(self, number: int) -> Step:
        """The step that leads to one of them."""
        return number if self.keys is None else self.keys[number]

    @property
    def size(self) -> int:
        """How many bytes they have, with their names."""
        return sum(len(memoryview(item)) for item in self.items) + sum(len(name) + 4 for name in self.keys or ())

    @property
    def are_balanced(self) -> bool:
        """Whether there are some, and no single one is most of them."""
        return _are_records(self.items)


@dataclass(frozen=True, slots=True)
class LongText:
    """A string that is most of a JSON text: where it stands, still JSON."""

    path: tuple[Step, ...]
    data: memoryview


def is_json(data: bytes) -> bool:
    """Whether a text is a JSON object or list that is not too much to be opened."""
    stripped = data[:200].lstrip()
    if stripped[:1] not in {b"{", b"["} or data.count(b",") > MOST_VALUES:
        return False
    return (members_of(data) if stripped[:1] == b"{" else items_of(data)) is not None


def find_records(data: bytes) -> Records | None:
    """The records of a JSON text, if there is any list in it."""
    view = memoryview(data)
    number, fallback = itertools.count(), None
    # The largest first: the first list that is one of records has the most bytes.
    open_values: list[tuple[int, int, tuple[Step, ...], memoryview]] = [(-len(view), next(number), (), view)]
    for _ in range(_MOST_STEPS):
        if not open_values:
            break
        size, _, path, value = heapq.heappop(open_values)
        if fallback is not None and -size < fallback.size // 4:
            break
        inner: list[tuple[Step, Raw]]
        if (items := items_of(value)) is not None:
            if _are_records(items):
                return Records(path, items)
            if items and (fallback is None or len(items) > len(fallback.items)):
                fallback = Records(path, items)
            inner = list(enumerate(items))
        else:
            members = members_of(value) or {}
            if _are_alike(members) and _are_records(list(members.values())):
                return Records(path, list(members.values()), list(members))
            inner = list(members.items())
        for step, each in heapq.nlargest(_MOST_INNER, filter(_is_open, inner), key=_size):
            heapq.heappush(open_values, (-_size((step, each)), next(number), (*path, step), memoryview(each)))
    return fallback


def records_at(value: bytes | memoryview, path: tuple[Step, ...] = ()) -> Records | None:
    """A value as records, if it is a list, or an object of alike ones."""
    if (items := items_of(value)) is not None:
        return Records(path, items)
    members = members_of(value) or {}
    is_alike = _are_alike(members) and _are_records(list(members.values()))
    return Records(path, list(members.values()), list(members)) if is_alike else None


def _are_alike(members: dict[str, Raw]) -> bool:
    """Whether members of an object are like items of a list."""
    if len(members) < _FEW_ALIKE or any(len(name) > _LONGEST_NAME for name in members):
        return False
    values = list(members.values())
    kinds = {kind for value in values if (kind := _KINDS.get(lead_of(value))) is not None}
    if len(kinds) != 1:
        return False
    if len(members) >= _MANY_ALIKE:
        return True
    keys = [set(members_of(value) or ()) for value in values[:_SAMPLE]]
    common = set[str].intersection(*keys)
    return bool(common) and 2 * len(common) * len(keys) >= sum(map(len, keys))


def find_long_text(data: bytes) -> LongText | None:
    """The string that is most of a JSON text, if one is."""
    value, path = memoryview(data), tuple[Step, ...]()
    for _ in range(_MOST_DEPTH):
        if lead_of(value) == _QUOTE:
            return LongText(path, value)
        items = items_of(value)
        inner: Iterable[tuple[Step, Raw]] = (members_of(value) or {}).items() if items is None else enumerate(items)
        step, largest = max(inner, key=_size, default=(0, Raw()))
        value, path = memoryview(largest), (*path, step)
        if len(value) * 3 < len(data) * 2:
            return None
    return None


def _is_open(member: tuple[Step, Raw]) -> bool:
    return lead_of(member[1]) in _OPENING


def _size(member: tuple[Step, Raw]) -> int:
    return len(memoryview(member[1]))


def _are_records(items: list[Raw]) -> bool:
    if len(items) < _FEW:
        return False
    sizes = [len(memoryview(item)) for item in items]
    return max(sizes) * 2 <= sum(sizes) or not any(lead_of(item) in _OPENING for item in items)
