"""What a record says of how a call went."""

from __future__ import annotations

from pegboard.audit.record import REFUSED
from pegboard.audit.writer import AuditUnavailable
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure
from pegboard.servers.errors import RpcError, TimedOut

# The answer to a call is a question: whoever answers it sends the call again.
ASKED = "input_required"
_TOLD = {"ok": "ok", "error": "tool_error", "cancelled": "cancelled", ASKED: ASKED}
_BY_KIND: tuple[tuple[type[BaseException], str], ...] = (
    (RpcError, "rpc_error"),
    (AuditUnavailable, f"{REFUSED}audit"),
    (TimedOut, "timeout"),
    (TimeoutError, "timeout"),
    (Forbidden, f"{REFUSED}forbidden"),
)
_BY_CODE = {
    ToolErrorCode.RATE_LIMITED: f"{REFUSED}limit",
    ToolErrorCode.UNAVAILABLE: "unavailable",
    ToolErrorCode.INVALID_INPUT: "invalid",
    ToolErrorCode.NOT_FOUND: "not_found",
}


def outcome_of(outcome: str, refusal: str, exc: BaseException | None) -> tuple[str, str]:
    """How a call went, and a remark. `refusal` says why it was not made, where that is known."""
    if refusal:
        return f"{REFUSED}{refusal}", ""
    if outcome in _TOLD:
        return _TOLD[outcome], ""
    for kind, word in _BY_KIND:
        if isinstance(exc, kind):
            return word, str(exc.code) if isinstance(exc, RpcError) else ""
    if isinstance(exc, ToolFailure):
        return _BY_CODE.get(exc.error.code, "failed"), ""
    return "failed", "" if exc is None else type(exc).__name__
