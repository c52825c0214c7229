"""What is recorded, as it comes in: all there is to be found out from it is found out later, off the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pegboard.access.principal import Principal
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint

# A call that ended: when, whose, by which endpoint (which a session may change), the tool, its server, the outcome, the
# seconds, the arguments as JSON with their length, the bytes of the result, the trace id, and a remark.
CallEvent: TypeAlias = tuple[int, Client, Endpoint, str, str, str, float, "bytes | None", int, int, "str | None", str]


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


AuditEvent: TypeAlias = "CallEvent | NoteEvent"
