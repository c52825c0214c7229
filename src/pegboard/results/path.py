"""A path into JSON: a JSON Pointer (`/items/0/id`), or names with dots (`items[0].id`), where `[]` means each item."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from pegboard.exactjson import as_list, as_object
from pegboard.result import invalid
from pegboard.text import json_path, quote_start

EACH = -1
Step = str | int
# An object that has more members is not opened. Only one of so many bytes can have them.
MOST_MEMBERS = 200_000
_LARGE = 1_000_000
_MOST_STEPS = 250
_SHOWN = 60
_SOME_KEYS = 20
# No list has so many items.
_DIGITS = 15
_OBJECT = ord("{")
_PIECE = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d*)\]")
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
# A text that is no UTF-8 is told apart from one that is no JSON, but only where it is read.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Name(str):
    """The name of a member that was looked at."""

    __slots__ = ()


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; the empty one leads to the whole."""
    if text.startswith("/"):
        steps: tuple[Step, ...] = tuple(_unescape(part) for part in text[1:].split("/"))
    else:
        steps = _parse_names(text)
    if len(steps) > _MOST_STEPS:
        raise invalid(f"path has more than {_MOST_STEPS} steps")
    return steps


def _unescape(part: str) -> str:
    if re.search("~(?![01])", part):
        raise invalid(f'path: "{quote_start(part, _SHOWN)}" has a ~ that stands for nothing: ~ is written ~0, / is ~1')
    return part.replace("~1", "/").replace("~0", "~")


def _parse_names(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            where = quote_start(text[at:], _SHOWN)
            raise invalid(f'path: cannot be read from "{where}" on: write a.b[0].c, a[].b for each item, or /a/b/0/c')
        name, index = found["name"], found["index"]
        steps.append(name if name is not None else int(index[:_DIGITS]) if index else EACH)
        at = found.end()
    return tuple(steps)


def write_path(steps: Sequence[Step]) -> str:
    """The shortest text that leads there: names with dots where that can be read again, else a pointer."""
    if all(isinstance(step, int) or re.fullmatch(r"[^.\[\]/]+", step) for step in steps):
        return json_path(steps)
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def members_of(text: bytes | memoryview | Raw) -> dict[str, Raw] | None:
    """The members of a JSON object, still closed; `None` if it is none, or has too many."""
    try:
        return _MEMBERS.decode(text) if len(memoryview(text)) <= _LARGE else _members_of_large(text)
    except UNREADABLE:
        return None


def _members_of_large(text: bytes | memoryview | Raw) -> dict[str, Raw]:
    """The same, with a look at each name: to make a million members takes most of a second, for which no other thread
    would have its turn."""
    numbers = itertools.count()

    def take(_: type, name: str) -> _Name:
        if next(numbers) >= MOST_MEMBERS:
            raise ValueError("too many members")
        return _Name(name)

    members = msgspec.json.Decoder(dict[_Name, Raw], dec_hook=take).decode(text)
    return {str(name): value for name, value in members.items()}


def items_of(text: bytes | memoryview | Raw) -> list[Raw] | None:
    """The items of a JSON list, still closed; `None` if it is none."""
    try:
        return _ITEMS.decode(text)
    except UNREADABLE:
        return None


def lead_of(text: bytes | memoryview | Raw) -> int:
    """The first character of a JSON value, as its byte."""
    view = memoryview(text)
    return view[0] if view else 0


def select(text: bytes, steps: Sequence[Step]) -> list[memoryview] | memoryview:
    """What stands at the end of a path, still JSON; a list of values if each item was meant somewhere."""
    values, is_each, number = [memoryview(text)], False, 0
    while number < len(steps):
        before = steps[:number]
        if steps[number] == EACH:
            values = [memoryview(item) for value in values for item in _each(value, before)]
            is_each, number = True, number + 1
            continue
        # Each item may have other names: there, a name with dots is read as the path has it.
        ahead = steps[number : number + 1] if is_each else steps[number:]
        found = [_follow(value, ahead, before, must_be=not is_each) for value in values]
        values = [each[0] for each in found if each is not None]
        number += max((each[1] for each in found if each is not None), default=1)
    return values if is_each else values[0]


def _each(value: memoryview, before: Sequence[Step]) -> list[Raw]:
    items = items_of(value)
    if items is None:
        raise invalid(f"path: what stands at {_name(before)} is no list")
    return items


def _follow(
    value: memoryview, ahead: Sequence[Step], before: Sequence[Step], *, must_be: bool
) -> tuple[memoryview, int] | None:
    """What the next step leads to, and how many steps that takes: a name with dots in it looks like several."""
    step = ahead[0]
    if (items := items_of(value)) is not None and (index := _index(step)) is not None:
        if index < len(items):
            return memoryview(items[index]), 1
        problem = f"{_name(before)} has {len(items):,} items, and no number {quote_start(str(step), _SHOWN)}"
    elif (members := members_of(value)) is not None:
        if count := _count_steps(members, ahead):
            return memoryview(members[_join(ahead[:count])]), count
        some = ", ".join(quote_start(name, _SHOWN) for name in list(members)[:_SOME_KEYS])
        problem = f'{_name(before)} has no "{quote_start(str(step), _SHOWN)}"; it has {some or "nothing"}'
        problem += '; a name with dots, / or brackets is written as in "/a~1b.c"' if len(ahead) > 1 else ""
    else:
        kind = "a list: say which item, as in [0], or each, as in []" if items is not None else "no object"
        kind = "an object of too many members to be opened" if lead_of(value) == _OBJECT else kind
        problem = f'{_name(before)} is {kind} (at "{quote_start(str(step), _SHOWN)}")'
    if must_be:
        raise invalid(f"path: {problem}")
    return None


def _count_steps(members: Mapping[str, Raw], ahead: Sequence[Step]) -> int:
    """How many of the next steps are the name of a member: one if that is there, else as many as can be; 0 for none."""
    names = len(list(itertools.takewhile(lambda step: isinstance(step, str), ahead)))
    return next((count for count in (1, *range(names, 1, -1)) if _join(ahead[:count]) in members), 0)


def _join(steps: Sequence[Step]) -> str:
    return ".".join(map(str, steps))


def _index(step: Step) -> int | None:
    """The number of an item that a step leads to; a JSON Pointer writes it as a name."""
    if isinstance(step, int):
        return step
    # A power (²) is a digit, too, but no number.
    return int(step[:_DIGITS]) if step.isascii() and step.isdigit() else None


def _name(steps: Sequence[Step]) -> str:
    shown = write_path(steps).replace(f"[{EACH}]", "[]")
    return f'"{quote_start(shown, 2 * _SHOWN)}"' if steps else "the whole"


def values_at(value: Any, steps: Sequence[Step]) -> list[Any]:
    """Everything at the end of a path in a value that was read; a list on the way stands for each of its items."""
    values = [value]
    for step in steps:
        values = [inner for each in values for inner in _inner(each, step)]
    return values


def reach(value: Any, steps: Sequence[Step]) -> tuple[int, bool]:
    """How many steps of a path lead to something in a value, and whether it ends early where nothing is: at an empty
    list or a null, so that it could lead on elsewhere."""
    values = [value]
    for number, step in enumerate(steps):
        inner = [found for each in values for found in _inner(each, step)]
        if not inner:
            return number, number > 0 and all(each is None or each == [] for each in values)
        values = inner
    return len(steps), False


def _inner(value: Any, step: Step) -> list[Any]:
    if (members := as_object(value)) is not None:
        return [members[step]] if isinstance(step, str) and step in members else []
    items = as_list(value) or []
    if step == EACH:
        return items
    if (index := _index(step)) is not None:
        return items[index : index + 1]
    return [inner for each in items if isinstance(each, dict) for inner in _inner(each, step)]
