"""Plain JSON, for everything else: tools as MCP has them, calls and results as simple objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pegboard.formats.calls import RequestedCall, items, parse_call, part
from pegboard.formats.content import TEXT_LIMIT, answer, data_of
from pegboard.formats.conversions import Conversions
from pegboard.formats.format import Answers, Definition, ModelTools, ProviderFormat
from pegboard.formats.namebook import NameBook
from pegboard.tool import RegisteredTool

_SAID = ("title", "outputSchema", "annotations")


def definitions(tools: Iterable[RegisteredTool], names: NameBook) -> list[dict[str, Any]]:
    """Tools with all that a framework of one's own may want to know; schemas are the servers' own, as they came."""
    return [_definition(tool, names) for tool in tools]


def _definition(tool: RegisteredTool, names: NameBook) -> dict[str, Any]:
    said = tool.definition
    return {
        "name": names.name(tool.name),
        "description": str(said.get("description") or ""),
        "inputSchema": said.get("inputSchema", {"type": "object"}),
        "server": tool.server_name,
        **{key: said[key] for key in _SAID if key in said},
    }


def parse_calls(reply: object) -> list[RequestedCall]:
    """Calls as `{"id", "name", "arguments"}`: one, or a list of them; arguments may be text in JSON."""
    calls = [reply] if part(reply, "name") is not None else items(reply, "calls")
    return [parse_call(part(call, "id"), part(call, "name"), part(call, "arguments")) for call in calls]


def result(call: RequestedCall | str, outcome: object, *, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """A result as `{"id", "isError", "text"}`, with `data` where the tool has a structured answer."""
    found = answer(outcome, limit=limit)
    said: dict[str, Any] = {
        "id": call if isinstance(call, str) else call.id,
        "isError": found.is_error,
        "text": found.text,
    }
    if (structured := part(data_of(outcome), "structuredContent")) is not None:
        said["data"] = structured
    return said


class PlainJsonFormat(ProviderFormat):
    """Tools as MCP has them."""

    def parse_calls(self, reply: object) -> list[RequestedCall]:
        return parse_calls(reply)

    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[Definition]:
        return definitions(tools, names)

    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        return [result(call, outcome) for call, outcome in answers]
