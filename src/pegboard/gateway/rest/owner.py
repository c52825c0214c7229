"""The owner of the gateway: whoever may change what runs on this machine, and read what its programs write."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from pegboard.clients.endpoint import endpoint_of
from pegboard.clients.peer_user import is_own_user
from pegboard.result import Forbidden


async def require_owner(request: Request) -> None:
    """Refuse a request of another machine, or of another user of this one."""
    if endpoint_of(request.scope).remote:
        raise Forbidden("this is only for clients on the machine that Pegboard runs on")
    if not await asyncio.to_thread(is_own_user, request.scope):
        raise Forbidden("this is only for the user that Pegboard runs as")
