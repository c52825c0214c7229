"""The owner of the gateway, and its admins: who may change what runs on this machine, and read what programs write."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from pegboard.clients.endpoint import endpoint_of
from pegboard.clients.peer_user import peer_of
from pegboard.result import Forbidden


async def require_owner(request: Request) -> None:
    """Refuse a request of another machine, or of another user of this one."""
    endpoint = endpoint_of(request.scope)
    if endpoint.remote:
        raise Forbidden("this is only for clients on the machine that Pegboard runs on")
    peer = peer_of(request.scope)
    is_own = peer.is_own if peer.is_own is not None else await asyncio.to_thread(peer.look_up)
    if not is_own or not endpoint.principal.admin:
        raise Forbidden("this is only for the user that Pegboard runs as")


def require_admin(request: Request) -> None:
    """Refuse a request of somebody who is no admin."""
    if not endpoint_of(request.scope).principal.admin:
        raise Forbidden("this is only for admins: the user that Pegboard runs as, and tokens made with --admin")
