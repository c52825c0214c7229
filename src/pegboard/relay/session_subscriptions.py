"""The subscriptions of sessions: what each session of the handshake era wants to hear of, until it says otherwise, is
over, or may not know of it any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pegboard.clients.client import Client
from pegboard.protocol.codes import INVALID_PARAMS
from pegboard.servers.errors import RpcError

# How many resources a session may subscribe to.
MOST_SUBSCRIBED = 1000


class Subscription(NamedTuple):
    """Whose resource it is, and what ends it."""

    server: str
    release: Callable[[], None]


class SessionSubscriptions:
    """Those of all sessions, by what each calls the resource."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Subscription]] = {}

    def has(self, session: str, uri: str) -> bool:
        """Whether a session has subscribed to this already."""
        return uri in self._of.get(session, {})

    def check_room(self, session: str) -> None:
        """Refuse what would be too many: `RpcError`."""
        if len(self._of.get(session, {})) >= MOST_SUBSCRIBED:
            words = f"a session may subscribe to {MOST_SUBSCRIBED:,} resources at most: unsubscribe from one first"
            raise RpcError(INVALID_PARAMS, words)

    def add(self, session: str, uri: str, subscription: Subscription) -> None:
        """One more; a second one of the same resource is ended, and so is one that there is no room for."""
        if self.has(session, uri):
            subscription.release()
            return
        try:
            self.check_room(session)
        except RpcError:
            subscription.release()
            raise
        self._of.setdefault(session, {})[uri] = subscription

    def remove(self, session: str, uri: str) -> None:
        """End one; unsubscribing from what was never subscribed to changes nothing."""
        if subscription := self._of.get(session, {}).pop(uri, None):
            subscription.release()

    def drop_hidden(self, client: Client) -> None:
        """Other rules hold for a session: it hears no more of what they hide."""
        own = self._of.get(client.session or "", {})
        for uri in [uri for uri, each in own.items() if not client.filter.admits_resources(each.server)]:
            own.pop(uri).release()

    def leave(self, session: str) -> None:
        """A session is over."""
        for subscription in self._of.pop(session, {}).values():
            subscription.release()

    def forget(self, uri: str) -> None:
        """Nobody is subscribed to this any more: its server was taken out."""
        for own in self._of.values():
            own.pop(uri, None)
