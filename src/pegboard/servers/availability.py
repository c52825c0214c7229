"""Availability: whether the tools of a server can be used now, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a tool can be used now, and if not, why."""

    status: str
    reason: str | None = None
    stale_since: float | None = None
    next_try_in: float | None = None

    def to_dict(self) -> dict[str, object]:
        """Only what there is to say."""
        data: dict[str, object] = {"status": self.status}
        if self.reason is not None:
            data["reason"] = self.reason
        if self.stale_since is not None:
            data["staleSince"] = _iso(self.stale_since)
        if self.next_try_in is not None:
            data["nextTryInSeconds"] = round(self.next_try_in, 1)
        return data


def availability_of(server: Server, stale_since: float | None) -> Availability:
    """Whether a server's tools can be used now."""
    match server.state:
        case ServerState.DISABLED:
            return Availability("disabled", f"server {server.name} is disabled")
        case ServerState.INVALID:
            return Availability("unavailable", server.spec.problem)
        case ServerState.LOST:
            return Availability("unavailable", server.last_error, next_try_in=server.next_try_in)
        case ServerState.NEEDS_AUTH:
            return Availability("needs_auth", server.last_error)
        case _:
            return Availability("available", stale_since=stale_since)


def _iso(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
