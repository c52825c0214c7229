"""What the transports over HTTP share: an address, a client for it, and messages sent beside everything else."""

from __future__ import annotations

import contextlib

from pegboard.config import ServerSpec
from pegboard.servers.http.client import make_client
from pegboard.servers.limit import Limit
from pegboard.servers.message import cancellation
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.transports.transport import Transport
from pegboard.task_set import TaskSet


class HttpTransport(Transport):
    """One server behind an address."""

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper | None = None) -> None:
        del reaper
        assert spec.url is not None
        self._spec = spec
        self._url = spec.url
        self._label = spec.name
        self._client = make_client(spec)
        # What runs beside the requests until the transport is closed.
        self._tasks = TaskSet()
        # The version that every message names once it is negotiated.
        self._version: str | None = None

    def cancel(self, request_id: int, reason: str) -> None:
        """POST it beside everything else."""
        self._tasks.spawn(self._post_cancellation(request_id, reason))

    async def _post_cancellation(self, request_id: int, reason: str) -> None:
        with contextlib.suppress(Exception):
            async with Limit(30):
                await self.send(cancellation(request_id, reason), None)
