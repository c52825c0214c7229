"""The owner of the gateway: whoever may change what runs on this machine, and read what its programs write."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from pegboard.clients.endpoint import endpoint_of
from pegboard.clients.peer_user import peer_of
from pegboard.result import Forbidden


async def require_owner(request: Request) -> None:
    """Refuse a request of another machine, or of another user of this one."""
    if endpoint_of(request.scope).remote:
        raise Forbidden("this is only for clients on the machine that Pegboard runs on")
    peer = peer_of(request.scope)
    if not (peer.is_own if peer.is_own is not None else await asyncio.to_thread(peer.look_up)):
        raise Forbidden("this is only for the user that Pegboard runs as")


def require_admin(request: Request) -> None:
    """Refuse a request of somebody who may not look after the gateway."""
    if not endpoint_of(request.scope).principal.admin:
        raise Forbidden("this is only for whoever may look after the gateway (admin)")
