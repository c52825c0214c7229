"""What does not pass, by suite, each with its reason: `scenario: check`, or a scenario if the gateway is the client."""

from __future__ import annotations

_ANNOUNCED = (
    "a handshake server was told once what any client might be asked, so it does not refuse by itself; "
    "the refusal comes to it question by question"
)

_DPOP = "tokens are bearer tokens: a token that is bound to a key (RFC 9449) is not asked for"

# With a server of the client's own era everything passes. Across the eras some things cannot be told.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "0.1.16": {},
    "2025-11-25": {},
    "2026-07-28": {},
    "modern-client-handshake-server": {
        "input-required-result-basic-elicitation: InputRequiredResultElicitationIncomplete": (
            "the check wants the key that the server gave its question; a handshake server's question has none"
        ),
        "input-required-result-capability-check: RespectClientCapabilities": _ANNOUNCED,
        "server-stateless: ServerRejectsUndeclaredCapability": _ANNOUNCED,
        "server-stateless: MissingCapabilityHttp400": _ANNOUNCED,
    },
    "handshake-client-modern-server": {},
    "client-auth-2026-07-28": {},
    "client-auth-2025-11-25": {},
    "client-auth-2025-03-26": {},
    "client-auth-extensions": {"auth/dpop": _DPOP, "auth/dpop-nonce": _DPOP},
}
