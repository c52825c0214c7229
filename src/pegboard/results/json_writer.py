"""Writes the part of a JSON text that a model is given: of records the shape, the first and the last; of a long string
in it the beginning and the end; of anything else its values, shortened. Each fills the room that it has."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from pegboard import exactjson
from pegboard.results.cut import Shortened, cut_text, share_room, shorten_value
from pegboard.results.json_part import JsonPart
from pegboard.results.json_value import parse_value
from pegboard.results.path import UNREADABLE, Step, write_path
from pegboard.results.records import LongText, Records
from pegboard.results.shape import write_shape
from pegboard.text import truncate

# Room for the words around what is shown.
_WORDS = 100
# Of the room of a JSON text: for its shape, and for what stands around its records, or around a long string.
_SHAPE_PART, _FRAME_PART, _SURROUNDINGS_PART = 8, 6, 4
_SAMPLE = 40
# A record that takes more than this part of the room is shortened, where there are so many.
_RECORD_PART = 6
# A record of so many times its room is not looked at closely to see whether it fits.
_MUCH_LARGER = 20
_LONGEST_PATH = 200
# Where there is this much room, some of it is for an example of a path.
_ROOM_FOR_ADVICE, _ADVICE = 2000, 200


def write_json(json: JsonPart, room: int, *, can_read: bool) -> str:
    """A JSON text in so many characters, with how to go on for whoever `can_read` the rest."""
    if json.long_text is not None and (written := _write_around(json.data, json.long_text, room, can_read)) is not None:
        return written
    if json.records is not None:
        written = _RecordWriter(json.data, json.records, room, can_read).write()
        if written is not None:
            return written
    value = _read(json.data)
    advice_room = _ADVICE if can_read and room >= _ROOM_FOR_ADVICE else 0
    if value is not None and (shortened := shorten_value(value, room - advice_room)) is not None:
        return "\n".join(filter(None, [_advise([shortened], advice_room), shortened.text]))
    text = json.data.decode("utf-8", "surrogatepass")
    return cut_text(text, room - _WORDS).join("")


def _advise(shown: list[Shortened], room: int) -> str:
    """How all of a string that was cut is read: one example is enough."""
    path = next((write_path(each.cut) for each in shown if each.cut), "")
    advice = f'long strings are cut; one of them whole: path="{path}"' if path else ""
    return advice if len(advice) < room else ""


def _write_around(data: bytes, long_text: LongText, room: int, can_read: bool) -> str | None:
    """What stands around a long string, and its beginning and end, not as JSON: lines are lines."""
    text = _read(long_text.data)
    path = write_path(long_text.path)
    if not isinstance(text, str) or not path or len(path) > _LONGEST_PATH:
        return None
    frame = _write_frame(data, long_text.path, f"… {len(text):,} characters, below", room // _SURROUNDINGS_PART)
    head = "\n".join([*([frame] if frame else []), f"{path}, {len(text):,} characters:"])
    cut = cut_text(text, room - len(head) - len(path) - _WORDS)
    if cut.gap[0] <= 0:
        return None
    advice = f': path="{path}", offset={cut.gap[0]}' if can_read else ""
    return f"{head}\n{cut.join(advice)}"


class _RecordWriter:
    """Writes records."""

    def __init__(self, data: bytes, records: Records, room: int, can_read: bool) -> None:
        self._data = data
        self._records = records
        self._room = room
        self._can_read = can_read
        # What was written to see how long it is.
        self._lines: dict[int, str] = {}

    def write(self) -> str | None:
        """All that fits of them; `None` where not even the last can be shortened enough."""
        count = len(self._records.items)
        head = self._write_head()
        advice_room = _ADVICE if self._can_read and self._room >= _ROOM_FOR_ADVICE else 0
        left = self._room - sum(len(line) + 1 for line in head) - _WORDS - advice_room
        sizes = self._choose(left)
        rooms = share_room(sizes, left - len(sizes))
        last = self._write_record(count - 1, rooms[-1])
        if last is None:
            return None
        first: list[Shortened] = []
        for number, room in enumerate(rooms[:-1]):
            if (written := self._write_record(number, room)) is None:
                break
            first.append(written)
        if advice := _advise([*first, last], advice_room):
            head.append(advice)
        lines = [f"0 to {len(first) - 1}:", *(each.text for each in first)] if first else []
        return "\n".join([*head, *lines, *self._write_gap(len(first)), f"{count - 1}, the last:", last.text])

    def _write_head(self) -> list[str]:
        """How many there are and where, which shape they have, and what stands around them."""
        items, path = self._records.items, self._records.path
        where = f" at {truncate(write_path(path), _LONGEST_PATH)}" if path else ""
        sample = [value for item in items[:_SAMPLE] if (value := _read(item)) is not None]
        shape = truncate(write_shape(sample), self._room // _SHAPE_PART) if sample else ""
        named = " by name" if self._records.keys is not None else ""
        lines = [f"{len(items):,} records{named}{where}{f', each {shape}' if shape else ''}"]
        words = f"{len(items):,} records"
        if path and (frame := _write_frame(self._data, path, words, self._room // _FRAME_PART)):
            lines.append(f"around them: {frame}")
        return lines

    def _write_gap(self, shown: int) -> list[str]:
        left_out = len(self._records.items) - 1 - shown
        if not left_out:
            return []
        what = "1 record is" if left_out == 1 else f"{left_out:,} records are"
        return [f"[… {what} left out{f': offset={shown}' if self._can_read else ''} …]"]

    def _choose(self, left: int) -> list[int]:
        """The sizes of the records that are shown: the first ones, as many as fit, and at the end the last."""
        items = self._records.items
        most = max(left // min(len(items), _RECORD_PART) - 1, _WORDS)
        last = self._size(len(items) - 1, most)
        sizes: list[int] = []
        taken = min(last, most) + 1
        for number in range(len(items) - 1):
            size = self._size(number, most)
            taken += min(size, most) + 1
            if taken > left:
                break
            sizes.append(size)
        return [*sizes, last]

    def _size(self, number: int, most: int) -> int:
        item = self._records.items[number]
        size = len(memoryview(item))
        if size > _MUCH_LARGER * most:
            return size
        self._lines[number] = line = self._name(number) + _compact(item)
        return len(line)

    def _name(self, number: int) -> str:
        keys = self._records.keys
        return "" if keys is None else f"{exactjson.dump(exactjson.well_formed(keys[number])).decode()}:"

    def _write_record(self, number: int, room: int) -> Shortened | None:
        """One record on one line: as it is, or shortened all over."""
        if (line := self._lines.get(number)) is not None and len(line) <= room:
            return Shortened(line)
        value, name = _read(self._records.items[number]), self._name(number)
        if value is None or (shortened := shorten_value(value, room - len(name))) is None:
            return None
        cut = shortened.cut
        place = None if cut is None else (*self._records.path, self._records.step(number), *cut)
        return Shortened(name + shortened.text, place)


def _write_frame(data: bytes, path: tuple[Step, ...], words: str, room: int) -> str | None:
    """What stands around a value, with words in its place."""
    try:
        value = _enter(data, path, words)
    except (*UNREADABLE, exactjson.NotJson):
        return None
    shortened = shorten_value(value, room)
    return None if shortened is None else shortened.text


def _enter(data: bytes | Raw, path: tuple[Step, ...], words: str) -> Any:
    if not path:
        return words
    step = path[0]
    if isinstance(step, int):
        items = msgspec.json.decode(data, type=list[Raw])
        return [_enter(item, path[1:], words) if number == step else _glance(item) for number, item in enumerate(items)]
    members = msgspec.json.decode(data, type=dict[str, Raw])
    return {key: _enter(item, path[1:], words) if key == step else _glance(item) for key, item in members.items()}


def _glance(item: Raw) -> Any:
    """A value beside the records; of a large one only its size is told."""
    text = bytes(memoryview(item))
    return exactjson.parse(text) if len(text) <= 100_000 else f"… {len(text):,} bytes"


def _read(item: bytes | memoryview | Raw) -> Any:
    try:
        return parse_value(item)
    except exactjson.NotJson:
        return None


def _compact(item: Raw) -> str:
    text = bytes(memoryview(item))
    try:
        return msgspec.json.format(text, indent=-1).decode()
    except UNREADABLE:
        return text.decode("utf-8", "replace")
