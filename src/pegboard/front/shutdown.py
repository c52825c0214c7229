"""What requests get while the gateway stops: a refusal in the one shape of errors, and no traceback in the log."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.result import ToolError, ToolErrorCode, ToolResult


class Shutdown:
    """Stands before the full way. Sessions and servers end first: what still comes, or is under way, has to fail."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.has_begun:
            await stopping_response()(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except (Exception, asyncio.CancelledError):
            # uvicorn cancels what takes longer than its grace, and logs that as a fault of ours.
            if not self.has_begun:
                raise
            await _end(scope, receive, send)


async def _end(scope: Scope, receive: Receive, send: Send) -> None:
    """End a response wherever it was; uvicorn raises for a message that does not belong there."""
    try:
        await stopping_response()(scope, receive, send)
    except RuntimeError:
        with contextlib.suppress(RuntimeError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def stopping_response() -> JSONResponse:
    """The refusal; the client may come again, to whoever is there next."""
    error = ToolError(ToolErrorCode.UNAVAILABLE, "the gateway is stopping", retryable=True)
    headers = {"connection": "close", "retry-after": "1"}
    return JSONResponse(ToolResult[None].failed(error).to_dict(), 503, headers)
