"""Client sessions of the handshake era: who is connected now, and can be notified between requests."""

from __future__ import annotations

import time
from collections import Counter

from pegboard.access.principal import Principal
from pegboard.clients.client import Client
from pegboard.protocol.eras import LOG_LEVELS, severity


class ClientSessions:
    """The clients whose handshake is complete, by session."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        # When each came, in seconds since 1970.
        self._since: dict[str, float] = {}
        # How many want to be notified from each level on: thousands of sessions need not be looked at when one leaves.
        self._levels: Counter[str | None] = Counter()
        # The level that servers were told to log from on, once any session wanted one.
        self.server_level: str | None = None

    def enter(self, client: Client) -> None:
        """A client is ready to be notified."""
        if client.session is not None:
            since = self._since.get(client.session, time.time())
            self.leave(client.session)
            self._clients[client.session] = client
            self._since[client.session] = since
            self._levels[client.log_level] += 1

    def leave(self, session: str) -> None:
        """A client is gone."""
        if (client := self._clients.pop(session, None)) is not None:
            self._levels[client.log_level] -= 1
            del self._since[session]

    def bind(self, principal: Principal) -> None:
        """A principal goes on under other rules: its sessions see what those give, and are told where that differs."""
        for client in list(self._clients.values()):
            if client.principal.id == principal.id:
                client.bind(principal)

    def set_level(self, client: Client, level: str) -> None:
        """A client wants to be notified from this level on."""
        if self.get(client.session) is client:
            self._levels[client.log_level] -= 1
            self._levels[level] += 1
        client.log_level = level

    def get(self, session: str | None) -> Client | None:
        """The client of this session."""
        return self._clients.get(session) if session is not None else None

    def list_all(self) -> list[Client]:
        """Every one of them, in the order in which they came."""
        return list(self._clients.values())

    def since(self, session: str | None) -> float | None:
        """When the client of this session came."""
        return self._since.get(session) if session is not None else None

    def level_of(self, client: Client) -> str | None:
        """From which level on a client is notified. One that set none does not get more because another one wants
        more."""
        return client.log_level or ("info" if self.server_level is not None else None)

    def lowest_level(self) -> str | None:
        """The lowest level that any session wants, if one of them said so."""
        levels = [level for level, count in self._levels.items() if count]
        if all(level is None for level in levels):
            return None
        # Whoever said nothing is not to get less because another one spoke up.
        return LOG_LEVELS[min(severity(level or "info") for level in levels)]
