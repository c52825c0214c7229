"""A record of the audit: one call, one refusal, one change. It names who did it, never what they proved that with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

_MICRO = 1000
_BILLION = 1_000_000_000
_DAY = 86_400 * _BILLION
CALL = "call"
# A tool of Pegboard's own that an entrance for people and programs reads with: nobody called it by its name.
READ = "read"
# How an outcome begins that stands for something that was not done.
REFUSED = "refused:"
# What a record can be about.
KINDS = (
    *(CALL, READ, "prompt", "resource", "request", "access", "session.started", "session.ended"),
    *(f"token.{what}" for what in ("added", "changed", "rotated", "removed")),
    *(f"server.{what}" for what in ("added", "removed", "enabled", "disabled", "changed")),
    *(f"signin.{what}" for what in ("begun", "done", "failed", "ended", "lost")),
    *(f"definition.{what}" for what in ("changed", "accepted", "rejected")),
    *("auth.changed", "config.changed", "gateway.started", "gateway.stopped"),
    *("audit.on", "audit.off", "audit.away", "audit.lost", "audit.pruned"),
)
# How something went, and why it was not done.
OUTCOMES = (
    *(
        "ok",
        "input_required",
        "tool_error",
        "rpc_error",
        "timeout",
        "cancelled",
        "unavailable",
        "invalid",
        "not_found",
        "failed",
    ),
    "refused",
)
REASONS = (
    *("rule", "unknown_tool", "limit", "forbidden", "audit", "insufficient_scope", "no_credentials"),
    *("invalid_token", "invalid_request", "expired", "removed", "invalid"),
)


class AuditRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record, in the order in which its hash and its row have its fields. What does not apply is empty, or -1."""

    # In the order of time; those of one process are in the order in which they happened.
    id: str
    process: str
    chain: int
    # Its place in the chain, from 1 on.
    number: int
    # Nanoseconds since 1970, UTC.
    at: int
    kind: str
    principal_id: str
    principal: str
    # What the client calls itself.
    client: str
    # A digest: whoever knows a session's id may speak for it.
    session: str
    board: str
    server: str
    tool: str
    outcome: str
    # Microseconds.
    us: int
    args_bytes: int
    args_digest: str
    # Names or values of arguments as JSON, where the config wants them.
    arguments: str
    result_bytes: int
    trace: str
    era: str
    network: str
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """The record as programs read it; what does not apply is left out."""
        return {
            "id": self.id,
            "at": iso_time(self.at),
            "kind": self.kind,
            **_member("principal", _member("id", self.principal_id) | _member("name", self.principal)),
            **_member("client", self.client),
            **_member("session", self.session),
            **_member("board", self.board),
            **_member("server", self.server),
            **_member("tool", self.tool),
            **_member("outcome", self.outcome),
            **({} if self.us < 0 else {"ms": self.us / _MICRO}),
            **({} if self.args_bytes < 0 else {"argsBytes": self.args_bytes}),
            **_member("argsDigest", self.args_digest),
            **({} if not self.arguments else {"arguments": _read_arguments(self.arguments)}),
            **({} if self.result_bytes < 0 else {"resultBytes": self.result_bytes}),
            **_member("trace", self.trace),
            **_member("era", self.era),
            **_member("network", self.network),
            **_member("detail", self.detail),
            "process": self.process,
        }


# A record as its row: its fields in their order. Only whoever reads one makes an `AuditRecord` of it.
AuditRow: TypeAlias = tuple[str | int, ...]
COLUMNS = AuditRecord.__struct_fields__
# What the hash of a record is made of.
canonical: Callable[[AuditRow], bytes] = msgspec.json.Encoder().encode


def iso_time(at: int) -> str:
    """A moment to the microsecond, in UTC."""
    seconds, nanoseconds = divmod(at, _BILLION)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds // _MICRO:06d}Z"


@lru_cache(maxsize=16)
def end_of_day(day: str) -> int:
    """The moment at which a day is over, in UTC; none is over from the start."""
    return int(datetime.fromisoformat(f"{day}T00:00:00Z").timestamp()) * _BILLION + _DAY if day else 0


def day_of(at: int) -> str:
    """The day of a moment, in UTC."""
    return _day(at // _DAY)


@lru_cache(maxsize=16)
def _day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * 86_400, UTC):%Y-%m-%d}"


def record_id(at: int, number: int, process: str) -> str:
    """An id that sorts by time, then by number: milliseconds, number and process."""
    # Written out, since it is made for each call; `time_prefix` is how it begins.
    return f"{at // 1_000_000:012x}{number & 0xFFFFFFFF:08x}{process}"


def time_prefix(at: int) -> str:
    """How the ids of a moment begin."""
    return f"{at // 1_000_000:012x}"


def _read_arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        # One record that cannot be read must not hide the others.
        return {"…": text}


def _member(name: str, value: str | dict[str, Any]) -> dict[str, Any]:
    return {name: value} if value else {}
