"""Client sessions of the handshake era: who is connected now, and can be notified between requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.listing.view import Filter
from pegboard.protocol.eras import LOG_LEVELS, severity
from pegboard.relay.caller import Ask, Caller
from pegboard.servers.jsonrpc import Params


@dataclass(slots=True, eq=False)
class ClientSession:
    """One client session."""

    session: str
    filter: Filter
    notify: Callable[[str, Params], None]
    ask: Ask
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None

    def caller(self) -> Caller:
        """The session as a caller, for a question that no request of anybody caused."""
        return Caller(
            session=self.session,
            filter=self.filter,
            capabilities=self.capabilities,
            log_level=self.log_level,
            notify=self.notify,
            ask=self.ask,
        )


class ClientSessions:
    """Everyone who is here."""

    def __init__(self) -> None:
        self._sessions: dict[str, ClientSession] = {}
        # How many want to be told from each level on: nobody has to be asked again when one of thousands leaves.
        self._levels: Counter[str | None] = Counter()

    def enter(self, client_session: ClientSession) -> None:
        """A client is ready to be told things."""
        self.leave(client_session.session)
        self._sessions[client_session.session] = client_session
        self._levels[client_session.log_level] += 1

    def leave(self, session: str) -> None:
        """A client is gone."""
        if (client_session := self._sessions.pop(session, None)) is not None:
            self._levels[client_session.log_level] -= 1

    def set_level(self, client_session: ClientSession, level: str) -> None:
        """A client wants to be told from this level on."""
        if self._sessions.get(client_session.session) is client_session:
            self._levels[client_session.log_level] -= 1
            self._levels[level] += 1
        client_session.log_level = level

    def get(self, session: str | None) -> ClientSession | None:
        """The session of this id."""
        return self._sessions.get(session) if session is not None else None

    def lowest_level(self) -> str | None:
        """The level from which on at least one session wants to be told, if any of them said so."""
        levels = [level for level, count in self._levels.items() if count]
        if all(level is None for level in levels):
            return None
        # Whoever said nothing is not to hear less because another one spoke up.
        return LOG_LEVELS[min(severity(level or "info") for level in levels)]
