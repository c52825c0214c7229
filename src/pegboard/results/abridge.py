"""Abridges a result: what a model is given of one that is too large, and what it is told of the rest.

Of JSON that is the list with the most bytes: its shape, the first records that fit and the last; of any other text, its
beginning and its end. Everything that is no text stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.results.contents import BETWEEN, ResultTexts, TextPart, shorten_links
from pegboard.results.cut import cut_text, share_room
from pegboard.results.json_part import JsonPart
from pegboard.results.json_writer import write_json
from pegboard.results.keeper import HANDLE_KEY, URI
from pegboard.results.structured import shorten_structured
from pegboard.text import truncate

META_KEY = "pegboard/result"
# Without these few, a part says nothing.
_LEAST_ROOM = 100
_MOST_BLOCKS = 200
# Of servers that take kept results so many are named, where there is that much room.
_MOST_TAKERS, _ROOM_FOR_TAKERS = 5, 2000


@dataclass(frozen=True, slots=True)
class Note:
    """What is said of the rest: the id that it is kept under, if it is, until when, and how it is read."""

    result_id: str | None
    expires: str = ""
    # Whether the client has the tool that reads it, and whether it knows links to resources.
    can_read: bool = True
    links: bool = True
    # Servers whose tools take a kept result as an argument.
    takers: tuple[str, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether the client can read the rest."""
        return self.result_id is not None and self.can_read


def abridge(
    result: Mapping[str, Any], texts: ResultTexts, json: JsonPart | None, cap: int, note: Note, schema: Any
) -> dict[str, Any]:
    """The result in at most `cap` characters of text; `schema` is what its tool says of its structured content."""
    structured, room = None, cap
    if texts.structured is not None and schema is not None and result.get("isError") is not True:
        structured = shorten_structured(result["structuredContent"], schema, cap // 2, _whole(note))
        size = len(exactjson.dump(structured).decode())
        # What stays whole although it is too large takes nothing from the text: that would be left with no room.
        room = cap if size > cap // 2 else cap - size
    left = room - len(_head(texts.characters, room, room, note)) - 2
    body = _write_body(texts, json, note, left)
    if len(body) > left:
        body = _write_text(texts.whole, left, 0, note)
    text = f"{_head(texts.characters, len(body), room, note)}\n{body}"
    abridged = {key: value for key, value in result.items() if key != "structuredContent"}
    abridged["content"] = _replace_texts(result, texts, [{"type": "text", "text": text}, *_link(texts, json, note)])
    if structured is not None:
        abridged["structuredContent"] = structured
    abridged["_meta"] = {**(as_object(result.get("_meta")) or {}), META_KEY: _describe(texts, json, note)}
    return abridged


def _head(characters: int, shown: int, room: int, note: Note) -> str:
    said = f"[pegboard] {characters:,} characters, shown {shown:,}; {_whole(note)}"
    if not note.takers or not note.is_readable or room < _ROOM_FOR_TAKERS:
        return said
    names = ", ".join([*note.takers[:_MOST_TAKERS], *(["…"] if len(note.takers) > _MOST_TAKERS else [])])
    return f'{said}\nas an argument of tools of {names}: {{"{HANDLE_KEY}": "{note.result_id}", "path": "…"}}'


def _whole(note: Note) -> str:
    if note.result_id is None:
        return "the rest could not be kept: call again, and ask for less"
    if not note.can_read:
        return f"whole: the resource {URI}{note.result_id}"
    return f'whole: result_read("{note.result_id}")'


def _link(texts: ResultTexts, json: JsonPart | None, note: Note) -> list[dict[str, Any]]:
    if note.result_id is None or not note.links:
        return []
    is_json = json is not None and len(texts.parts) == 1
    link = {
        "type": "resource_link",
        "uri": f"{URI}{note.result_id}",
        "name": note.result_id,
        "title": "The whole result",
    }
    size = sum(len(part.text.encode("utf-8", "replace")) for part in texts.parts) + len(texts.parts) - 1
    return [{**link, "mimeType": "application/json" if is_json else "text/plain", "size": size}]


def _describe(texts: ResultTexts, json: JsonPart | None, note: Note) -> dict[str, Any]:
    said: dict[str, Any] = {} if note.result_id is None else {"id": note.result_id}
    said["characters"] = texts.characters
    if json is not None and json.records is not None:
        said |= {"records": len(json.records.items), "path": json.path}
    return said if note.result_id is None else {**said, "expires": note.expires}


def _replace_texts(result: Mapping[str, Any], texts: ResultTexts, ours: list[Any]) -> list[Any]:
    """The blocks of a result with ours where its first text stood."""
    blocks = as_list(result.get("content")) or []
    taken = {part.block for part in texts.parts if not part.is_link}
    links = {number: blocks[number] for part in texts.parts if part.is_link and (number := part.block) is not None}
    shorter = shorten_links(links)
    first = min((number for number in taken if number is not None), default=0)
    left = {number: block for number, block in enumerate(blocks) if number not in taken | links.keys()} | shorter
    before = [left[number] for number in sorted(left) if number < first]
    after = [left[number] for number in sorted(left) if number >= first]
    return [*before, *ours, *after]


def _write_body(texts: ResultTexts, json: JsonPart | None, note: Note, room: int) -> str:
    """All texts of a result, each as far as it fits."""
    parts = texts.parts
    shown = parts[:_MOST_BLOCKS]
    heads = [_write_head(part, number, len(parts)) for number, part in enumerate(shown)]
    left = room - sum(len(head) + 1 for head in heads) - (40 if len(shown) < len(parts) else 0)
    if left < _LEAST_ROOM * len(shown):
        # So many texts that there is no room for a part of each.
        cut = cut_text(texts.whole, room - 2 * _LEAST_ROOM)
        return cut.join(_go_on(cut.gap[0], note))
    rooms = share_room([len(part.text) for part in shown], left)
    written: list[str] = []
    start = 0
    for number, (part, head, own) in enumerate(zip(shown, heads, rooms, strict=True)):
        is_json = json is not None and json.number == number and len(part.text) > own
        if is_json and json is not None:
            text = write_json(json, own, can_read=note.is_readable)
        else:
            text = _write_text(part.text, own, start, note)
        written.append(f"{head}\n{text}" if head else text)
        start += len(part.text) + len(BETWEEN)
    if len(shown) < len(parts):
        written.append(f"[… {len(parts) - len(shown):,} more texts …]")
    return "\n".join(written)


def _write_head(part: TextPart, number: int, count: int) -> str:
    """What tells a text from the others of its result."""
    if count == 1:
        return part.uri[:200]
    what = "structured content" if part.block is None else truncate(part.uri, 200)
    return f"[{number + 1} of {count}{f': {what}' if what else ''}]"


def _write_text(text: str, room: int, start: int, note: Note) -> str:
    if len(text) <= room:
        return text
    # The words in the gap have their room.
    cut = cut_text(text, room - _LEAST_ROOM)
    return cut.join(_go_on(start + cut.gap[0], note))


def _go_on(place: int, note: Note) -> str:
    return f": offset={place}" if note.is_readable else ""
