"""What the tests keep of sign-ins."""

from __future__ import annotations

import hashlib
import time

from pegboard.storage.oauth import FlowRow, GrantRow

GRANT = GrantRow(
    server="linear",
    principal="",
    url="https://linear.example/mcp",
    issuer="https://login.example",
    resource="https://linear.example/mcp",
    scopes=("read", "write"),
    expires_at=1_800_000_000.25,
    state="live",
    sealed=b"\0sealed\xff",
    created_at=1_700_000_000.5,
    updated_at=1_700_000_001.5,
)


def flow(state: str, *, seconds: float = 600, server: str = "linear", principal: str = "") -> FlowRow:
    """A sign-in that begins now."""
    digest, now = hashlib.sha256(state.encode()).hexdigest(), time.time()
    return FlowRow(
        flow_id=f"flow-{state}",
        state_hash=digest,
        server=server,
        principal=principal,
        sealed=b"verifier",
        created_at=now,
        expires_at=now + seconds,
    )
