"""A call that ended, as whoever looks on is told of it: names and numbers, nothing of what it was called with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard.audit.record import iso_time


@dataclass(frozen=True, slots=True)
class EndedCall:
    """Who called what, and how it went."""

    # Nanoseconds since 1970.
    at: int
    principal_id: str
    principal: str
    client: str
    tool: str
    # Empty for tools of Pegboard's own, and for those that there are not.
    server: str
    # As a record of the audit has it.
    outcome: str
    seconds: float
    result_bytes: int
    trace: str

    def to_dict(self) -> dict[str, Any]:
        """As programs read it: like a record of the audit, as far as they have the same."""
        return {
            "at": iso_time(self.at),
            "principal": {"id": self.principal_id, "name": self.principal},
            "client": self.client,
            **({"server": self.server} if self.server else {}),
            "tool": self.tool,
            "outcome": self.outcome,
            "ms": round(self.seconds * 1000, 3),
            **({} if self.result_bytes < 0 else {"resultBytes": self.result_bytes}),
            "trace": self.trace,
        }
