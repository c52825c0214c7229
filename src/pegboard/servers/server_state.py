"""The states of a server."""

from __future__ import annotations

from enum import StrEnum

from pegboard.config import ServerSpec


class ServerState(StrEnum):
    """What is known of a server right now."""

    REGISTERED = "registered"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    IDLE = "idle"
    # It could not be reached when it was last tried; what is known of it stays in the list.
    UNREACHABLE = "unreachable"
    # A live connection broke, or calls failed until the breaker opened: its tools are in no list.
    LOST = "lost"
    DISABLED = "disabled"
    NEEDS_AUTH = "needs_auth"
    INVALID = "invalid"

    @classmethod
    def first(cls, spec: ServerSpec) -> ServerState:
        """The state of a server of which nothing but its config is known."""
        if not spec.enabled:
            return cls.DISABLED
        return cls.INVALID if spec.problem else cls.REGISTERED


def first_error(spec: ServerSpec) -> str | None:
    """What is wrong before anybody asked it; of one that is switched off nobody needs to know."""
    return spec.problem if spec.enabled else None
