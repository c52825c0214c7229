"""The owner of the gateway, and its admins: who may change what runs on this machine, and read what programs write."""

from __future__ import annotations

from starlette.requests import Request

from pegboard.clients.endpoint import endpoint_of
from pegboard.result import Forbidden


def require_owner(request: Request) -> None:
    """Refuse a request of another machine, or of anybody but the user that the gateway runs as."""
    endpoint = endpoint_of(request.scope)
    if endpoint.remote:
        raise Forbidden("this is only for clients on the machine that Pegboard runs on")
    if not endpoint.principal.is_local or not endpoint.principal.admin:
        raise Forbidden("this is only for the user that Pegboard runs as")


def require_admin(request: Request) -> None:
    """Refuse a request of somebody who is no admin."""
    principal = endpoint_of(request.scope).principal
    if principal.is_local and not principal.admin:
        raise Forbidden('this is only for admins, and the rule for "local" in auth.rules does not say "admin": true')
    if not principal.admin:
        raise Forbidden("this is only for admins: the user that Pegboard runs as, and tokens made with --admin")
