"""The value of a JSON text that may be large, read part by part: while one is read, no other thread has its turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw

from pegboard import exactjson
from pegboard.exactjson import NotJson, TooDeep
from pegboard.results.contents import parse_text
from pegboard.results.path import items_of, lead_of, members_of

# Bytes that are read at once.
PORTION = 100_000
_OPENING = b"{["
_QUOTE = ord('"')


def parse_value(text: bytes | memoryview | Raw, depth: int = 0) -> Any:
    """The value, exactly, that stands at a depth; `NotJson` if it cannot be read, or not without taking long."""
    view = memoryview(text)
    if len(view) > PORTION and lead_of(view) == _QUOTE:
        return parse_text(view)
    if len(view) <= PORTION or lead_of(view) not in _OPENING:
        return _parse_at(bytes(view), depth)
    if depth >= exactjson.MAX_DEPTH:
        raise TooDeep
    if (members := members_of(view)) is not None:
        return dict(zip(members, _parse_all(members.values(), depth + 1), strict=True))
    if (items := items_of(view)) is not None:
        return list(_parse_all(items, depth + 1))
    raise NotJson("an object has too many members, or what is between brackets is no JSON")


def group_values(values: Iterable[Raw]) -> Iterator[list[Raw]]:
    """Values in groups, each of which takes little time to be read, but for a large one, which is a group by itself."""
    group: list[Raw] = []
    room = PORTION
    for value in values:
        size = len(memoryview(value)) + 1
        if size > room and group:
            yield group
            group, room = [], PORTION
        group.append(value)
        room -= size
    if group:
        yield group


def join_values(values: Iterable[Raw]) -> bytes:
    """A list of them, as JSON."""
    return b"[%b]" % b",".join(values)


def _parse_all(values: Iterable[Raw], depth: int) -> Iterator[Any]:
    for group in group_values(values):
        if len(group) == 1:
            yield parse_value(group[0], depth)
        else:
            yield from _parse_at(join_values(group), depth - 1)


def _parse_at(data: bytes, depth: int) -> Any:
    """A value with so many brackets around it: the parser counts them."""
    value = exactjson.parse(b"[" * depth + data + b"]" * depth)
    for _ in range(depth):
        (value,) = value
    return value
