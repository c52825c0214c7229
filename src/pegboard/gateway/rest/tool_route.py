"""An entry of the REST table that is a tool of Pegboard's own.

So a parameter means the same everywhere, is checked by the same schema, is described in the same words, and gets the
same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.gateway.rest.operations import (
    Operation,
    Parameter,
    Schema,
    operation,
    query_parameters,
    summarize,
    with_body,
)
from pegboard.gateway.rest.params import merge_arguments, query_arguments
from pegboard.gateway.rest.responses import Created, body_of
from pegboard.result import invalid
from pegboard.tool import ResultTool, Tool

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_WITH_BODY = {"POST", "PATCH"}
# What an answer says of itself, where it is not wrapped.
_STATE = {"success", "error", "isError"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoute:
    """A tool with its arguments from path, query and body."""

    method: str = field(kw_only=False)
    path: str = field(kw_only=False)
    # Its category is the name of its toolset.
    tool: type[Tool] = field(kw_only=False)
    # Which of its parameters stand in the path; one may be made of several parts.
    in_path: Mapping[str, Sequence[Parameter]] = field(default_factory=dict[str, Sequence[Parameter]])
    # Whether the path wins where the query says something else; else that is refused.
    path_wins: bool = False
    # Which stand in the query as well, where there is a body; whether that may be left out.
    in_query: Sequence[str] = ()
    body_required: bool = True
    # What an example of a body shows beside what has to be there.
    shows: Sequence[str] = ()
    # Names in the query that are others than the tool's, and what is missing if one that has to be there is not.
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    needs: Mapping[str, str] = field(default_factory=dict[str, str])
    # What it means that something was created, where that can be.
    created: str | None = None

    async def handle(self, rest: Rest, request: Request) -> Any:
        """The tool's answer."""
        given = await body_of(request) if self.method in _WITH_BODY else {}
        caller = rest.caller(request)
        toolset = str(self.tool.category)
        tool = rest.board.gate.own_tool(toolset, self.tool.name, caller.client.filter)
        arguments = self._arguments(request, tool, given)
        # Nobody who looks calls a tool.
        is_read = self.method == "GET"
        data = await rest.board.run_own(toolset, tool.name, arguments, caller, is_read=is_read)
        return Created(data) if self.created and data["created"] else data

    def _arguments(self, request: Request, tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
        for name, what in self.needs.items():
            if not request.query_params.get(name, "").strip():
                raise invalid(f"{name} is missing: {what}")
        in_query = query_arguments(request, tool, **self.names)
        in_path = {
            name: "/".join(request.path_params[part["name"]] for part in parts) for name, parts in self.in_path.items()
        }
        if self.path_wins:
            return merge_arguments(given, {**in_query, **in_path})
        return merge_arguments(merge_arguments(given, in_query), in_path)

    @property
    def operation(self) -> Operation:
        """The tool's own words, with each parameter where it stands."""
        has_body = self.method in _WITH_BODY
        schema = self.tool.input_schema
        properties = {name: each for name, each in schema["properties"].items() if name not in self.in_path}
        required = [name for name in schema.get("required", ()) if name not in self.in_path]
        queried = {name: each for name, each in properties.items() if not has_body or name in self.in_query}
        needed = [*required, *(self.names.get(name, name) for name in self.needs)]
        shown = {name: given for given, name in self.names.items()}
        parts = [part for each in self.in_path.values() for part in each]
        summary, rest = summarize(self.tool.description)
        described = operation(summary, self._data(), *parts, *query_parameters(queried, needed, shown))
        described |= {"description": rest} if rest else {}
        if self.created:
            answers = described["responses"]
            answers["201"] = {**answers["200"], "description": self.created}
        if not has_body:
            return described
        body = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        example = {name: properties[name]["examples"][0] for name in dict.fromkeys((*required, *self.shows))}
        return with_body(described, body, required=self.body_required, example=example)

    def _data(self) -> Schema:
        answers = (self.tool.output_schema or {})["properties"]
        if issubclass(self.tool, ResultTool):
            return answers["data"]
        return {"type": "object", "properties": {name: each for name, each in answers.items() if name not in _STATE}}
