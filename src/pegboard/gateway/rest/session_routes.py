"""REST routes of the page's sign-in: a token is given once, and kept in a cookie that no page can read."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard.auth.bearer import bearer_of
from pegboard.auth.page_cookie import set_cookie
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
    if rest.authenticator is None:
        raise unavailable("there is no sign-in here", retryable=False)
    # That it lets somebody in was seen before; now it need not be sent again.
    principal = endpoint_of(request.scope).principal
    await rest.authenticator.cookie.prepare()
    left = principal.valid_until - time.time() if principal.valid_until != math.inf else math.inf
    value = set_cookie(request.scope, rest.authenticator.cookie.seal(bearer), left)
    return _answer({"principal": {"id": principal.id, "name": principal.name}}, value)


async def _sign_out(_: Rest, request: Request) -> Response:
    check_query(request, ())
    return _answer({}, set_cookie(request.scope, "", 0))


def _answer(data: dict[str, Any], cookie: str) -> Response:
    return json_response(ToolResult[Any].ok(data).to_dict(), 200, {"set-cookie": cookie, "cache-control": "no-store"})


ROUTES = (
    ApiRoute(
        "POST",
        "/api/session",
        _sign_in,
        operation("Sign in at the page: keep the token of this request's Authorization in a cookie", _WHO),
    ),
    ApiRoute(
        "DELETE", "/api/session", _sign_out, operation("Sign out at the page: forget the cookie", {"type": "object"})
    ),
)
