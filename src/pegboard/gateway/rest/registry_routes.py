"""REST routes of the MCP registry: search it, and see what a server of it would become here. Nothing is changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.exactjson import as_object
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    Schema,
    list_of,
    object_with,
    operation,
    path_parameter,
    query_parameter,
    with_body,
)
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import members_of
from pegboard.mcp_registry.question import WrongAnswer
from pegboard.mcp_registry.recipe import CannotRun
from pegboard.mcp_registry.rows import detail_row, page_row, proposal_row
from pegboard.mcp_registry.template import UnusableText
from pegboard.result import invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_MOST = 100
_LONGEST_QUERY = 1000
_PROPOSAL: Schema = {
    "use": {"type": "integer", "minimum": 1, "description": "Which of its choices; the first if nothing is said."},
    "answers": {**OBJECT, "description": "Values by the keys of its inputs. Secrets are not taken into the entry."},
}


async def _search(rest: Rest, request: Request) -> Any:
    check_query(request, ("q", "limit", "cursor"))
    query = request.query_params.get("q", "")
    if not query.strip():
        raise invalid("q is missing: what to search for")
    if len(query) > _LONGEST_QUERY:
        raise invalid(f"q has more than {_LONGEST_QUERY:,} characters")
    limit, offset = _number(request, "limit", 10, 1, _MOST), _number(request, "cursor", 0, 0, 10**6)
    found = await rest.mcp_registry.search(query)
    return await asyncio.to_thread(page_row, found, limit, offset)


async def _server(rest: Rest, request: Request) -> Any:
    check_query(request, ("version",))
    name, version = str(request.path_params["name"]), request.query_params.get("version") or "latest"
    found = await rest.mcp_registry.server(name, version)
    return await asyncio.to_thread(detail_row, found)


async def _propose(rest: Rest, request: Request) -> Any:
    body = await members_of(request, _PROPOSAL)
    use, answers = body.get("use", 1), as_object(body.get("answers", {}))
    if not isinstance(use, int) or isinstance(use, bool):
        raise invalid("use must be a whole number")
    if answers is None or not all(isinstance(each, str) for each in answers.values()):
        raise invalid("answers must be an object of texts")
    found = await rest.mcp_registry.server(str(request.path_params["name"]), "latest")
    try:
        return await asyncio.to_thread(proposal_row, found, use, {key: [text] for key, text in answers.items() if text})
    except (WrongAnswer, UnusableText, CannotRun) as exc:
        raise invalid(str(exc)) from None


def _number(request: Request, name: str, usual: int, low: int, high: int) -> int:
    text = request.query_params.get(name) or str(usual)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not low <= number <= high:
        raise invalid(f"{name} must be a whole number from {low} to {high}, found {text[:40]!r}")
    return number


_SERVER = {
    "type": "object",
    "required": ["name", "publisher", "version", "status", "runs"],
    "properties": {
        **dict.fromkeys(("name", "publisher", "title", "description", "version", "updatedAt"), TEXT),
        "status": {"enum": ["active", "deprecated"]},
        "runs": {"type": "array", "items": OBJECT, "description": "The ways to run it: command, or why it cannot."},
    },
}

ROUTES = (
    ApiRoute(
        "GET",
        "/api/registry",
        _search,
        operation(
            "Servers of the MCP registry that fit a query, best first",
            object_with("servers", list_of(_SERVER), total={"type": "integer"}, notes=list_of(TEXT)),
            query_parameter("q", "What the server should do, in plain words.", required=True),
            query_parameter("limit", "How many at most: 1 to 100, 10 if nothing is said."),
            query_parameter("cursor", "nextCursor of the answer before."),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/registry/{name:path}",
        _server,
        operation(
            "A server of the MCP registry, with the config entry that each way to run it would become",
            object_with("choices", list_of(OBJECT), serverName=TEXT, notes=list_of(TEXT)),
            path_parameter("name"),
            query_parameter("version", "Which version; the latest if nothing is said."),
        ),
    ),
    ApiRoute(
        "POST",
        "/api/registry/{name:path}",
        _propose,
        with_body(
            operation(
                "The config entry that one way to run it becomes with these values; nothing is changed",
                object_with("entry", OBJECT, command=TEXT, variables=list_of(TEXT)),
                path_parameter("name"),
            ),
            {"type": "object", "properties": _PROPOSAL},
            required=False,
            example={"use": 1, "answers": {"units": "metric"}},
        ),
    ),
)
