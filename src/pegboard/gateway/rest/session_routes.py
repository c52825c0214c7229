"""REST routes of the page's sign-in: a token is given once, and kept in a cookie that no page can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard.auth.bearer import bearer_of
from pegboard.auth.page_cookie import headers_to_forget
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, object_with, operation
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import json_response
from pegboard.result import ToolResult, invalid, unavailable

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_WHO = object_with("principal", {"type": "object", "properties": {"id": TEXT, "name": TEXT}})


async def _sign_in(rest: Rest, request: Request) -> Response:
    check_query(request, ())
    bearer = bearer_of(request.scope["headers"])
    if bearer is None:
        raise invalid("send the token as a header: Authorization: Bearer TOKEN")
    if rest.authenticator is None or rest.authenticator.cookie is None:
        raise unavailable("there is no sign-in here", retryable=False)
    # That it lets somebody in was seen before; now it need not be sent again.
    principal = endpoint_of(request.scope).principal
    kept = await rest.authenticator.cookie.begin(request.scope, bearer, principal)
    return _answer({"principal": {"id": principal.id, "name": principal.name}}, [kept])


async def _sign_out(rest: Rest, request: Request) -> Response:
    check_query(request, ())
    if rest.authenticator is not None and rest.authenticator.cookie is not None:
        await rest.authenticator.cookie.end(request.scope)
    return _answer({}, headers_to_forget(request.scope))


def _answer(data: dict[str, Any], cookies: Sequence[str]) -> Response:
    response = json_response(ToolResult[Any].ok(data).to_dict(), 200)
    for cookie in cookies:
        response.headers.append("set-cookie", cookie)
    return response


ROUTES = (
    ApiRoute(
        "POST",
        "/api/session",
        _sign_in,
        operation("Sign in at the page: keep the token of this request's Authorization in a cookie", _WHO),
    ),
    ApiRoute(
        "DELETE",
        "/api/session",
        _sign_out,
        operation("Sign out at the page: end the session of the cookie", {"type": "object"}),
    ),
)
