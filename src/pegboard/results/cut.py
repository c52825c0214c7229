"""Cuts: the beginning and the end of a text, at line ends; a JSON value with its long strings and lists shortened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.results.path import Step
from pegboard.text import count

_HEAD = 7, 10
# A cut goes back to the end of a line, or of a word, if that costs no more than this part of the room.
_GIVEN_UP = 4
# How much of strings is kept at least, how many items of lists and members of objects, and how many levels: less and
# less until it fits.
_STEPS = (
    *((200, items, 12) for items in (2000, 1000, 600, 350, 200, 130, 90, 60, 50, 40, 32, 25)),
    *((200, 25, 6), (200, 15, 6), (200, 15, 5), (200, 15, 4), (100, 10, 4), (100, 10, 3), (100, 10, 2)),
    *((60, 6, 2), (30, 3, 2), (10, 2, 1)),
)
# A string of which less is kept has no end. What is said of one takes so much room.
_WITH_END, _SAID = 400, 40
# The room is filled well enough with all but this part of it.
_UNFILLED = 20


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left of a text: its beginning, and its end from a place on."""

    head: str
    tail: str
    # Where the head ends and the tail begins in the whole.
    gap: tuple[int, int]

    def join(self, advice: str) -> str:
        """Both, with what is left out between them, and how to go on."""
        start, end = self.gap
        if start == end:
            return self.head
        between = "" if self.head.endswith("\n") or not self.head else "\n"
        return f"{self.head}{between}[… {end - start:,} characters are left out{advice} …]\n{self.tail}"


def cut_text(text: str, room: int) -> Cut:
    """Most of the beginning and some of the end, together at most so many characters."""
    room = max(room, 0)
    if len(text) <= room:
        return Cut(text, "", (len(text), len(text)))
    end = _end_of_head(text, room * _HEAD[0] // _HEAD[1])
    start = _start_of_tail(text, len(text) - (room - room * _HEAD[0] // _HEAD[1]))
    return Cut(text[:end], text[start:], (end, start))


def share_room(sizes: Sequence[int], room: int) -> list[int]:
    """How much room each has: small ones all that they need, the others the same."""
    shares = [0] * len(sizes)
    waiting = sorted(range(len(sizes)), key=lambda each: sizes[each])
    for place, number in enumerate(waiting):
        shares[number] = min(sizes[number], room // (len(waiting) - place))
        room -= shares[number]
    return shares


def _end_of_head(text: str, most: int) -> int:
    for mark in ("\n", " "):
        at = text.rfind(mark, most - most // _GIVEN_UP, most)
        if at >= 0:
            return at + 1
    return most


def _start_of_tail(text: str, least: int) -> int:
    for mark in ("\n", " "):
        at = text.find(mark, least, least + (len(text) - least) // _GIVEN_UP)
        if at >= 0:
            return at + 1
    return least


@dataclass(frozen=True, slots=True)
class Shortened:
    """A value as JSON, shortened."""

    text: str
    # The steps that lead to the longest string that was cut.
    cut: tuple[Step, ...] | None = None


def shorten_value(value: Any, room: int) -> Shortened | None:
    """A value as JSON in at most so many characters; what is left out is told. `None` where that cannot be."""
    for strings, items, levels in _STEPS:
        if (found := _shorten(value, strings, items, levels, room)) is not None:
            return _lengthen(value, found, strings, items, levels, room)
    return None


def _lengthen(value: Any, found: Shortened, strings: int, items: int, levels: int, room: int) -> Shortened:
    """The same with as much of its strings as there is room for."""
    low, high = strings, room
    while found.cut is not None and len(found.text) < room - room // _UNFILLED and high - low > _SAID:
        middle = (low + high) // 2
        longer = _shorten(value, middle, items, levels, room)
        if longer is None:
            high = middle
        else:
            low, found = middle, longer
    return found


def _shorten(value: Any, strings: int, items: int, levels: int, room: int) -> Shortened | None:
    trimmer = _Trimmer(strings, items, room)
    try:
        trimmed = trimmer.trim(value, levels, ())
    except _NoRoom:
        return None
    text = exactjson.dump(trimmed).decode()
    return Shortened(text, trimmer.cut) if len(text) <= room else None


class _NoRoom(Exception):  # noqa: N818  it says what there is not
    """More is kept than there is room for."""


class _Trimmer:
    """Trims strings, lists and objects, and stops as soon as it is clear that the rest will not fit."""

    def __init__(self, strings: int, items: int, room: int) -> None:
        self._strings = strings
        self._items = items
        self._room = room
        self._longest = 0
        self.cut: tuple[Step, ...] | None = None

    def trim(self, value: Any, levels: int, path: tuple[Step, ...]) -> Any:
        """What is kept of a value that stands there."""
        if isinstance(value, str):
            return self._trim_string(value, path)
        self._take(1)
        if (members := as_object(value)) is not None:
            return dict(self._trim_members(members, levels, path))
        if not (inner := as_list(value)):
            return value
        if levels <= 0:
            return f"[… {count(len(inner), 'item')}]"
        most = self._items + (len(inner) == self._items + 1)
        kept = [self.trim(item, levels - 1, (*path, number)) for number, item in enumerate(inner[:most])]
        if len(kept) == len(inner):
            return kept
        last = self.trim(inner[-1], levels - 1, (*path, len(inner) - 1))
        return [*kept, f"… {len(inner) - len(kept) - 1:,} more items …", last]

    def _trim_members(self, members: dict[str, Any], levels: int, path: tuple[Step, ...]) -> Iterator[tuple[str, Any]]:
        if levels <= 0 and members:
            yield "…", count(len(members), "member")
            return
        for number, (key, item) in enumerate(members.items()):
            if number == self._items:
                yield "…", count(len(members) - number, "more member")
                return
            shown = key if len(key) <= self._strings + 100 else f"{key[: self._strings]}… ({len(key):,} characters)"
            self._take(len(shown) + 3)
            yield shown, self.trim(item, levels - 1, (*path, key))

    def _trim_string(self, text: str, path: tuple[Step, ...]) -> str:
        longest = self._strings
        if len(text) <= longest + _SAID:
            self._take(len(text) + 2)
            return text
        if len(text) > self._longest:
            self._longest, self.cut = len(text), path
        self._take(longest + 2)
        if longest < _WITH_END:
            return f"{text[:longest]}… ({len(text):,} characters)"
        head = longest * _HEAD[0] // _HEAD[1]
        return f"{text[:head]}… ({len(text):,} characters) …{text[head - longest :]}"

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise _NoRoom
