"""Messages of a server as they are passed around, and how large they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Message = dict[str, Any]
Params = Mapping[str, Any]

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# An error is a sentence, and what else a server needs to say by itself is not a document.
MAX_ERROR_TEXT = 64 * 1024


def cancellation(request_id: int, reason: str) -> Message:
    """The notification that nobody waits for an answer any more."""
    params = {"requestId": request_id, "reason": reason}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
