"""The two protocol eras: which versions belong to which, and what a request or a result carries in each.

Handshake era (2024-11-05 to 2025-11-25): `initialize`, then plain requests. Modern era (2026-07-28): every
request names its version and its client in `_meta`, every result its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

Era = Literal["handshake", "modern"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LATEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN = MODERN_VERSIONS[-1]

UNSUPPORTED_VERSION = -32022

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CLIENT_INFO_KEY = f"{_PREFIX}clientInfo"
CLIENT_CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
LOG_LEVEL_KEY = f"{_PREFIX}logLevel"
SERVER_INFO_KEY = f"{_PREFIX}serverInfo"
SUBSCRIPTION_KEY = f"{_PREFIX}subscriptionId"
RELATED_TASK_KEY = f"{_PREFIX}related-task"

# How many characters of text the result of this request may have.
CAP_KEY = "pegboard/cap"

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# These belong to one hop: the next one writes its own.
HOP_KEYS = frozenset(
    {
        "progressToken",
        VERSION_KEY,
        CLIENT_INFO_KEY,
        CLIENT_CAPABILITIES_KEY,
        LOG_LEVEL_KEY,
        SUBSCRIPTION_KEY,
        "pegboard/server",
        "pegboard/prefix",
        CAP_KEY,
    }
)


def era_of(version: str) -> Era:
    """The era a protocol version belongs to."""
    return "modern" if version in MODERN_VERSIONS else "handshake"


def severity(level: object) -> int:
    """How severe a log level is; one that nobody knows counts as the least."""
    return LOG_LEVELS.index(level) if level in LOG_LEVELS else 0


def forward_params(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """A client's params for the next hop: everything as it is, but without the keys of this one."""
    forwarded = dict(params or {})
    meta = forwarded.get("_meta")
    if isinstance(meta, dict):
        kept = {key: value for key, value in cast("dict[str, Any]", meta).items() if key not in HOP_KEYS}
        # An empty one that the client wrote stays; one that had nothing but keys of this hop goes with them.
        if kept or not meta:
            forwarded["_meta"] = kept
        else:
            del forwarded["_meta"]
    return forwarded


def modern_params(
    params: Mapping[str, Any] | None,
    *,
    version: str,
    client_info: Mapping[str, Any],
    capabilities: Mapping[str, Any],
    log_level: str | None = None,
) -> dict[str, Any]:
    """Params with the envelope that every request of the modern era carries."""
    stamped = dict(params or {})
    meta = dict(cast("Mapping[str, Any]", stamped.get("_meta") or {}))
    meta[VERSION_KEY] = version
    meta[CLIENT_INFO_KEY] = dict(client_info)
    meta[CLIENT_CAPABILITIES_KEY] = dict(capabilities)
    if log_level is not None:
        meta[LOG_LEVEL_KEY] = log_level
    stamped["_meta"] = meta
    return stamped
