"""The inner texts of a JSON value: its names, strings, numbers and constants, without what JSON writes around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.results.contents import parse_text
from pegboard.results.json_value import PORTION, group_values, join_values
from pegboard.results.path import UNREADABLE, items_of, lead_of, members_of

# Nobody looks for it.
_BETWEEN = "\0"
_QUOTE = ord('"')
# Fractions keep the digits that they are written with.
_VALUE = msgspec.json.Decoder(float_hook=str)


def inner_texts(value: memoryview | Raw, depth: int = 0) -> Iterator[str]:
    """All of them, short ones together in one text, with something between them; `NotJson` if that cannot be read."""
    view = memoryview(value)
    if len(view) <= PORTION:
        yield _BETWEEN.join(_list_texts(_parse(bytes(view))))
    elif lead_of(view) == _QUOTE:
        yield parse_text(view)
    elif depth > exactjson.MAX_DEPTH:
        raise exactjson.TooDeep
    elif (members := members_of(view)) is not None:
        yield _BETWEEN.join(members)
        yield from _texts_of_all(members.values(), depth + 1)
    else:
        items = items_of(view)
        # What cannot be opened is taken as it is written.
        whole = [bytes(view).decode("utf-8", "surrogatepass")] if items is None else []
        yield from whole or _texts_of_all(items or (), depth + 1)


def _texts_of_all(values: Iterable[Raw], depth: int) -> Iterator[str]:
    for group in group_values(values):
        if len(group) == 1:
            yield from inner_texts(group[0], depth)
        else:
            yield _BETWEEN.join(_list_texts(_parse(join_values(group))))


def _parse(data: bytes) -> Any:
    try:
        return _VALUE.decode(data)
    except UNREADABLE:
        # Half of a surrogate pair.
        return exactjson.parse(data)


def _list_texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif (members := as_object(each)) is not None:
            yield from members
            left += members.values()
        elif (items := as_list(each)) is not None:
            left += items
        else:
            yield exactjson.dump(each).decode()
