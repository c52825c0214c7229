"""The REST route of numbers that matter: what tools cost in a prompt, what is saved of that, and how calls went."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.audit.query import AuditQuery, read_moment, read_name
from pegboard.audit.record import CALL
from pegboard.audit.statistics import MOST_CALLS, POINTS, Statistics
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, query_parameter
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.rows import moment
from pegboard.listing.view import Filter, ListKey
from pegboard.result import invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_USUAL_SINCE = "24h"
# Tools that are named: those that were called most.
_MOST_TOOLS = 100
_INTEGER = {"type": "integer"}
_NUMBER = {"type": "number"}
_COUNTS = {"calls": _INTEGER, "errors": _INTEGER, "p50": _NUMBER, "p99": _NUMBER}
_CALLS = {"type": "object", "required": ["calls", "errors"], "properties": _COUNTS}
_TOKENS = object_with(
    "all",
    {**_INTEGER, "description": "Tokens of the definitions of every tool; a token is four bytes."},
    first={**_INTEGER, "description": "Tokens of the tools that a new client has in its list."},
    lists={**_INTEGER, "description": "How often a client was given its list since the start; for admins."},
    saved={**_INTEGER, "description": "What that saved, against every tool in each of those lists."},
)
_SERVER = object_with("name", TEXT, tools=_INTEGER, tokens=_INTEGER, **_COUNTS)
_STATS = object_with(
    "tokens",
    _TOKENS,
    servers=list_of(_SERVER),
    recorded={"type": "boolean", "description": "Whether calls are recorded: without the audit nothing is known."},
    since={"type": "string", "format": "date-time"},
    until={"type": "string", "format": "date-time"},
    total=_CALLS,
    tools=list_of(object_with("name", TEXT, **_COUNTS)),
    points={**list_of(_CALLS), "description": f"The same in {POINTS} equal spans of time."},
    cut={"type": "boolean", "description": f"Whether there were more than {MOST_CALLS:,} calls: the newest count."},
)


async def _stats(rest: Rest, request: Request) -> Any:
    check_query(request, ("since", "server", "tool"))
    given, wanted = request.query_params, rest.caller(request).client.filter
    now = time.time()
    since = read_moment(given.get("since") or _USUAL_SINCE, now, "since")
    if since >= now:
        raise invalid("since must be in the past")
    principal = endpoint_of(request.scope).principal
    query = AuditQuery(
        since=since,
        server=read_name(given.get("server", ""), "server") or None,
        tool=read_name(given.get("tool", ""), "tool") or None,
        kind=CALL,
        owner=None if principal.admin else principal.id,
    )
    # Not the moment, which is another one at every request.
    question = (query.owner, query.server, query.tool, given.get("since"))
    found = await rest.call_counts.take(principal.id, question, lambda: _count_calls(rest, query, since, now))
    prompt = await _prompt_tokens(rest, wanted)
    if principal.admin:
        lists = rest.board.metrics.lists
        prompt |= {"lists": lists, "saved": max(prompt["all"] - prompt["first"], 0) * lists}
    servers = await _server_rows(rest, wanted, found["servers"])
    recorded = rest.board.audit.recorder is not None
    return {**found, "tokens": prompt, "servers": servers, "recorded": recorded}


async def _count_calls(rest: Rest, query: AuditQuery, since: float, until: float) -> dict[str, Any]:
    found = await rest.board.audit.statistics(query, since, until)
    # The times of many calls are put in order.
    return await asyncio.to_thread(_describe, found)


async def _prompt_tokens(rest: Rest, wanted: Filter) -> dict[str, int]:
    every = sum(tool.tokens for tool in (await rest.board.lists.view_in_slices(wanted)).items)
    first = sum(tool.tokens for tool in (await rest.board.lists.list_in_slices(ListKey(wanted))).items)
    return {"all": every, "first": first}


async def _server_rows(rest: Rest, wanted: Filter, calls: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools, tokens = defaultdict[str, int](int), defaultdict[str, int](int)
    for tool in (await rest.board.lists.view_in_slices(wanted)).items:
        if tool.server_name is not None:
            tools[tool.server_name] += 1
            tokens[tool.server_name] += tool.tokens
    names = [name for name in sorted(rest.board.servers) if wanted.admits_server(name)]
    return [{"name": name, "tools": tools[name], "tokens": tokens[name], **calls.get(name, {})} for name in names]


def _describe(found: Statistics) -> dict[str, Any]:
    busiest = sorted(found.tools.items(), key=lambda item: (-item[1].calls, item[0]))[:_MOST_TOOLS]
    return {
        "servers": {name: each.to_dict() for name, each in found.servers.items()},
        "since": moment(found.since),
        "until": moment(found.until),
        "total": found.total.to_dict(),
        "tools": [{"name": name, **each.to_dict()} for name, each in busiest],
        "points": [each.to_dict() for each in found.points],
        "cut": found.is_cut,
    }


ROUTES = (
    ApiRoute(
        "GET",
        "/api/stats",
        _stats,
        operation(
            "What tools cost in a prompt, and how calls went: by server, by tool and over time",
            _STATS,
            query_parameter("since", f"From when on: 30m, 2h, 7d ago, or a day; {_USUAL_SINCE} if nothing is said."),
            query_parameter("server", "Only calls of this server; a * stands for anything."),
            query_parameter("tool", "Only calls of this tool; a * stands for anything."),
        ),
    ),
)
