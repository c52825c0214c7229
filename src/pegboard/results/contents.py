"""The text of a result: what of it a model reads. Pictures, audio and other data are none of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw
from pydantic_core import from_json

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.results.path import items_of, lead_of, members_of
from pegboard.text import truncate

# Between the texts of a result that has several.
BETWEEN = "\n"
# What links to resources say is text, too, unless all of them together are short.
FREE_LINKS = 2000
_TEXTS_OF_LINK = ("uri", "name", "title", "description")
_MOVED_FROM_LINK = frozenset({"title", "description"})
# What stays of links that are not short leaves room for the link to the kept result.
_ROOM_OF_LINKS, _LONGEST_NAME = FREE_LINKS - 200, 100
# What some servers put a value into that is no object.
_WRAPPER = "result"
_QUOTE = ord('"')
# Long texts are read in portions of so many bytes, which end at a place that is found within so many.
_PORTION, _NEAR = 1024 * 1024, 64
# A backslash that is no second half of an escape, and half of a surrogate pair.
_ESCAPE_START = re.compile(rb"(?<=[^\\])\\")
_LOW_HALF = re.compile(rb"\\u[dD][c-fC-F]")


@dataclass(frozen=True, slots=True)
class TextPart:
    """One text of a result: a block's, an embedded resource's, or the structured content."""

    text: str
    # The number of its block; `None` for the structured content.
    block: int | None
    # The URI of the resource that it is of; one that is only linked to has it in its text.
    uri: str = ""
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class ResultTexts:
    """All texts of one result."""

    parts: list[TextPart]
    # The structured content as JSON, where there is some, and whether a text says the same.
    structured: str | None = None
    is_repeated: bool = False

    @property
    def characters(self) -> int:
        """How many there are to read, together."""
        return sum(len(part.text) for part in self.parts) + len(BETWEEN) * max(len(self.parts) - 1, 0)

    @property
    def whole(self) -> str:
        """Everything in one text."""
        return self.parts[0].text if len(self.parts) == 1 else BETWEEN.join(part.text for part in self.parts)


def parse_result(pieces: Sequence[bytes | memoryview]) -> dict[str, Any] | None:
    """A result that is still JSON, in pieces. Its texts, which are nearly all of it, are not looked through for numbers
    that need care."""
    members = members_of(b"".join(pieces))
    try:
        return None if members is None else {key: _parse_member(key, value) for key, value in members.items()}
    except exactjson.NotJson:
        return None


def _parse_member(key: str, value: Raw) -> Any:
    if key == "content" and (blocks := items_of(value)) is not None:
        return [_parse_block(block) for block in blocks]
    return exactjson.parse(bytes(memoryview(value)))


def _parse_block(block: Raw) -> Any:
    members = members_of(block)
    if members is None:
        return exactjson.parse(bytes(memoryview(block)))
    return {key: _parse_block(value) if key == "resource" else parse_text(value) for key, value in members.items()}


def parse_text(value: Raw | memoryview) -> Any:
    """The value of a JSON text that is likely a string: a long one is read in portions."""
    view = memoryview(value)
    if lead_of(view) != _QUOTE:
        return exactjson.parse(bytes(view))
    try:
        return from_json(bytes(view)) if len(view) <= _PORTION else "".join(_parse_portions(view))
    except ValueError:
        # No place to cut it, or half of a surrogate pair.
        return exactjson.parse(bytes(view))


def _parse_portions(view: memoryview) -> Iterator[str]:
    """A long JSON string in portions: while one is read, no other thread has its turn."""
    start, end = 1, len(view) - 1
    while start < end:
        stop = end if end - start <= _PORTION else _cut_before(view, start + _PORTION)
        yield from_json(b'"%b"' % view[start:stop])
        start = stop


def _cut_before(view: memoryview, at: int) -> int:
    """The last place up to here that is in no character and no escape, nor between the halves of a surrogate pair."""
    while view[at] & 0xC0 == 0x80:
        at -= 1
    near = bytes(view[at - _NEAR : at])
    # One of two such halves has six bytes.
    if b"\\" not in near[-6:]:
        return at
    starts = [found.start() for found in _ESCAPE_START.finditer(near)]
    if not starts:
        raise ValueError("a long row of escapes")
    start = at - _NEAR + starts[-1]
    return start - 6 if _LOW_HALF.match(view[start : start + 4]) else start


def least_size(result: Mapping[str, Any]) -> int:
    """How many characters its texts have, its structured content left out; found out at once."""
    return sum(len(part.text) for part in _parts(result))


def texts_of(result: Mapping[str, Any]) -> ResultTexts:
    """The texts of a result, in their order."""
    parts = _parts(result)
    if "structuredContent" not in result:
        return ResultTexts(parts)
    value = result["structuredContent"]
    structured = exactjson.dump(value).decode()
    plain = [part.text for part in parts if not part.is_link]
    is_repeated = len(plain) == 1 and _says_the_same(plain[0], value, structured)
    return ResultTexts(parts if is_repeated else [*parts, TextPart(structured, None)], structured, is_repeated)


def _parts(result: Mapping[str, Any]) -> list[TextPart]:
    blocks = as_list(result.get("content")) or []
    parts = [part for number, block in enumerate(blocks) if (part := _part(block, number)) is not None]
    links = [part for part in parts if part.is_link]
    if sum(len(part.text) for part in links) <= FREE_LINKS:
        return [part for part in parts if not part.is_link] if links else parts
    return parts


def shorten_links(links: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Links to resources by the numbers of their blocks, without what stands in the text now; only as many as are short
    together, since the text has the addresses of all."""
    kept: dict[int, dict[str, Any]] = {}
    left = _ROOM_OF_LINKS
    for number, link in links.items():
        shorter = {key: value for key, value in link.items() if key not in _MOVED_FROM_LINK}
        if isinstance(name := link.get("name"), str):
            shorter["name"] = truncate(name, _LONGEST_NAME)
        if (size := len(_say_link(shorter))) <= left:
            kept[number] = shorter
            left -= size
    return kept


def _say_link(link: Mapping[str, Any]) -> str:
    return "\n".join(text for key in _TEXTS_OF_LINK if isinstance(text := link.get(key), str))


def _part(block: Any, number: int) -> TextPart | None:
    content = as_object(block) or {}
    if content.get("type") == "text":
        text = content.get("text")
        return TextPart(text, number) if isinstance(text, str) else None
    if content.get("type") == "resource_link":
        return TextPart(_say_link(content), number, is_link=True)
    resource = as_object(content.get("resource")) if content.get("type") == "resource" else None
    if resource is None or not isinstance(resource.get("text"), str):
        return None
    return TextPart(resource["text"], number, str(resource.get("uri") or ""))


def _says_the_same(text: str, value: Any, structured: str) -> bool:
    """Whether a text is the structured content as JSON, however it is indented."""
    if text in (structured, value):
        return True
    # It is longer by its blanks alone; one that is shorter lacks something, but for the wrapper.
    if len(text) < len(structured) - 20:
        return False
    wrapped = as_object(value)
    inner = wrapped.get(_WRAPPER) if wrapped is not None and wrapped.keys() == {_WRAPPER} else None
    if isinstance(inner, str):
        return text == inner
    # To read it may take far more memory than it has itself.
    if len(text) > _PORTION and _count_values(text) > _count_values(structured):
        return False
    try:
        read = exactjson.parse(text)
    except exactjson.NotJson:
        return False
    return exactjson.is_same(read, value) or (inner is not None and exactjson.is_same(read, inner))


def _count_values(text: str) -> int:
    """About how many values a JSON text has: the same however it is indented, and whatever it escapes."""
    counter = exactjson.ValueCounter()
    for start in range(0, len(text), _PORTION):
        counter.feed(text[start : start + _PORTION].encode("utf-8", "surrogatepass"))
    return counter.values
