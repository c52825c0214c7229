"""REST routes of the tools of all servers: list, search, describe, call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.calls import FailedResult
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.call_stream import CallStream, wants_stream
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    list_of,
    object_with,
    operation,
    path_parameter,
    query_parameter,
    with_body,
)
from pegboard.gateway.rest.params import check_query, read_flag, read_number
from pegboard.gateway.rest.responses import Failed, body_of
from pegboard.gateway.rest.server_routes import server_problem
from pegboard.listing.view import Filter
from pegboard.protocol.eras import CAP_KEY
from pegboard.result import invalid
from pegboard.results.caps import OFF, cap_problem
from pegboard.servers.errors import RpcError, failure_of

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_LONGEST_WORDS = 1000
_ORDERS = ("name", "server", "tokens")
_STATUSES = ("available", "unavailable", "disabled", "needs_auth")
TOOL = {
    "type": "object",
    "required": ["name", "server", "description", "status"],
    "properties": {
        "name": TEXT,
        "server": {"type": ["string", "null"], "description": "null for Pegboard's own tools."},
        "description": TEXT,
        "tokens": {"type": "integer", "description": "What its definition costs in a prompt: a token is four bytes."},
        "status": {"enum": ["available", "unavailable", "disabled", "needs_auth"]},
        "reason": TEXT,
        "staleSince": {"type": "string", "format": "date-time"},
        "nextTryInSeconds": {"type": "number"},
    },
}
_NAME = path_parameter("name")
_BRIEF = query_parameter(
    "brief", "true: of each description at most 300 characters. GET /api/tools/{name} has the whole."
)
# What the next round of a call brings that asked something.
_ROUND: dict[str, type] = {"inputResponses": dict, "requestState": str}
_BODY = {
    "type": "object",
    "properties": {
        "arguments": OBJECT,
        "inputResponses": {**OBJECT, "description": "Answers to what the call asked; with accept: text/event-stream."},
        "requestState": {**TEXT, "description": "The state that came with the questions."},
    },
    "additionalProperties": False,
}


async def _tools(rest: Rest, request: Request) -> Any:
    check_query(request, ("server", "prefix", "status", "words", "order", "limit", "offset", "brief"))
    query = request.query_params
    status = query.get("status") or None
    if status is not None and status not in _STATUSES:
        raise invalid(f"status must be one of {', '.join(_STATUSES)}, found {status[:40]!r}")
    chosen, client = Filter.of(query.get("server"), query.get("prefix")), rest.caller(request).client
    for name in sorted(chosen.servers or ()):
        if problem := server_problem(rest.board, name, client.filter):
            raise invalid(problem)
    order = query.get("order") or _ORDERS[0]
    if order not in _ORDERS:
        raise invalid(f"order must be one of {', '.join(_ORDERS)}, found {order[:40]!r}")
    limit = read_number(request, "limit", 0) if query.get("limit") else None
    await rest.board.discover_new(client.filter)
    choice = rows.ToolChoice(
        chosen.within(client.filter),
        status,
        _read_words(query.get("words") or ""),
        order,
        read_number(request, "offset", 0),
        limit,
        read_flag(request, "brief"),
    )
    return await rows.choose_tools(rest.board, choice, client)


def _read_words(text: str) -> list[str]:
    # Each is looked for in every tool.
    if len(text) > _LONGEST_WORDS:
        raise invalid(f"words has more than {_LONGEST_WORDS:,} characters")
    return text.casefold().split()


async def _search(rest: Rest, request: Request) -> Any:
    check_query(request, ("q", "limit"))
    query = request.query_params
    limit = query.get("limit") or "10"
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10):
        raise invalid(f"limit must be a whole number from 1 to 50, found {limit[:40]!r}")
    if "q" not in query:
        raise invalid("q is missing: what to search for")
    return await rows.search_rows(rest.board, query["q"], int(limit), rest.caller(request))


async def _tool(rest: Rest, request: Request) -> Any:
    client = rest.caller(request).client
    tool = await rest.board.find_tool(request.path_params["name"], client.filter)
    return {**rest.board.describe(tool, client), "tokens": tool.tokens}


async def _call(rest: Rest, request: Request) -> Any:
    name = request.path_params["name"]
    params = {**await _arguments(request), **_read_cap(request), "name": name}
    if wants_stream(request):
        return CallStream(rest, request, name, params).response()
    try:
        result = await rest.board.calls.call(name, params, rest.caller(request))
    except RpcError as exc:
        raise failure_of(exc, name) from None
    return Failed(result.error, result) if isinstance(result, FailedResult) else result


def _read_cap(request: Request) -> dict[str, Any]:
    """How many characters of text the result may have, if whoever calls says that; else it is whole."""
    check_query(request, ("cap",))
    if not request.query_params.get("cap"):
        return {}
    cap = 0 if request.query_params["cap"] == OFF else read_number(request, "cap", 0)
    if problem := cap_problem(cap):
        raise invalid(f"cap {problem}")
    return {"_meta": {CAP_KEY: cap}}


async def _arguments(request: Request) -> dict[str, Any]:
    body = await body_of(request)
    # Answers are for a call that asked, and only a stream says what it asks.
    known = {"arguments": dict, **(_ROUND if wants_stream(request) else {})}
    for name, value in body.items():
        if name not in known:
            raise invalid(f'{name[:80]!r} is not a field of a call: did you mean {{"arguments": {{…}}}}?')
        if not isinstance(value, known[name]):
            raise invalid(f"{name} must be {'a text' if known[name] is str else 'an object'}")
    return {"arguments": {}, **body}


ROUTES = (
    ApiRoute(
        "GET",
        "/api/tools",
        _tools,
        operation(
            "Every tool that passes the filters",
            object_with("tools", list_of(TOOL), total={"type": "integer"}, tokens={"type": "integer"}),
            query_parameter("server", "Names of servers, comma separated."),
            query_parameter("prefix", "How a tool's name begins."),
            query_parameter("status", "available, unavailable, disabled or needs_auth."),
            query_parameter("words", "Words that all stand in a tool's name or description."),
            query_parameter(
                "order",
                "name; server: the same, with Pegboard's own tools at the end; or tokens: what costs most in a prompt "
                "first.",
            ),
            query_parameter("limit", "How many at most; all if nothing is said."),
            query_parameter("offset", "How many to pass over."),
            _BRIEF,
        ),
    ),
    ApiRoute(
        "GET",
        "/api/tools/search",
        _search,
        operation(
            "The tools that fit a query best",
            object_with("tools", list_of(OBJECT)),
            query_parameter("q", "What the tool should do, in plain words.", required=True),
            query_parameter("limit", "How many at most: 1 to 50, 10 if nothing is said."),
        ),
    ),
    ApiRoute("GET", "/api/tools/{name}", _tool, operation("A tool in full", OBJECT, _NAME)),
    ApiRoute(
        "POST",
        "/api/tools/{name}/call",
        _call,
        with_body(
            operation(
                "Call a tool; data is its result",
                OBJECT,
                _NAME,
                query_parameter(
                    "cap",
                    "How many characters of text the result may have: of a larger one a part is given, and the rest is "
                    "kept for result_read. The whole if nothing is said.",
                ),
            )
            | {
                "description": "With accept: text/event-stream the answer is a stream: progress while it runs, at the "
                "end result, or input where its server asks something.",
            },
            _BODY,
            required=False,
            example={"arguments": {}},
        ),
    ),
)
