"""A pending request: one of ours that a server has yet to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pegboard.servers.limit import Limit
from pegboard.servers.message import Params
from pegboard.servers.question_owners import InFlight

# Progress can make a call last this many times its time limit.
_LONGEST = 10


@dataclass(slots=True, eq=False)
class Pending:
    """An outbound request that waits for its answer."""

    # The result; of a request that wants it verbatim, the bytes that it came in.
    future: asyncio.Future[Any]
    on_progress: Callable[[Params], None] | None
    timeout: float | None
    limit: Limit | None = None
    latest: float | None = None
    # The client's request that it is made for, if it is made for one.
    in_flight: InFlight | None = None
    verbatim: bool = False
    # How many bytes the answer may have.
    most: int | None = None
    # Whether nothing has shown yet that the server works on it.
    is_silent: bool = True
    _furthest: float | None = None

    def note_progress(self, params: Params, *, tell: bool = True) -> None:
        """Progress that goes on shows a server at work: its time limit starts anew, though not for ever."""
        progress = params.get("progress")
        if isinstance(progress, (int, float)) and (self.latest is None or progress > self.latest):
            self.latest = progress
            self.extend()
        if self.on_progress is not None and tell:
            self.on_progress(params)

    def extend(self) -> None:
        """The time limit starts anew, though not for ever."""
        self.is_silent = False
        if self.limit is None or self.limit.is_over or self.timeout is None or self.future.done():
            return
        now = asyncio.get_running_loop().time()
        if self._furthest is None:
            self._furthest = now + _LONGEST * self.timeout
        self.limit.restart(max(min(self.timeout, self._furthest - now), 0.0))

    def fail(self, exc: Exception) -> None:
        """It has failed, unless it is answered already."""
        if not self.future.done():
            self.future.set_exception(exc)
