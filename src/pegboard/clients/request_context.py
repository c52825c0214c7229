"""What comes along with a request through the SDK: a call that was begun already, and the exact message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint

# Where both are in the scope of a request over HTTP.
STARTED_CALL = "pegboard.started_call"
EXACT = "pegboard.exact"


@dataclass(slots=True, eq=False)
class Handover:
    """A call that was begun already, for whoever goes on with it. It is taken once: the SDK keeps the last message of a
    session, and with it whatever came along."""

    call: Any = None

    def take(self) -> Any:
        """The call, which is not here any more."""
        call, self.call = self.call, None
        return call


@dataclass(frozen=True, slots=True)
class PipeRequest:
    """The context of a request over a pipe: where it came in, and what came along."""

    endpoint: Endpoint = field(default_factory=Endpoint)
    # The id of the pipe's session, where it has one already, and whom to tell when its client is ready.
    session: str | None = None
    on_initialized: Callable[[Client], None] | None = None
    started_call: Handover = field(default_factory=Handover)
    exact: Mapping[str, Any] | None = None
