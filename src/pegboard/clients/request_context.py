"""What comes along with a request through the SDK: a call that was begun already, the exact message, and what waits for
the end of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint

# Where they are in the scope of a request over HTTP.
STARTED_CALL = "pegboard.started_call"
EXACT = "pegboard.exact"
ANSWERING = "pegboard.answering"


@dataclass(slots=True, eq=False)
class Handover:
    """A call that was begun already, for whoever goes on with it. It is taken once: the SDK keeps the last message of a
    session, and with it whatever came along."""

    call: Any = None

    def take(self) -> Any:
        """The call, which is not here any more."""
        call, self.call = self.call, None
        return call


class Answering:
    """A request over HTTP until its answer is written, or nobody waits for it any more: what is to be done then."""

    __slots__ = ("_on_end",)

    def __init__(self) -> None:
        self._on_end: list[Callable[[], object]] | None = []

    def on_end(self, then: Callable[[], object]) -> None:
        """Have this done at the end; now, if that was before."""
        if self._on_end is None:
            then()
        else:
            self._on_end.append(then)

    def end(self) -> None:
        """It is over."""
        waiting, self._on_end = self._on_end or [], None
        for then in waiting:
            then()


@dataclass(frozen=True, slots=True)
class PipeRequest:
    """The context of a request over a pipe: where it came in, and what came along."""

    endpoint: Endpoint = field(default_factory=Endpoint)
    # The id of the pipe's session, where it has one already, and whom to tell when its client is ready.
    session: str | None = None
    on_initialized: Callable[[Client], None] | None = None
    started_call: Handover = field(default_factory=Handover)
    exact: Mapping[str, Any] | None = None
