"""A principal: who is behind a request. Sessions, boards, parked calls and records of the audit belong to it, and not
to the text of a credential, so that a client whose token is renewed stays who it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pegboard.access.access import Access

Kind = Literal["local", "token", "jwt", "anonymous"]


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
    # Of a token: whether a request came since somebody last looked.
    was_used: bool = False
    _on_end: set[Callable[[], None]] = field(default_factory=set[Callable[[], None]])

    @property
    def is_local(self) -> bool:
        """Whether it is the user that the gateway runs as."""
        return self.kind == "local"

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told when this is revoked; gives what takes that back."""
        self._on_end.add(callback)
        return lambda: self._on_end.discard(callback)

    def end(self) -> None:
        """From now on nobody is let in as this one."""
        self.valid_until = 0.0
        for callback in list(self._on_end):
            callback()


# The user that the gateway runs as: whoever has the machine has the config file and the database.
LOCAL = Principal("local", "local", "local", admin=True)
# Somebody about whom nothing is known, where nobody has to say who they are.
ANONYMOUS = Principal("anonymous", "anonymous", "anonymous")
