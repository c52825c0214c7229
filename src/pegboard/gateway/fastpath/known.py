"""Known clients: what the fast path has to know of a client, found out once and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pegboard import exactjson
from pegboard.gateway.mcp import McpFront
from pegboard.listing.view import Filter, ListKey, View
from pegboard.protocol import raw_json
from pegboard.protocol.client import Address, Client, principal_of
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    HOP_KEYS,
    LATEST_MODERN,
    LOG_LEVEL_KEY,
    RELATED_TASK_KEY,
    VERSION_KEY,
    Era,
)
from pegboard.protocol.members import meta_problem
from pegboard.relay.caller import Caller
from pegboard.relay.routes import SERVER_KEY
from pegboard.tool import RegisteredTool

_MAX_KEPT = 4096
# Nobody says more of itself than this with every request.
MAX_META = 4096
# Members of `_meta` that the full path has to look at.
_NO_PLAIN_META = frozenset({"progressToken", LOG_LEVEL_KEY, RELATED_TASK_KEY})


@dataclass(slots=True, eq=False)
class Known:
    """A client, known from its session or from what its requests say of it."""

    era: Era
    # The client as our own tools see it.
    caller: Caller
    chosen: Filter
    remote: bool
    capabilities: bytes
    # Of a client of the modern era: what of its `_meta` goes on to servers, and whether it narrows its lists.
    meta: bytes | None = None
    narrows: bool = False
    # What its requests are one conversation in, so that one of them can cancel another.
    conversation: object = None
    # Of one that nobody can tell of changes yet: the list that it was given.
    is_new: bool = False
    listed: tuple[ListKey, View[RegisteredTool]] | None = None

    @property
    def session(self) -> str | None:
        """The session it has, if it has one."""
        return self.caller.session


@dataclass(frozen=True, slots=True, eq=False)
class Door:
    """Where requests of the modern era come in, and with which credentials."""

    address: Address
    credentials: str = ""
    # Whether all that comes in here is of one client.
    private: bool = False


class KnownClients:
    """Everyone of whom something is kept; the oldest are forgotten first."""

    def __init__(self, front: McpFront) -> None:
        self._front = front
        self._sessions: WeakKeyDictionary[Client, Known] = WeakKeyDictionary()
        self._modern: OrderedDict[tuple[Door, bytes], Known | None] = OrderedDict()

    def of_session(self, client: Client) -> Known:
        """A client whose handshake is complete."""
        known = self._sessions.get(client)
        if known is None:
            known = self._sessions[client] = self._of(client.session, client.address, client.capabilities)
        return known

    def newcomer(self, session: str, address: Address, capabilities: Mapping[str, Any]) -> Known:
        """A client whose handshake nobody but us has heard of yet."""
        return replace(self._of(session, address, capabilities), is_new=True)

    def _of(self, session: str | None, address: Address, capabilities: Mapping[str, Any]) -> Known:
        return Known(
            "handshake",
            self._front.silent_caller("handshake", session, address, capabilities),
            self._front.address_filter(address),
            address.remote,
            exactjson.dump(dict(capabilities)),
            conversation=session,
        )

    def of_request(self, door: Door, meta: bytes) -> Known | None:
        """A client of the modern era, by the `_meta` of its request; `None` where the full path has to look at it."""
        if len(meta) > MAX_META:
            return None
        key = (door, meta)
        if key not in self._modern:
            if len(self._modern) >= _MAX_KEPT:
                self._modern.popitem(last=False)
            self._modern[key] = self._identify(door, meta)
        self._modern.move_to_end(key)
        return self._modern[key]

    def _identify(self, door: Door, text: bytes) -> Known | None:
        parts = raw_json.members(text)
        if parts is None or not _NO_PLAIN_META.isdisjoint(parts) or meta_problem(parts) is not None:
            return None
        try:
            meta = exactjson.parse_object(text)
        except exactjson.NotJson:
            return None
        capabilities = exactjson.as_object(meta.get(CLIENT_CAPABILITIES_KEY))
        if meta.get(VERSION_KEY) != LATEST_MODERN or capabilities is None:
            return None
        kept = {name: value for name, value in parts.items() if name not in HOP_KEYS}
        principal = principal_of(door.credentials, meta)
        return Known(
            "modern",
            self._front.silent_caller("modern", None, door.address, capabilities, principal),
            self._front.address_filter(door.address),
            door.address.remote,
            parts[CLIENT_CAPABILITIES_KEY],
            meta=raw_json.join(kept) if kept else None,
            narrows=SERVER_KEY in parts or "pegboard/prefix" in parts,
            conversation=door if door.private else None,
        )
