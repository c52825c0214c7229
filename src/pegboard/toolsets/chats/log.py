"""The log that VS Code keeps of a chat: one JSON object a line, each a change of the object that the log stands for.

`kind` 0 is the whole object, 1 sets a value at a path, 2 pushes items to a list (cut to length `i` first, if that is
given), 3 deletes. A state can be kept to a shape: whatever nobody will look at is dropped on the way in, so that a log
of hundreds of megabytes leaves a small object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.toolsets.chats.fields import parse_json
from pegboard.toolsets.chats.reading import BrokenLine

# The keys that are kept of an object, with the shape of each; `None` keeps all. Lists have the shape of their items.
Shape: TypeAlias = "Mapping[str, Shape | None]"

INITIAL, SET, PUSH, DELETE = range(4)
# JavaScript fills a list up to any index. One change that leaves more of a gap than this is no chat.
_MOST_GAP = 10_000


class Log:
    """The object that the lines so far stand for."""

    def __init__(self, shape: Shape | None = None) -> None:
        self._shape = shape
        self.state: Any = None
        self.began = False

    def take(self, line: bytes) -> None:
        """Apply one line; `BrokenLine` and nothing changed if it cannot be."""
        entry = _entry(line)
        kind = entry.get("kind")
        if type(kind) is not int or kind not in (INITIAL, SET, PUSH, DELETE):
            raise BrokenLine(f"kind {_short(kind)} is not known")
        if kind == INITIAL:
            self.state, self.began = prune(entry.get("v"), self._shape), True
            return
        if not self.began:
            raise BrokenLine("there is no object yet that could be changed")
        path = as_list(entry.get("k"))
        if not path:
            raise BrokenLine("it changes no place")
        shape, kept = _below(path, self._shape)
        if kept:
            _change(kind, _Target(self.state, path), entry, shape)


class _Target:
    """Where a path ends: the object or list around it, and the key or index in there."""

    def __init__(self, state: Any, path: list[Any]) -> None:
        for step in path[:-1]:
            state = _step(state, step)
        self.around: dict[str, Any] | list[Any] | None = as_object(state)
        self.key: Any = path[-1]
        if self.around is None:
            self.around = as_list(state)
            if self.around is None or type(self.key) is not int or self.key < 0:
                raise BrokenLine("its path leads nowhere")
            if self.key > len(self.around) + _MOST_GAP:
                raise BrokenLine("its path leads far beyond the end of a list")
        elif not isinstance(self.key, str):
            raise BrokenLine("its path leads nowhere")

    def value(self) -> Any:
        if isinstance(self.around, dict):
            return self.around.get(self.key)
        return self.around[self.key] if self.around and self.key < len(self.around) else None

    def set(self, value: Any) -> None:
        if isinstance(self.around, dict):
            self.around[self.key] = value
        elif self.around is not None:
            # As JavaScript does it: what lies between is there, and is nothing.
            self.around.extend([None] * (self.key + 1 - len(self.around)))
            self.around[self.key] = value

    def delete(self) -> None:
        if isinstance(self.around, dict):
            self.around.pop(self.key, None)
        elif self.around is not None and self.key < len(self.around):
            # The others keep their places: later lines count on it.
            self.around[self.key] = None


def prune(value: Any, shape: Shape | None) -> Any:
    """A value with only what its shape keeps."""
    if shape is None:
        return value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: prune(item, shape[key]) for key, item in items if key in shape}
    if isinstance(value, list):
        return [prune(item, shape) for item in cast("list[Any]", value)]
    return value


def _below(path: list[Any], shape: Shape | None) -> tuple[Shape | None, bool]:
    """The shape of what is at a path, and whether anything there is kept."""
    for step in path:
        if shape is None:
            break
        if isinstance(step, str):
            if step not in shape:
                return None, False
            shape = shape[step]
    return shape, True


def _change(kind: int, place: _Target, entry: Mapping[str, Any], shape: Shape | None) -> None:
    if kind == SET:
        place.set(prune(entry.get("v"), shape))
    elif kind == DELETE:
        place.delete()
    else:
        _push(place, entry, shape)


def _push(place: _Target, entry: Mapping[str, Any], shape: Shape | None) -> None:
    there = place.value()
    items = [] if there is None else as_list(there)
    new = [] if entry.get("v") is None else as_list(entry["v"])
    length = entry.get("i")
    if items is None or new is None:
        raise BrokenLine("it pushes to something that is no list, or something that is none")
    if length is not None:
        if type(length) is not int or not 0 <= length <= len(items) + _MOST_GAP:
            raise BrokenLine("it cuts a list to no possible length")
        del items[length:]
        items.extend([None] * (length - len(items)))
    items.extend(prune(new, shape))
    place.set(items)


def _step(state: Any, step: Any) -> Any:
    found = as_object(state)
    if found is not None and isinstance(step, str):
        return found.get(step)
    items = as_list(state)
    if items is not None and type(step) is int and 0 <= step < len(items):
        return items[step]
    raise BrokenLine("its path leads nowhere")


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = as_object(parse_json(line))
    except exactjson.NotJson:
        raise BrokenLine("it is no JSON") from None
    if entry is None:
        raise BrokenLine("it is no JSON object")
    return entry


def _short(value: object) -> str:
    return str(value)[:20] if isinstance(value, (int, float)) else type(value).__name__
