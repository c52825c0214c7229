"""A client: who asks, with everything that is known of it. Every entrance has it made by `identify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from pegboard import exactjson
from pegboard.access.principal import Principal
from pegboard.client_configs.check import CHECK_CLIENT
from pegboard.clients.channel import Channel
from pegboard.clients.endpoint import Endpoint
from pegboard.listing.loaded import board_key, guest_board_key, principal_board_key, session_board_key
from pegboard.listing.view import EVERYTHING, Filter, ListKey, View
from pegboard.names import fold_board_name
from pegboard.protocol.eras import CLIENT_INFO_KEY, LATEST_MODERN, Era
from pegboard.tool import RegisteredTool

# What whoever comes over REST is called.
REST_CLIENT = "REST"
_LONGEST_NAME, _LONGEST_VERSION = 80, 40


@dataclass(eq=False)
class Client:
    """One client: a session of the handshake era, or whoever sent a request of the modern one, REST's or Python's."""

    endpoint: Endpoint = field(default_factory=Endpoint)
    era: Era = "handshake"
    session: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Whose requests without a session are one client's: their principal, and what the client says of itself.
    sender: str = ""
    filter: Filter = EVERYTHING
    # Where the tools are kept that this client loads; without a board nothing can be loaded.
    board: str | None = None
    # Of a session: the channel between requests, once the client is ready, and the log level that it set.
    channel: Channel | None = None
    log_level: str | None = None
    # Of a modern client on the fast path: what of its `_meta` goes on to servers, and whether it narrows lists.
    forwarded_meta: bytes | None = None
    narrows: bool = False
    # Of a session that cannot be notified yet: the list that it was given.
    is_new: bool = False
    first_list: tuple[ListKey, View[RegisteredTool]] | None = None
    # What it calls itself, for people who look on.
    name: str = ""
    version: str = ""
    # Of the protocol, where it is known.
    protocol_version: str = ""
    # Of a session: whom to tell when its filter is another one.
    on_bind: Callable[[], None] | None = None

    @property
    def is_check(self) -> bool:
        """Whether it is Pegboard, which looks whether it answers."""
        return self.name == CHECK_CLIENT

    @property
    def principal(self) -> Principal:
        """Who is behind it."""
        return self.endpoint.principal

    def bind(self, principal: Principal) -> None:
        """A session goes on with another credential of its principal, or under other rules."""
        if principal is self.principal:
            return
        before, self.endpoint = self.filter, replace(self.endpoint, principal=principal)
        self.filter = replace(before, access=principal.access)
        if self.filter != before:
            vars(self).pop("list_key", None)
            if self.on_bind is not None:
                self.on_bind()

    def missing_scopes(self, tool: RegisteredTool | str) -> frozenset[str]:
        """All scopes that its token has to have for a tool, if it lacks one; none if it may call it."""
        principal = self.principal
        access = principal.access
        if principal.kind != "jwt" or access is None or not access.needs_scopes:
            return frozenset()
        return access.missing_scopes(tool, principal.scopes)

    def declare(self, capabilities: Mapping[str, Any]) -> None:
        """The client says what it can do."""
        self.capabilities = capabilities
        vars(self).pop("capabilities_json", None)

    @property
    def workspace(self) -> str | None:
        """The folder that it works in, where its address says so."""
        return self.endpoint.query.get("workspace") or None

    @cached_property
    def list_key(self) -> ListKey:
        """Which list this client sees."""
        return ListKey(self.filter, self.board, self.endpoint.query.get("expose") or None)

    @cached_property
    def capabilities_json(self) -> bytes:
        """Its capabilities as JSON, written once."""
        return exactjson.dump(dict(self.capabilities))

    @cached_property
    def principal_key(self) -> str | None:
        """The same for requests that are likely to be one person's; `None` if each stands for itself."""
        return self.session or (f"of {self.sender}" if self.sender else None)

    @cached_property
    def conversation(self) -> object:
        """What its requests are one conversation in, so that one of them can cancel another."""
        return self.session if self.era == "handshake" else self.endpoint if self.endpoint.private else None


def identify(
    endpoint: Endpoint,
    era: Era = "handshake",
    session: str | None = None,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Client:
    """The client that comes in at an endpoint, with a session, or with what its request says of it (`meta`)."""
    chosen = Filter.of(endpoint.query.get("server"), endpoint.query.get("prefix"))
    if endpoint.principal.access is not None:
        chosen = replace(chosen, access=endpoint.principal.access)
    info = (meta or {}).get(CLIENT_INFO_KEY)
    name = name_in(info)
    return Client(
        endpoint,
        era,
        session,
        capabilities or {},
        # A session is bound to its endpoint's principal by whoever keeps the sessions.
        sender=_sender(endpoint, meta) if meta is not None else "",
        filter=chosen.for_remote() if endpoint.remote else chosen,
        board=_board(endpoint, session, name),
        name=name,
        version=version_in(info),
        protocol_version=LATEST_MODERN if era == "modern" else "",
    )


def name_in(info: object) -> str:
    """What a client calls itself in its `clientInfo`."""
    name = (exactjson.as_object(info) or {}).get("name")
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def version_in(info: object) -> str:
    """The version that a client says it has."""
    version = (exactjson.as_object(info) or {}).get("version")
    return version[:_LONGEST_VERSION] if isinstance(version, str) else ""


def _sender(endpoint: Endpoint, meta: Mapping[str, Any]) -> str:
    return sha256(f"{endpoint.principal.id} {meta.get(CLIENT_INFO_KEY)}".encode("utf-8", "replace")).hexdigest()


def _board(endpoint: Endpoint, session: str | None, name: str) -> str | None:
    """The board that the address names, the session's own, or the one of the name that a modern client gives itself
    with every request: there a list depends on what a request carries and on nothing else."""
    if endpoint.board is not None:
        return _board_of_name(endpoint, endpoint.board)
    if session is not None:
        return session_board_key(session)
    folded = fold_board_name(name)
    return None if folded is None else _board_of_name(endpoint, folded, is_own=True)


def _board_of_name(endpoint: Endpoint, name: str, *, is_own: bool = False) -> str:
    """The board of this name: that of the machine's own user, which a rule may share, or one of the principal's."""
    principal = endpoint.principal
    if principal.kind == "anonymous" and endpoint.remote and is_own:
        # A client on another machine says a name of this one's only by chance, or to see its tools.
        return guest_board_key(endpoint.network, name)
    if principal.kind in {"local", "anonymous"}:
        return board_key(name)
    is_shared = not is_own and principal.access is not None and principal.access.shares_board(name)
    return board_key(name) if is_shared else principal_board_key(principal.id, name)
