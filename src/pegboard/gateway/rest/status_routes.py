"""REST routes for health and metrics, and for commands that look for the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pegboard.access.principal import Principal
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.proof import CHALLENGE_HEADER, MAX_CHALLENGE, http_purpose, prove
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import plain_operation
from pegboard.gateway.rest.responses import json_response
from pegboard.listing.view import Filter
from pegboard.version import VERSION

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest


async def _health(rest: Rest, request: Request) -> Response:
    found = {"storage": rest.board.storage.problem, "audit": rest.board.audit.problem}
    problems = {name: problem for name, problem in found.items() if problem is not None}
    status = {"status": "degraded" if problems else "ok", **problems}
    about = {"version": VERSION, "config": rest.identity}
    return json_response({**status, **about, **_proof(rest, request)}, 200)


def _proof(rest: Rest, request: Request) -> dict[str, str]:
    """That we are the gateway of our run file, where somebody asks for it."""
    challenge, server = request.headers.get(CHALLENGE_HEADER, ""), request.scope.get("server")
    if not challenge or len(challenge) > MAX_CHALLENGE or server is None:
        return {}
    return {"proof": prove(rest.token, http_purpose(server[1]), challenge.encode("latin-1")).decode()}


async def _metrics(rest: Rest, request: Request) -> Response:
    wanted = Filter(access=rest.caller(request).client.filter.access)
    servers = sorted(rest.board.servers.items())
    states = [(name, server.state.value) for name, server in servers if wanted.admits_server(name)]
    tools = len((await rest.board.lists.view_in_slices(wanted)).items)
    metrics = rest.board.metrics
    if not _counts_all(endpoint_of(request.scope).principal):
        text = metrics.own_text(states, tools)
    else:
        shows = None if wanted.access is None else wanted.admits_server
        text = metrics.text(states, tools, rest.sessions(), rest.board.relay.parked.count, shows)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _counts_all(principal: Principal) -> bool:
    """Whether somebody is told what others do: an admin, or anybody where nobody has to say who they are."""
    return principal.admin or (principal.access is None and principal.kind in {"local", "anonymous"})


ROUTES = (
    ApiRoute(
        "GET",
        "/health",
        _health,
        plain_operation("Whether the gateway is up, and its storage and audit work: status is ok or degraded"),
    ),
    ApiRoute("GET", "/metrics", _metrics, plain_operation("Counters for Prometheus", "text/plain")),
)
