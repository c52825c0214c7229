"""What a tool answered, for a model: texts, and what a model can look at.

Nothing that a tool sends may spoil a conversation: what a provider would refuse (audio, pictures of other kinds, broken
or huge data, nothing at all) becomes a text that says what it was.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pegboard.exactjson import NotJson, as_list, as_object, dump
from pegboard.formats.pictures import PDF, kind_of, size_of
from pegboard.result import ToolResult

# Characters of text in one result; about 25,000 tokens.
TEXT_LIMIT = 100_000
EMPTY = "(no output)"

_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml")


@dataclass(frozen=True, slots=True)
class Text:
    """Something to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """Something else, in base64."""

    data: str
    kind: str
    name: str = ""

    @property
    def size(self) -> int:
        """How many bytes it is, about."""
        return len(self.data) * 3 // 4


Part = Text | Media


@dataclass(frozen=True, slots=True)
class ResultContent:
    """A result in parts; at least one, and no text of them empty."""

    parts: tuple[Part, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All of it in words."""
        return "\n\n".join(part.text if isinstance(part, Text) else note(part) for part in self.parts)


def data_of(result: object) -> object:
    """What a `ToolResult` carries; anything else is that already."""
    return cast("ToolResult[Any]", result).data if isinstance(result, ToolResult) else result


def answer(result: object, *, limit: int = TEXT_LIMIT) -> ResultContent:
    """A `ToolResult`, or a tool's result as MCP has it, in parts; text beyond the limit is left out, which is said."""
    if isinstance(result, ToolResult):
        found = cast("ToolResult[Any]", result)
        if not found.success:
            return ResultContent(_fit([Text(_json(found.to_dict()))], limit), is_error=True)
        result = found.data
    message = _message(result)
    if message is None:
        parts: list[Part] = [Text(result if isinstance(result, str) else "" if result is None else _json(result))]
        return ResultContent(_fit(parts, limit))
    return ResultContent(_fit(_parts(message), limit), is_error=message.get("isError") is True)


def note(media: Media, why: str = "cannot be shown") -> str:
    """A few words for something that is left out."""
    named = f" {media.name}" if media.name else ""
    return f"[{media.kind}{named}, {media.size:,} bytes: {why}]"


def fit_media(media: Media, kinds: frozenset[str], most: int, most_pixels: int | None = None) -> Media | Text:
    """Something to look at, of a kind and size that is taken, its data in order; else words for it.

    `most` characters, and `most_pixels` on either side: a provider refuses the whole conversation for one beyond that.
    """
    if media.kind not in {*kinds, "image"}:
        return Text(note(media))
    if len(media.data) > most:
        return Text(note(media, "too large to be shown"))
    try:
        data = binascii.a2b_base64(media.data, strict_mode=True)
    except (binascii.Error, ValueError):
        return Text(note(media, "its data is broken"))
    # A provider compares what a picture says it is with what it is.
    real = kind_of(data)
    size = size_of(data)
    if real not in kinds or (real != PDF and size is None):
        return Text(note(media, "its data is broken" if media.data else "it is empty"))
    if most_pixels is not None and size is not None and max(size) > most_pixels:
        return Text(note(media, f"{size[0]:,} by {size[1]:,} pixels are too many to be shown"))
    return Media(media.data, real, media.name)


def _message(result: object) -> Mapping[str, Any] | None:
    """A result as MCP has it, also one that is an object of the SDK."""
    written = getattr(result, "model_dump", None)
    if callable(written):
        result = written(by_alias=True, exclude_none=True, mode="json")
    found = as_object(dict(cast("Mapping[str, Any]", result))) if isinstance(result, Mapping) else None
    return found if found is not None and (isinstance(found.get("content"), list) or "isError" in found) else None


def _parts(message: Mapping[str, Any]) -> list[Part]:
    blocks = [as_object(block) or {"type": "?", "value": block} for block in as_list(message.get("content")) or []]
    parts = [_part(block) for block in blocks]
    # It is there in words as well, says the protocol; where it is not, it would be lost.
    if "structuredContent" in message and not any(block.get("type") == "text" for block in blocks):
        parts.append(Text(_json(message["structuredContent"])))
    return parts


def _part(block: Mapping[str, Any]) -> Part:
    match block.get("type"):
        case "text" if isinstance(block.get("text"), str):
            return Text(block["text"])
        case "image" | "audio" as kind if isinstance(block.get("data"), str):
            return Media(_bare(block["data"]), _kind(block.get("mimeType"), kind))
        case "resource" if (resource := as_object(block.get("resource"))) is not None:
            return _resource(resource)
        case "resource_link":
            said = [block.get(key) for key in ("title", "name", "uri", "mimeType", "description")]
            return Text(f"[resource: {', '.join(dict.fromkeys(each for each in said if isinstance(each, str)))}]")
        case _:
            return Text(_json(block))


def _resource(resource: Mapping[str, Any]) -> Part:
    uri, text, blob = resource.get("uri"), resource.get("text"), resource.get("blob")
    where = uri if isinstance(uri, str) else ""
    if isinstance(text, str):
        return Text(f"{where}\n{text}" if where else text)
    if not isinstance(blob, str):
        return Text(_json(resource))
    kind = _kind(resource.get("mimeType"), "file")
    if kind.startswith(_TEXTUAL):
        try:
            return Text(f"{where}\n{binascii.a2b_base64(blob).decode()}")
        except ValueError:
            pass
    return Media(_bare(blob), kind, where.rstrip("/").rpartition("/")[2])


def _kind(given: object, otherwise: str) -> str:
    kind = given.partition(";")[0].strip().lower() if isinstance(given, str) else ""
    return {"image/jpg": "image/jpeg", "": otherwise}.get(kind, kind)


def _bare(data: str) -> str:
    """Base64 without the line breaks that some put into it, and without an address around it."""
    head, comma, rest = data.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        data = rest
    return "".join(data.split()) if any(blank in data for blank in "\n\r \t") else data


def _fit(parts: Sequence[Part], limit: int) -> tuple[Part, ...]:
    """No empty texts, and no more characters than the limit; there is always something to say."""
    kept: list[Part] = []
    left, lost = limit, 0
    for part in parts:
        if isinstance(part, Media):
            kept.append(part)
        elif part.text.strip():
            if left > 0:
                kept.append(Text(_whole(_cut(part.text, left))))
            else:
                lost += len(part.text)
            left -= len(part.text)
    if lost:
        kept.append(Text(f"[{lost:,} more characters are left out]"))
    return tuple(kept) or (Text(EMPTY),)


def _cut(text: str, limit: int) -> str:
    """Most of the beginning and some of the end, where results often stand."""
    if len(text) <= limit:
        return text
    end = limit // 5
    return f"{text[: limit - end]}\n[… {len(text) - limit:,} characters are left out …]\n{text[len(text) - end :]}"


def _whole(text: str) -> str:
    """Without halves of surrogate pairs, which cannot be sent to anybody."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _json(value: object) -> str:
    try:
        return dump(value).decode()
    except (NotJson, TypeError):
        return str(value)
