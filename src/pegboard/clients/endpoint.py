"""An endpoint: where a client comes in, from where, and as whom. Over HTTP whoever authenticates requests leaves their
principal in the scope, and `endpoint_of` takes it from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from pegboard.access.principal import LOCAL, Principal
from pegboard.clients.locality import is_remote, share_holder
from pegboard.clients.peer_user import PEER_KEY
from pegboard.names import MOST_IN_FILTER, nearest

# What the query of an MCP address may say.
_PARAMETERS = ("server", "prefix", "expose", "workspace")
EXPOSE = ("auto", "all", "search")
_SCOPE_KEY = "pegboard.endpoint"
# Where a request's scope has its principal.
PRINCIPAL_KEY = "pegboard.principal"


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """Where a client comes in: what its address says, the board it names, its principal, and where it is."""

    query: Mapping[str, str] = field(default_factory=dict[str, str])
    board: str | None = None
    # Whether it is on another machine, or may be, or is another user's of this one.
    remote: bool = False
    # Who is behind it. Without HTTP it is the user that the gateway runs as.
    principal: Principal = LOCAL
    # The network it comes from; empty for this machine.
    network: str = ""
    # Whether all that comes in here is of one client, as over a pipe.
    private: bool = False


class PipeEndpoint:
    """The endpoint of a pipe: its principal may get other rules while it is open, which hold from the next message
    on."""

    def __init__(self, endpoint: Endpoint, principal: Callable[[], Principal]) -> None:
        self._endpoint = endpoint
        self._principal = principal

    @property
    def current(self) -> Endpoint:
        """The endpoint as it is now; the same for as long as nothing changes."""
        principal = self._principal()
        if principal is not self._endpoint.principal:
            self._endpoint = replace(self._endpoint, principal=principal)
        return self._endpoint


def endpoint_of(scope: MutableMapping[str, Any]) -> Endpoint:
    """The endpoint of an HTTP request, found out once and kept in its scope."""
    known = scope.get(_SCOPE_KEY)
    if known is None:
        known = scope[_SCOPE_KEY] = _identify(scope)
    return known


def _identify(scope: Mapping[str, Any]) -> Endpoint:
    is_mcp = scope["path"].startswith("/mcp")
    # What a query says is for MCP alone: REST has parameters of its own.
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True) if is_mcp else ()
    peer = scope.get("client")
    return Endpoint(
        query=dict(query),
        board=(scope["path"].removeprefix("/mcp").removeprefix("/") or None) if is_mcp else None,
        remote=is_remote(scope) or _is_foreign(scope),
        principal=scope[PRINCIPAL_KEY],
        network=share_holder(str(peer[0]) if peer else ""),
    )


def _is_foreign(scope: Mapping[str, Any]) -> bool:
    """Whether the connection is known to be another user's of this machine."""
    peer = scope.get(PEER_KEY)
    return peer is not None and peer.is_own is False


def query_problem(query: Mapping[str, str]) -> str | None:
    """What is wrong with the parameters of an address; a misspelt filter would let everything through."""
    for name in query:
        if name not in _PARAMETERS:
            close = nearest(name, _PARAMETERS, 1)
            hint = f"; did you mean {close[0]}?" if close else "."
            return f"{name[:80]!r} is not a parameter of this address{hint} There are {', '.join(_PARAMETERS)}."
    if query.get("expose") and query["expose"] not in EXPOSE:
        return f"expose must be one of {', '.join(EXPOSE)}, found {query['expose'][:80]!r}"
    for name in ("server", "prefix"):
        if query.get(name, "").count(",") >= MOST_IN_FILTER:
            return f"{name}: a filter may have {MOST_IN_FILTER} names"
    return None
