"""OpenAI's older format, Chat Completions, which many other providers speak as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pegboard.formats.calls import RequestedCall, items, parse_call, part
from pegboard.formats.content import TEXT_LIMIT, Media, Text, answer, fit_media, note
from pegboard.formats.conversions import Conversion, Conversions
from pegboard.formats.format import Answers, Definition, ModelTools, ProviderFormat
from pegboard.formats.namebook import NameBook
from pegboard.formats.openai_responses import RULES
from pegboard.formats.pictures import PICTURES
from pegboard.tool import RegisteredTool

_MOST = 20 * 1024 * 1024
# A longer description of one tool makes this API refuse the whole request; that of its parameters has no limit.
_MOST_WORDS = 1024
_CUT = "… (all of it: see the parameters)"


def definitions(tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions) -> list[dict[str, Any]]:
    """Function tools for `chat.completions.create(tools=…)`, in their order."""
    return [_function(tool, names, conversions) for tool in tools]


def _function(tool: RegisteredTool, names: NameBook, conversions: Conversions) -> dict[str, Any]:
    converted = _fitting(conversions.of(tool, RULES))
    function: dict[str, Any] = {
        "name": names.name(tool.name),
        "description": converted.description,
        "parameters": converted.schema,
        "strict": converted.strict,
    }
    return {"type": "function", "function": function}


def _fitting(converted: Conversion) -> Conversion:
    """With a description that is taken; one that is too long stands in full with the parameters."""
    text = converted.description
    if len(text) <= _MOST_WORDS:
        return converted
    own = converted.schema.get("description")
    whole = f"{text}\n\n{own}" if isinstance(own, str) and own else text
    cut = text[: _MOST_WORDS - len(_CUT)] + _CUT
    return replace(converted, description=cut, schema={**converted.schema, "description": whole})


def parse_calls(reply: object) -> list[RequestedCall]:
    """The calls in a reply: a completion (of its first choice), a choice, a message, or a list of tool calls."""
    choices = part(reply, "choices")
    message = choices[0] if choices else reply
    message = part(message, "message") or message
    return [
        parse_call(part(call, "id"), part(part(call, "function"), "name"), part(part(call, "function"), "arguments"))
        for call in items(message, "tool_calls")
        if part(call, "type") in {"function", None}
    ]


def results_messages(
    answered: Iterable[tuple[RequestedCall | str, object]], *, pictures: bool = True, limit: int = TEXT_LIMIT
) -> list[dict[str, Any]]:
    """The messages that answer every call of a reply.

    A tool's message is text alone there. Pictures follow in one message of the user's, behind all of the tools', and
    each says whose it is; for a model that cannot see, `pictures=False` leaves them out.
    """
    messages: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    for call, result in answered:
        call_id = call if isinstance(call, str) else call.id
        found = answer(result, limit=limit)
        texts = ["Error:"] if found.is_error else []
        for each in found.parts:
            if isinstance(each, Text):
                texts.append(each.text)
                continue
            picture = fit_media(each, PICTURES, _MOST) if pictures else Text(note(each))
            texts.append(picture.text if isinstance(picture, Text) else note(each, "in the next message of the user"))
            seen += [] if isinstance(picture, Text) else _picture(call_id, picture)
        messages.append({"role": "tool", "tool_call_id": call_id, "content": "\n\n".join(texts)})
    return [*messages, {"role": "user", "content": seen}] if seen else messages


def _picture(call_id: str, picture: Media) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": f"From the result of {call_id}:"},
        {"type": "image_url", "image_url": {"url": f"data:{picture.kind};base64,{picture.data}"}},
    ]


class OpenAiChatFormat(ProviderFormat):
    """Chat Completions."""

    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[Definition]:
        return definitions(tools, names, conversions)

    def parse_calls(self, reply: object) -> list[RequestedCall]:
        return parse_calls(reply)

    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        return results_messages(answers)
