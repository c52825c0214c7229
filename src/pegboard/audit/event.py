"""What is recorded, as it comes in: all there is to be found out from it is found out later, off the loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from sys import getsizeof
from typing import TypeAlias

from pegboard.access.principal import Principal
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint

LONGEST_TEXT = 200
LONGEST_DETAIL = 500
# What a note without texts takes.
_BARE = 256
_TEXTS = ("outcome", "server", "tool", "client", "network", "trace")

# A call that ended: when, whose, by which endpoint (which a session may change), the tool, its server, the outcome, the
# seconds, the arguments as JSON with their length, the bytes of the result, the trace id, a remark, and the kind of its
# record.
CallEvent: TypeAlias = tuple[
    int, Client, Endpoint, str, str, str, float, "bytes | None", int, int, "str | None", str, str
]


@dataclass(frozen=True, slots=True)
class NoteEvent:
    """Anything else that happened."""

    at: int
    kind: str
    principal: Principal | None = None
    outcome: str = ""
    server: str = ""
    tool: str = ""
    client: str = ""
    session: str = ""
    network: str = ""
    trace: str = ""
    detail: str = ""

    def cut(self) -> NoteEvent:
        """The same with texts that take no more room than their record will."""
        texts = {name: each[:LONGEST_TEXT] for name in _TEXTS if len(each := getattr(self, name)) > LONGEST_TEXT}
        if len(self.detail) > LONGEST_DETAIL:
            texts["detail"] = f"{self.detail[: LONGEST_DETAIL - 1]}…"
        return replace(self, **texts) if texts else self

    @property
    def weight(self) -> int:
        """About how many bytes it takes while it waits."""
        return _BARE + sum(map(getsizeof, (self.server, self.tool, self.client, self.session, self.trace, self.detail)))


AuditEvent: TypeAlias = "CallEvent | NoteEvent"
