"""What requests get while the gateway stops: a refusal in the one shape of errors, and no traceback in the log."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.clients.request_context import STARTED_CALL
from pegboard.result import ToolError, ToolErrorCode, ToolResult

_LISTEN = b"subscriptions/listen"


class Shutdown:
    """Stands before the full path and counts the requests under way, which may finish before sessions and servers end.
    Streams that stand open until somebody closes them do not count."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.has_begun = False
        self._under_way = 0
        self._idle = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A call that was begun before goes on.
        if self.has_begun and STARTED_CALL not in scope:
            await stopping_response()(scope, receive, send)
            return
        if _is_standing(scope):
            await self._serve(scope, receive, send)
            return
        self.begin()
        try:
            await self._serve(scope, receive, send)
        finally:
            self.end()

    def begin(self) -> None:
        """A request is under way."""
        self._under_way += 1

    def end(self) -> None:
        """It is over."""
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    async def finish(self, grace: float) -> None:
        """Take no more requests, and wait so many seconds at most for those that are under way."""
        self.has_begun = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._under_way:
                    self._idle.clear()
                    await self._idle.wait()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except (Exception, asyncio.CancelledError):
            # uvicorn cancels what takes longer than its grace, and logs that as a fault of ours.
            if not self.has_begun:
                raise
            await _end(scope, receive, send)


def _is_standing(scope: Scope) -> bool:
    headers = dict(scope.get("headers", ()))
    if scope.get("method") == "GET":
        return b"text/event-stream" in headers.get(b"accept", b"")
    return headers.get(b"mcp-method", b"").strip() == _LISTEN


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
