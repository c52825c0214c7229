"""REST routes of what runs: the gateway itself, the logs of its servers, and restarting one."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.board_routes import list_sessions
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, path_parameter, query_parameter
from pegboard.gateway.rest.params import check_query, read_number
from pegboard.gateway.rest.server_routes import server_problem
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.sealing.key_search import find_key_problem
from pegboard.servers.server import Server
from pegboard.servers.server_log import PEGBOARD, SERVER, LogLine
from pegboard.version import VERSION

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_MOST_LINES = 2000
_USUAL_LINES = 100
_NAME = path_parameter("name")
_INTEGER = {"type": "integer"}
_LINE = {
    "type": "object",
    "required": ["number", "time", "source", "text"],
    "properties": {
        "number": _INTEGER,
        "time": {"type": "string", "format": "date-time"},
        "source": {"enum": [SERVER, PEGBOARD], "description": "The server's stderr, or what happened to it."},
        "text": TEXT,
    },
}
_STATUS = object_with(
    "version",
    TEXT,
    pid=_INTEGER,
    config=TEXT,
    startedAt={"type": ["string", "null"], "format": "date-time"},
    sessions={**_INTEGER, "description": "How many are open; whoever is no admin is told of their own."},
    servers={"type": "object", "additionalProperties": _INTEGER, "description": "How many servers are in each state."},
    needLogin={**list_of(TEXT), "description": "Servers that wait for somebody who signs in."},
    tools=_INTEGER,
    reach={"enum": ["machine", "network"], "description": "Whether other machines reach it."},
    open={"type": "boolean", "description": "Whether everybody is let in, without a token."},
    addresses={**list_of(TEXT), "description": "Where other machines reach it."},
    access={
        **object_with("local", {"type": "boolean"}, anonymous={"type": "boolean"}, tokens=_INTEGER, issuers=_INTEGER),
        "description": "Who may come in: this machine's user, everybody, and with how many tokens and issuers.",
    },
    configProblem=TEXT,
    configRemarks={**list_of(TEXT), "description": "Settings in the config file that nothing reads."},
    keyProblem={**TEXT, "description": "Why the key of PEGBOARD_SECRET_KEY, or of its file, cannot be used."},
)


async def _status(rest: Rest, request: Request) -> Any:
    problem, wanted = rest.config.problem, rest.caller(request).client.filter
    await rest.board.discover_own(wanted)
    seen = [server for name, server in rest.board.servers.items() if wanted.admits_server(name)]
    needs_own = rest.board.discovery.own.needs_sign_in
    need_login = sorted(
        server.name for server in seen if rows.needs_login(server) or needs_own(server.name, wanted.holder)
    )
    states = Counter(rows.state_for(rest.board, server, wanted).value for server in seen)
    endpoint = endpoint_of(request.scope)
    who = endpoint.principal
    # Where files are is for whoever can read them.
    is_own = who.admin and not endpoint.remote
    own = {"pid": os.getpid(), "config": str(rest.config.path)} if is_own else {}
    return {
        **own,
        "version": VERSION,
        "startedAt": rows.moment(rest.started or None),
        "sessions": rest.sessions() if who.admin else len(list_sessions(rest, who)),
        "servers": dict(sorted(states.items())),
        **({"needLogin": need_login} if need_login else {}),
        "tools": sum(1 for tool in rest.board.registry.all() if wanted.access is None or wanted.access.admits(tool)),
        **(_describe_reach(rest, request) if own else {}),
        **({} if problem is None or not own else {"configProblem": problem}),
        **({"configRemarks": list(remarks)} if own and (remarks := rest.board.settings.own_remarks) else {}),
        **(await _describe_key() if own else {}),
    }


async def _describe_key() -> dict[str, str]:
    """What is wrong with the key that seals sign-ins, if it comes from our environment; it may be in a file."""
    problem = await asyncio.to_thread(find_key_problem, os.environ)
    return {} if problem is None else {"keyProblem": problem}


def _describe_reach(rest: Rest, request: Request) -> dict[str, Any]:
    """Who reaches the gateway, where it listens; for whoever can do something about it."""
    if rest.authenticator is None:
        return {}
    is_beyond = rest.authenticator.reach.beyond_loopback
    return {
        "reach": "network" if is_beyond else "machine",
        "open": rest.authenticator.requirement is False,
        "access": rest.authenticator.count_admission(),
        **({"addresses": rest.network_urls(request)} if is_beyond else {}),
    }


async def _log(rest: Rest, request: Request) -> Any:
    check_query(request, ("limit", "after"))
    server = _find_server(rest, request)
    limit = read_number(request, "limit", _USUAL_LINES)
    if limit > _MOST_LINES:
        raise invalid(f"limit must be a whole number from 0 to {_MOST_LINES}, found {limit}")
    lines = server.log.read(limit, read_number(request, "after", 0))
    return {"lines": [_line(line) for line in lines], "last": server.log.last_number}


async def _restart(rest: Rest, request: Request) -> Any:
    server = _find_server(rest, request)
    if failure := server.failure() if not server.spec.enabled or server.spec.problem else None:
        raise failure
    server.log.note("restarted by hand")
    await server.restart()
    # Whoever asked the server before asked the process that has just ended.
    await rest.board.discovery.settle(server.name)
    found = (await rest.board.refresh([server.name])).unwrap()
    return {**found, **rows.withheld_of(rest.board, server.name)}


def _find_server(rest: Rest, request: Request) -> Server:
    name = str(request.path_params["name"])
    if problem := server_problem(rest.board, name, rest.caller(request).client.filter):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, problem, retryable=False)
    return rest.board.servers[name]


def _line(line: LogLine) -> dict[str, Any]:
    # Finer than elsewhere: the lines of several servers are put in one order.
    return {**asdict(line), "time": datetime.fromtimestamp(line.time, UTC).isoformat(timespec="milliseconds")}


ROUTES = (
    ApiRoute(
        "GET",
        "/api/status",
        _status,
        operation("The gateway itself: since when it runs, its sessions, its servers by state", _STATUS),
    ),
    ApiRoute(
        "GET",
        "/api/servers/{name}/log",
        _log,
        operation(
            "The newest lines of a server's log: its stderr, and what happened to it",
            object_with("lines", list_of(_LINE), last=_INTEGER),
            _NAME,
            query_parameter("limit", f"How many lines at most: 0 to {_MOST_LINES}, {_USUAL_LINES} if nothing is said."),
            query_parameter("after", "Only lines with a greater number than this."),
        ),
        admin_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/servers/{name}/restart",
        _restart,
        operation(
            "End a server's connections, start it anew, and ask it for its tools",
            object_with("registered", _INTEGER, withheld=_INTEGER),
            _NAME,
        ),
        admin_only=True,
    ),
)
