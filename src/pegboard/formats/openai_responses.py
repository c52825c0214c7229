"""OpenAI's format for the Responses API: functions, a namespace a server, its tool search run by us, results back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pegboard.formats.calls import RequestedCall, items, parse_call, part
from pegboard.formats.content import TEXT_LIMIT, Media, Part, ResultContent, Text, answer, fit_media
from pegboard.formats.conversions import Conversions, SchemaRules
from pegboard.formats.format import Answers, Definition, ModelTools, ProviderFormat
from pegboard.formats.found import FIND, FIND_DESCRIPTION, hit_names
from pegboard.formats.namebook import NameBook
from pegboard.formats.pictures import PDF, PICTURES
from pegboard.tool import RegisteredTool

RULES = SchemaRules(items=True, plain_patterns=True, strict_mode=True)
# Of a file's base64.
_MOST = 20 * 1024 * 1024


def definitions(
    tools: Iterable[RegisteredTool],
    names: NameBook,
    conversions: Conversions,
    *,
    deferred: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Function tools for `responses.create(tools=…)`, in their order; those of `deferred` are loaded when found."""
    return [_function(tool, names.name(tool.name), conversions, deferred=tool.name in deferred) for tool in tools]


def namespaces(
    tools: Iterable[RegisteredTool],
    names: NameBook,
    conversions: Conversions,
    *,
    about: Mapping[str, str] | None = None,
    deferred: bool = True,
) -> list[dict[str, Any]]:
    """One namespace a server with its tools, and static tools, which have no server, as functions before them.

    `about` is what is said of each server; there should be something, since a model sees that alone at first.
    """
    functions: list[dict[str, Any]] = []
    grouped: dict[str, dict[str, Any]] = {}
    for tool in tools:
        namespace, name = names.place(tool.name)
        function = _function(tool, name, conversions, deferred=deferred and tool.server_name is not None)
        if namespace is None:
            functions.append(function)
            continue
        group = grouped.setdefault(namespace, _namespace(namespace, (about or {}).get(tool.server_name or "")))
        group["tools"].append(function)
    return [*functions, *grouped.values()]


def tool_search(
    find: RegisteredTool, conversions: Conversions, *, description: str = FIND_DESCRIPTION
) -> dict[str, Any]:
    """The tool search that the client runs, with the parameters of `tool_find`."""
    parameters = conversions.of(find, RULES).schema
    return {"type": "tool_search", "execution": "client", "description": description, "parameters": parameters}


def parse_calls(reply: object) -> list[RequestedCall]:
    """The calls in a reply: a response, its output, or a list of items; with searches that the client has to run."""
    calls: list[RequestedCall] = []
    for item in items(reply, "output"):
        kind = part(item, "type")
        if kind == "function_call":
            said = (part(item, "call_id"), part(item, "name"), part(item, "arguments"), part(item, "namespace"))
            calls.append(parse_call(*said))
        elif kind == "tool_search_call" and part(item, "execution") == "client":
            call_id = part(item, "call_id") or part(item, "id")
            calls.append(parse_call(call_id, FIND, part(item, "arguments"), is_search=True))
    return calls


def function_output(call: RequestedCall | str, result: object, *, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """The `function_call_output` item of one call. There is no mark for an error there, so the text says it."""
    found = answer(result, limit=limit)
    return {
        "type": "function_call_output",
        "call_id": call if isinstance(call, str) else call.id,
        "output": _output(found),
    }


def search_output(
    call: RequestedCall | str,
    found: Iterable[RegisteredTool],
    names: NameBook,
    conversions: Conversions,
    *,
    about: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The `tool_search_output` item that loads the tools that were found, a namespace a server."""
    return {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": call if isinstance(call, str) else call.id,
        "status": "completed",
        "tools": namespaces(found, names, conversions, about=about),
    }


def outputs(
    answered: Iterable[tuple[RequestedCall, object]],
    tools: Mapping[str, RegisteredTool],
    names: NameBook,
    conversions: Conversions,
    *,
    about: Mapping[str, str] | None = None,
    limit: int = TEXT_LIMIT,
) -> list[dict[str, Any]]:
    """The items that answer every call of a reply; `tools` are those that a search may load, by their names here."""
    made: list[dict[str, Any]] = []
    for call, result in answered:
        if call.is_search:
            found = [tools[name] for name in hit_names(result) if name in tools]
            made.append(search_output(call, found, names, conversions, about=about))
        else:
            made.append(function_output(call, result, limit=limit))
    return made


def _function(tool: RegisteredTool, name: str, conversions: Conversions, *, deferred: bool) -> dict[str, Any]:
    converted = conversions.of(tool, RULES)
    function: dict[str, Any] = {
        "type": "function",
        "name": name,
        "description": converted.description,
        "parameters": converted.schema,
        # Always said: where it is not, the API makes a schema strict by itself, and optional parameters required.
        "strict": converted.strict,
    }
    if deferred:
        function["defer_loading"] = True
    return function


def _namespace(name: str, about: str | None) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": about or f"Tools of {name}", "tools": []}


def _output(found: ResultContent) -> str | list[dict[str, Any]]:
    parts = [
        fit_media(each, frozenset({*PICTURES, PDF}), _MOST) if isinstance(each, Media) else each for each in found.parts
    ]
    parts = [*([Text("Error:")] if found.is_error else []), *parts]
    if all(isinstance(each, Text) for each in parts):
        return "\n\n".join(each.text for each in parts if isinstance(each, Text))
    return [_input(each) for each in parts]


def _input(each: Part) -> dict[str, Any]:
    if isinstance(each, Text):
        return {"type": "input_text", "text": each.text}
    data = f"data:{each.kind};base64,{each.data}"
    if each.kind == PDF:
        return {"type": "input_file", "filename": each.name or "document.pdf", "file_data": data}
    return {"type": "input_image", "image_url": data, "detail": "auto"}


class OpenAiFormat(ProviderFormat):
    """The Responses API, with its tool search run by us."""

    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[Definition]:
        return definitions(tools, names, conversions)

    def parse_calls(self, reply: object) -> list[RequestedCall]:
        return parse_calls(reply)

    def offer(self, tools: ModelTools, *, deferred: bool) -> list[Definition]:
        if not deferred:
            return super().offer(tools, deferred=False)
        available, shown = tools.available(), tools.visible() - tools.discovery()
        functions = definitions(
            (tool for name, tool in available.items() if name in shown), tools.names, tools.conversions
        )
        return [*functions, tool_search(available[FIND], tools.conversions)]

    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        return outputs(answers, tools.available(), tools.names, tools.conversions, about=tools.instructions())
