"""A record of the audit: one call, one refusal, one change. It names who did it, never what they proved that with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

_MICRO = 1000
_BILLION = 1_000_000_000
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CALL = "call"
# How an outcome begins that stands for something that was not done.
REFUSED = "refused:"


class AuditRecord(msgspec.Struct, frozen=True, array_like=True):
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

    def canonical(self) -> bytes:
        """What its hash is made of."""
        return _encoder.encode(self)

    def to_dict(self) -> dict[str, Any]:
        """The record as programs read it; what does not apply is left out."""
        return {
            "id": self.id,
            "at": iso_time(self.at),
            "kind": self.kind,
            **_known("principal", _known("id", self.principal_id) | _known("name", self.principal)),
            **_known("client", self.client),
            **_known("session", self.session),
            **_known("board", self.board),
            **_known("server", self.server),
            **_known("tool", self.tool),
            **_known("outcome", self.outcome),
            **({} if self.us < 0 else {"ms": self.us / _MICRO}),
            **({} if self.args_bytes < 0 else {"argsBytes": self.args_bytes}),
            **_known("argsDigest", self.args_digest),
            **({} if not self.arguments else {"arguments": msgspec.json.decode(self.arguments)}),
            **({} if self.result_bytes < 0 else {"resultBytes": self.result_bytes}),
            **_known("trace", self.trace),
            **_known("era", self.era),
            **_known("network", self.network),
            **_known("detail", self.detail),
            "process": self.process,
        }


_encoder = msgspec.json.Encoder()
COLUMNS = AuditRecord.__struct_fields__


def iso_time(at: int) -> str:
    """A moment to the microsecond, in UTC."""
    seconds, nanoseconds = divmod(at, _BILLION)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds // _MICRO:06d}Z"


def day_of(at: int) -> str:
    """The day of a moment, in UTC."""
    return f"{datetime.fromtimestamp(at // _BILLION, UTC):%Y-%m-%d}"


def record_id(at: int, number: int, process: str) -> str:
    """An id that sorts by time, then by number: milliseconds, number and process, 26 characters as a ULID has."""
    return f"{base32(at // 1_000_000, 10)}{base32(number % 2**30, 6)}{process}"


def base32(number: int, length: int) -> str:
    """A number in Crockford's base 32, in so many characters."""
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(length)))


def _known(name: str, value: str | dict[str, Any]) -> dict[str, Any]:
    return {name: value} if value else {}
