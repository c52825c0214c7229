"""Claude's format: tool definitions, calls out of a message, results back, and tools that are loaded when found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pegboard.formats.calls import RequestedCall, items, parse_call, part
from pegboard.formats.content import TEXT_LIMIT, Media, Part, Text, answer, fit_media
from pegboard.formats.conversions import Conversions, SchemaRules
from pegboard.formats.format import Answers, Definition, ModelTools, ProviderFormat
from pegboard.formats.found import FIND, FIND_DESCRIPTION, hit_names
from pegboard.formats.namebook import NameBook
from pegboard.formats.pictures import PDF, PICTURES
from pegboard.tool import RegisteredTool

# It refuses a request with any other name of a parameter.
RULES = SchemaRules(key=re.compile(r"[a-zA-Z0-9_.-]{1,64}"))
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
    converted = conversions.of(tool, RULES)
    definition: dict[str, Any] = {
        "name": names.name(tool.name),
        "description": FIND_DESCRIPTION if deferred and tool.name == FIND else converted.description,
        "input_schema": converted.schema,
    }
    if tool.name in deferred:
        definition["defer_loading"] = True
    return definition


def parse_calls(reply: object) -> list[RequestedCall]:
    """The calls in a reply: a message, its content, or a list of blocks; without those that Anthropic runs itself."""
    return [
        parse_call(part(block, "id"), part(block, "name"), part(block, "input"))
        for block in items(reply, "content")
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


class AnthropicFormat(ProviderFormat):
    """The Messages API, with deferred tools that Claude loads when a result refers to them."""

    def __init__(self) -> None:
        # What was last offered as deferred.
        self._deferred: Mapping[str, RegisteredTool] = {}
        # What Claude was referred to: as long as a conversation refers to a tool, each of its requests has to define
        # it, whatever became of its server.
        self._referred: dict[str, RegisteredTool] = {}

    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[Definition]:
        return definitions(tools, names, conversions)

    def parse_calls(self, reply: object) -> list[RequestedCall]:
        return parse_calls(reply)

    def offer(self, tools: ModelTools, *, deferred: bool) -> list[Definition]:
        if not deferred:
            self._deferred = {}
            return super().offer(tools, deferred=False)
        unseen = tools.discovery() - {FIND}
        there = {name: tool for name, tool in tools.available().items() if name not in unseen}
        offered = {**self._referred, **there}
        shown = tools.visible() - self._referred.keys()
        self._deferred = {name: tool for name, tool in offered.items() if name not in shown}
        listed = tools.names.sort(offered.values())
        return definitions(listed, tools.names, tools.conversions, deferred=self._deferred)

    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        referable = self._referable(tools, deferred=deferred)
        for call, result in answers:
            if tools.names.tool(call.name) == FIND:
                self._referred |= {name: referable[name] for name in hit_names(result) if name in referable}
        return [results_message(answers, names=tools.names, deferred=referable)]

    def _referable(self, tools: ModelTools, *, deferred: bool | None) -> Mapping[str, RegisteredTool]:
        """What a model that was offered deferred tools, or not, can be referred to."""
        if deferred is None:
            return self._deferred
        if not deferred:
            return {}
        visible = tools.visible()
        return {name: tool for name, tool in tools.available().items() if name not in visible}
