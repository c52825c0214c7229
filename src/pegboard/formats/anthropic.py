"""Claude's form: tool definitions, calls out of a message, results back, and tools that are loaded when found."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pegboard.formats.calls import RequestedCall, items, parse_call, part
from pegboard.formats.content import TEXT_LIMIT, Media, Part, Text, answer, fit_media
from pegboard.formats.conversions import Conversions
from pegboard.formats.found import FIND, FIND_DESCRIPTION, hit_names
from pegboard.formats.namebook import NameBook
from pegboard.formats.pictures import PDF, PICTURES
from pegboard.tool import RegisteredTool

# Of a picture's base64, and of a document's.
_MOST_PICTURE = 5 * 1024 * 1024
_MOST_DOCUMENT = 30 * 1024 * 1024
# On either side of a picture; a screenshot of a whole page easily has more.
_MOST_PIXELS = 8000


def definitions(
    tools: Iterable[RegisteredTool],
    names: NameBook,
    conversions: Conversions,
    *,
    deferred: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Tools for `messages.create(tools=…)`, in their order.

    Those of `deferred`, by their names here, are not shown to the model until a result refers to them.
    """
    return [_definition(tool, names, conversions, deferred) for tool in tools]


def _definition(
    tool: RegisteredTool, names: NameBook, conversions: Conversions, deferred: Collection[str]
) -> dict[str, Any]:
    converted = conversions.of(tool, "anthropic")
    definition: dict[str, Any] = {
        "name": names.name(tool.name),
        "description": FIND_DESCRIPTION if deferred and tool.name == FIND else converted.description,
        "input_schema": converted.schema,
    }
    if tool.name in deferred:
        definition["defer_loading"] = True
    return definition


def parse_calls(message: object) -> list[RequestedCall]:
    """The calls in a reply: a message, its content, or a list of blocks; without those that Anthropic runs itself."""
    return [
        parse_call(part(block, "id"), part(block, "name"), part(block, "input"))
        for block in items(message, "content")
        if part(block, "type") == "tool_use"
    ]


def tool_result(call: RequestedCall | str, result: object, *, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """The `tool_result` block of one call."""
    found = answer(result, limit=limit)
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call if isinstance(call, str) else call.id,
        "content": [_block(each) for each in found.parts],
    }
    if found.is_error:
        block["is_error"] = True
    return block


def tool_references(
    call: RequestedCall | str, result: object, names: NameBook, deferred: Collection[str]
) -> dict[str, Any]:
    """The `tool_result` block of `tool_find`: what it found as references, which load the deferred ones of them.

    Only tools that the request defines can be referred to. Where nothing is to be loaded the result stays as it is.
    """
    found = [name for name in hit_names(result) if name in deferred]
    if not found:
        return tool_result(call, result)
    return {
        "type": "tool_result",
        "tool_use_id": call if isinstance(call, str) else call.id,
        "content": [{"type": "tool_reference", "tool_name": names.name(name)} for name in found],
    }


def results_message(
    answered: Iterable[tuple[RequestedCall, object]],
    *,
    names: NameBook | None = None,
    deferred: Collection[str] = (),
    limit: int = TEXT_LIMIT,
) -> dict[str, Any]:
    """The user's message that answers every call of a reply, each paired by its id, in one go as the API wants it."""
    blocks: list[dict[str, Any]] = []
    for call, result in answered:
        if names is not None and deferred and names.tool(call.name) == FIND:
            blocks.append(tool_references(call, result, names, deferred))
        else:
            blocks.append(tool_result(call, result, limit=limit))
    return {"role": "user", "content": blocks}


def _block(each: Part) -> dict[str, Any]:
    if isinstance(each, Media):
        most = _MOST_DOCUMENT if each.kind == PDF else _MOST_PICTURE
        each = fit_media(each, frozenset({*PICTURES, PDF}), most, _MOST_PIXELS)
    if isinstance(each, Text):
        return {"type": "text", "text": each.text}
    source = {"type": "base64", "media_type": each.kind, "data": each.data}
    return {"type": "document" if each.kind == PDF else "image", "source": source}
