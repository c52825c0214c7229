"""A client as the rest of Pegboard sees it; nothing here needs the SDK, so that it can be had without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pegboard.names import MOST_IN_FILTER, nearest
from pegboard.protocol.eras import CLIENT_INFO_KEY, Era

if TYPE_CHECKING:
    from pegboard.protocol.outlet import ClientChannel

MAX_BODY = 4 * 1024 * 1024
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
COULD_NOT_ANSWER = "Pegboard could not answer this; its log says why"
# Where in a request's scope the `Handover` is of a call of it that was begun already.
STARTED_CALL = "pegboard.started_call"
EXACT = "pegboard.exact"


class Refused(Exception):  # noqa: N818  it names an answer
    """An error as the answer to a request, ours to a client or a client's to us."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


@dataclass(frozen=True, slots=True)
class Address:
    """Where a client came in: what it said there, the board it named, and whether it is on another machine."""

    query: Mapping[str, str] = field(default_factory=dict[str, str])
    board: str | None = None
    remote: bool = False


# What an address may say.
_PARAMETERS = ("server", "prefix", "expose", "workspace")


def query_problem(query: Mapping[str, str]) -> str | None:
    """What is wrong with the parameters of an address; a misspelt filter would let everything through."""
    for name in query:
        if name not in _PARAMETERS:
            close = nearest(name, _PARAMETERS, 1)
            hint = f"; did you mean {close[0]}?" if close else "."
            return f"{name[:80]!r} is not a parameter of this address{hint} There are {', '.join(_PARAMETERS)}."
    for name in ("server", "prefix"):
        if query.get(name, "").count(",") >= MOST_IN_FILTER:
            return f"{name}: a filter may have {MOST_IN_FILTER} names"
    return None


# The same for a client that comes over a pipe, which has no address to say it in.
pipe_address: ContextVar[Address] = ContextVar("pipe_address", default=Address())  # noqa: B039 (it is frozen)
# The name of its session, where it has one already.
pipe_session: ContextVar[str | None] = ContextVar("pipe_session", default=None)


@dataclass(slots=True, eq=False)
class Handover:
    """A call that was begun already, for whoever goes on with it. It is taken once: the SDK keeps the last message of a
    session, and with it whatever came along."""

    call: Any

    def take(self) -> Any:
        """The call, which is not here any more."""
        call, self.call = self.call, None
        return call


@dataclass(frozen=True, slots=True)
class PipeRequest:
    """What comes along with a request over a pipe: a call that is under way, and what the message really says."""

    started_call: Handover
    exact: Mapping[str, Any] | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Client:
    """A client as the relay sees it: the address it used, what it can do, and the way to it."""

    era: Era
    session: str | None
    address: Address
    channel: ClientChannel
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None
    principal: str = ""
    # A call of this client that was begun before this request of it came to us.
    started_call: Any = None


# Whom to tell when the client at the other end of a pipe is ready.
on_pipe_initialized: ContextVar[Callable[[Client], None] | None] = ContextVar("on_pipe_initialized", default=None)


def principal_of(credentials: str, meta: Mapping[str, Any]) -> str:
    """Who sends a request, as far as its credentials and its words about itself tell; no secret can be read from it."""
    return sha256(f"{credentials} {meta.get(CLIENT_INFO_KEY)}".encode("utf-8", "replace")).hexdigest()
