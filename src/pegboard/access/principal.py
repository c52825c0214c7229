"""A principal: who is behind a request. Sessions, boards, parked calls and records of the audit belong to it, and not
to the text of a credential, so that a client whose token is renewed stays who it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.access.access import Access

Kind = Literal["local", "token", "jwt", "anonymous"]
# Told that a principal is over, and who it is from now on; `None` if it was revoked.
EndListener: TypeAlias = "Callable[[Principal | None], None]"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Principal:
    """Who asks, and what it may. It is over when its credential expires, is revoked, or stands for other rules."""

    kind: Kind
    # The same for all credentials of one principal, after a restart too; nothing secret follows from it.
    id: str
    # For people.
    name: str
    # `None`: everything.
    access: Access | None = None
    admin: bool = False
    # In seconds since 1970.
    valid_until: float = math.inf
    # When its credential has to be looked at again; until it expires, streams that stand go on meanwhile.
    recheck_at: float = math.inf
    scopes: frozenset[str] = frozenset()
    # Of a JWT: who issued it, to which client.
    issuer: str = ""
    client_id: str = ""
    # Whether it has another secret than the one before it, whose streams end: their clients come back with the new one.
    has_other_secret: bool = False
    # Of a token: whether a request came since somebody last looked.
    was_used: bool = False
    end_listeners: set[EndListener] = field(default_factory=set[EndListener])
    # Who it is from now on, where it is over because of other rules.
    successor: Principal | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is the user that the gateway runs as."""
        return self.kind == "local"

    @property
    def is_revoked(self) -> bool:
        """Whether nobody is let in as this one any more, under no other rules either. One whose credential has expired
        is not."""
        return self.valid_until == 0.0 and (self.successor is None or self.successor.is_revoked)

    def on_end(self, listener: EndListener) -> Callable[[], None]:
        """Have somebody told when this is over; gives what takes that back."""
        self.end_listeners.add(listener)
        return lambda: self.end_listeners.discard(listener)

    def end(self, successor: Principal | None = None) -> None:
        """From now on nobody is let in as this one. A successor is the same under other rules: whoever listens here
        hears of its end, too."""
        self.valid_until, self.successor = 0.0, successor
        if successor is not None:
            successor.end_listeners = self.end_listeners
        for listener in list(self.end_listeners):
            listener(successor)


# The user that the gateway runs as: whoever has the machine has the config file and the database.
LOCAL = Principal("local", "local", "local", admin=True)
# Somebody about whom nothing is known, where nobody has to say who they are.
ANONYMOUS = Principal("anonymous", "anonymous", "anonymous")
