"""Connect links: addresses of this gateway that a client shows to its user, so that they sign in to a server.

A link lets nobody in. It is for one principal, and whoever opens it has to be that one: else somebody could have
another person sign in for them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from uuid import uuid4

from pegboard.lru_dict import LruDict

CONNECT = "/connect"
_LIFE = 600.0
_MOST = 1024
# Server, principal, holder and session.
_Wish = tuple[str, str, str, str | None]


@dataclass(eq=False, slots=True)
class ConnectLink:
    """One of them."""

    server: str
    # Who may open it, and whose grant comes of it (empty: the gateway's own).
    principal_id: str
    holder: str
    # Of the session that was given it, if it has one.
    session: str | None
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    elicitation_id: str = field(default_factory=lambda: uuid4().hex)
    expires_at: float = field(default_factory=lambda: time.time() + _LIFE)
    # Set once somebody has signed in.
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether it leads nowhere any more."""
        return self.done.is_set() or time.time() >= self.expires_at


class ConnectLinks:
    """Every link that was given out and is not over; the oldest go when there are too many."""

    def __init__(self) -> None:
        # The gateway's own address, once it is known.
        self.address = ""
        self._by_key: LruDict[str, ConnectLink] = LruDict(_MOST)
        # By whom each is for: a list of many tools asks for the same one over and over.
        self._by_wish: LruDict[_Wish, ConnectLink] = LruDict(_MOST)

    def make(self, server: str, principal_id: str, holder: str, session: str | None) -> ConnectLink:
        """A link; the same again for the same client, for as long as it leads somewhere."""
        wanted = (server, principal_id, holder, session)
        link = self._by_wish.get(wanted)
        if link is not None and not link.is_over and link.key in self._by_key:
            return link
        link = ConnectLink(*wanted)
        self._by_key[link.key] = self._by_wish[wanted] = link
        return link

    def find(self, key: str) -> ConnectLink | None:
        """The link of an address, if it leads somewhere."""
        link = self._by_key.get(key)
        return None if link is None or link.is_over else link

    def find_offer(self, elicitation_id: str, principal_id: str) -> ConnectLink | None:
        """The link that a principal was given, over or not."""
        given = (elicitation_id, principal_id)
        return next((link for link in self._by_key.values() if (link.elicitation_id, link.principal_id) == given), None)

    def end(self, server: str, holder: str) -> list[ConnectLink]:
        """Somebody has signed in: the links that were for that."""
        ended = [
            link
            for link in self._by_key.values()
            if (link.server, link.holder) == (server, holder) and not link.is_over
        ]
        for link in ended:
            link.done.set()
        return ended
