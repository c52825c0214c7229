"""A tasks.md file: its tasks, and where in its bytes each box is.

Only a box is ever changed, so a file is taken as bytes. What is like ASCII is read byte by byte as Latin-1, where a
character's place is its byte's; UTF-16 and UTF-32 are told by their mark, and places are counted back.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pegboard.toolsets.tasks.markdown import Line, Lines, one_ending, plain_lines
from pegboard.toolsets.tasks.task import PRINTED, TaskId, parse_printed_number

_BOX = re.compile(r"[ \t]*[-*][ \t]+\[([ xX])\](?:[ \t]+(.*))?$")
# Also what only resembles it: a dependency that cannot be read must not be lost.
_DEPENDS = re.compile(r"<!--\s*depend(.*?)(-->|$)", re.IGNORECASE | re.DOTALL)
_LIST = re.compile(r"(?:s(?:[ _-]?on)?)?\s*:(.*)", re.IGNORECASE | re.DOTALL)
_MOST_SHOWN = 10
_MARKS = (
    (codecs.BOM_UTF8, "latin-1"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(slots=True)
class Item:
    """A task as its line says it."""

    number: int
    content: str
    ticked: bool
    line: int
    # Where in the file's bytes the character between the brackets begins.
    box: int
    digest: str
    depends: tuple[TaskId, ...] = ()
    unreadable: tuple[str, ...] = ()


class Problem(NamedTuple):
    """Something in a file that is not as it should be."""

    line: int
    message: str
    advice: str


@dataclass(slots=True)
class TaskFile:
    """The tasks of one file, in their order."""

    items: list[Item]
    problems: list[Problem]
    codec: str

    def item(self, number: int) -> Item | None:
        """The task of this number."""
        return self.items[number - 1] if 0 < number <= len(self.items) else None


class _Text(NamedTuple):
    """A file's characters, how they were made of bytes, and how many bytes come before the first."""

    characters: str
    codec: str
    start: int
    readable: str


def parse(data: bytes, change: str) -> TaskFile:
    """Every task of a change's file."""
    text = _decode(data)
    lines = plain_lines(one_ending(text.characters))
    file = TaskFile([], [], text.codec)
    if text.codec == "latin-1" and b"\0" in data:
        file.problems.append(Problem(1, "the file holds NUL characters", "save it as UTF-8"))
    counted, place = 0, text.start
    # Read at the end: a number may be that of a task further down.
    depending: list[tuple[Item, list[re.Match[str]]]] = []
    for line in lines.plain:
        match = _BOX.match(line.text)
        if match is None:
            continue
        at = line.start + match.start(1)
        if text.codec == "latin-1":
            place = text.start + at
        else:
            place += len(text.characters[counted:at].encode(text.codec, "surrogatepass"))
            counted = at
        item, comments = _item(len(file.items) + 1, line, match, place, text)
        if comments:
            depending.append((item, comments))
        if item.content:
            file.items.append(item)
        else:
            file.problems.append(Problem(line.number, "a box without words is not a task", "say what is to be done"))
    numbers = _places(file.items) if depending else {}
    for item, comments in depending:
        _read_depends(item, comments, change, numbers)
        file.problems += _unread(item, numbers)
    file.problems += _stray(lines)
    if lines.unclosed is not None:
        what = "a code fence or comment begins here and is never closed, so nothing behind it is read"
        file.problems.append(Problem(lines.unclosed, what, "close it"))
    return file


def with_box(data: bytes, codec: str, item: Item, *, ticked: bool) -> bytes:
    """The file's bytes with one box changed."""
    mark = ("x" if ticked else " ").encode(codec)
    return data[: item.box] + mark + data[item.box + len(mark) :]


def digest(content: str) -> str:
    """What tells a task from another: its words, without the number that is printed before them."""
    words = " ".join(content.split())
    printed = PRINTED.match(words)
    key = words[printed.end() :] if printed is not None else words
    return hashlib.blake2b((key or words).encode("utf-8", "replace"), digest_size=12).hexdigest()


def decode_text(data: bytes) -> str:
    """A file's text for readers, whatever it was written in."""
    text = _decode(data)
    return _words(text.characters, text)


def _decode(data: bytes) -> _Text:
    for mark, codec in _MARKS:
        if data.startswith(mark):
            rest = data[len(mark) :]
            if codec == "latin-1":
                return _Text(rest.decode(codec), codec, len(mark), _readable(rest))
            try:
                return _Text(rest.decode(codec, "surrogatepass"), codec, len(mark), codec)
            except UnicodeDecodeError:
                break
    return _Text(data.decode("latin-1"), "latin-1", 0, _readable(data))


def _readable(data: bytes) -> str:
    """What bytes that are like ASCII were most likely written in."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _words(characters: str, text: _Text) -> str:
    if text.codec != "latin-1":
        return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return characters if characters.isascii() else characters.encode("latin-1").decode(text.readable, "replace")


def _item(number: int, line: Line, match: re.Match[str], place: int, text: _Text) -> tuple[Item, list[re.Match[str]]]:
    """A task, and the comments in its line that say what it depends on."""
    # As no database keeps it, a NUL would be another text each time it is compared.
    content = _words(match[2] or "", text).replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    comments: list[re.Match[str]] = []
    if "<!--" in content:
        comments = list(_DEPENDS.finditer(content))
        content = _DEPENDS.sub("", content).strip()
    item = Item(
        number=number,
        content=content,
        ticked=match[1] != " ",
        line=line.number,
        box=place,
        digest=digest(content),
    )
    return item, comments


def _stray(lines: Lines) -> list[Problem]:
    """Dependencies that stand in no task's line: a text that was wrapped takes them to the next one."""
    what, advice = "a dependency that stands in no task's line is not read", "put it at the end of the task's line"
    return [
        Problem(line.number, what, advice)
        for line in (*lines.plain, *lines.comments)
        if "<!--" in line.text and _BOX.match(line.text) is None and _names_dependencies(line.text)
    ]


def _names_dependencies(text: str) -> bool:
    return any(comment[2] and _LIST.fullmatch(comment[1].strip()) is not None for comment in _DEPENDS.finditer(text))


def _unread(item: Item, numbers: Mapping[str, Sequence[int]]) -> list[Problem]:
    return [Problem(item.line, *_why_unread(part, numbers)) for part in item.unreadable]


def _why_unread(part: str, numbers: Mapping[str, Sequence[int]]) -> tuple[str, str]:
    if (places := numbers.get(part)) is not None:
        shown = ", ".join(map(str, places[:_MOST_SHOWN]))
        return f'the dependency "{part}" fits several tasks', f"write the place of the one that is meant: {shown}"
    advice = (
        "write <!-- depends: 1, 2.3 --> with places or printed numbers of this file, or other-change/3 with a place"
    )
    return f'the dependency "{part}" cannot be read', advice


def _places(items: Iterable[Item]) -> dict[str, list[int]]:
    """Which tasks have a number with a dot before their text."""
    found: dict[str, list[int]] = {}
    for item in items:
        if (printed := parse_printed_number(item.content)) is not None and "." in printed:
            found.setdefault(printed, []).append(item.number)
    return found


def _read_depends(
    item: Item, comments: Iterable[re.Match[str]], change: str, numbers: Mapping[str, Sequence[int]]
) -> None:
    depends: dict[TaskId, None] = {}
    unreadable: dict[str, None] = {}
    for part in chain.from_iterable(map(_parts, comments)):
        places = numbers.get(part, ())
        task = TaskId(change, places[0]) if len(places) == 1 else TaskId.parse(part, change)
        if task is None:
            unreadable[part] = None
        else:
            depends[task] = None
    item.depends, item.unreadable = tuple(depends), tuple(unreadable)


def _parts(comment: re.Match[str]) -> list[str]:
    """What a comment names; where it cannot be read, the comment."""
    named = _LIST.fullmatch(comment[1].strip())
    parts = [part for part in map(str.strip, named[1].split(",")) if part] if named is not None and comment[2] else []
    return parts or [comment[0].strip()]
