"""How an outcome becomes a response: one shape for good ones and bad, with the status that fits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard import exactjson
from pegboard.config import ConfigError, ConfigWriteError, UnknownServerError
from pegboard.names import nearest
from pegboard.result import (
    Conflict,
    Forbidden,
    ToolError,
    ToolErrorCode,
    ToolFailure,
    ToolResult,
    error_of,
    invalid,
    unavailable,
)

STATUS = {
    ToolErrorCode.NOT_FOUND: 404,
    ToolErrorCode.INVALID_INPUT: 400,
    ToolErrorCode.UNAVAILABLE: 503,
    ToolErrorCode.RATE_LIMITED: 429,
    ToolErrorCode.NOT_IMPLEMENTED: 501,
    ToolErrorCode.EXECUTION_FAILED: 502,
}
_OK, _CREATED = 200, 201
# What says more than its code does.
_SPECIAL: Mapping[type[Exception], int] = {Conflict: 409, Forbidden: 403}
Handler = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Created:
    """Data about something that was not there before."""

    data: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure, and the result that a tool says it in."""

    error: ToolError
    data: Any

    def to_dict(self) -> dict[str, Any]:
        """The error in the one shape, with the tool's own words beside it."""
        return {**ToolResult[None].failed(self.error).to_dict(), "data": self.data}


def answering(work: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A route that answers with what the work gives, be it data or a whole response, or with what went wrong."""

    async def answer(request: Request) -> Response:
        try:
            data = await _translate_errors(work, request)
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            return error_response(exc)
        if isinstance(data, Response):
            return data
        if isinstance(data, Failed):
            return json_response(data.to_dict(), STATUS[data.error.code], _retry_header(data.error))
        status, data = (_CREATED, data.data) if isinstance(data, Created) else (_OK, data)
        return json_response(ToolResult[Any].ok(data).to_dict(), status)

    return answer


async def _translate_errors(work: Handler, request: Request) -> Any:
    try:
        return await work(request)
    except ConfigWriteError as exc:
        raise unavailable(str(exc)) from None
    except UnknownServerError as exc:
        raise ToolFailure(ToolErrorCode.NOT_FOUND, str(exc), retryable=False) from None
    except ConfigError as exc:
        raise invalid(str(exc)) from None


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request carries; nothing is an empty one."""
    body = await request.body()
    if not body.strip():
        return {}
    try:
        return exactjson.parse_object(body)
    except exactjson.NotJson as exc:
        raise invalid(f"the request is not a JSON object: {exc}") from None


async def members_of(request: Request, known: Collection[str]) -> dict[str, Any]:
    """The same for a request that has certain members and no others."""
    body = await body_of(request)
    for key in body:
        if key not in known:
            close = nearest(key[:80], known, 1)
            hint = f": did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
            raise invalid(f"{key[:80]!r} is not a member of this request{hint}")
    return body


def json_response(value: Any, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(exactjson.dump(value), status, headers, "application/json")


def error_response(exc: Exception) -> Response:
    """Whatever went wrong."""
    error = error_of(exc)
    status = _SPECIAL.get(type(exc), STATUS[error.code])
    return json_response(ToolResult[None].failed(error).to_dict(), status, _retry_header(error))


def _retry_header(error: ToolError) -> Mapping[str, str] | None:
    """When to try again, for whoever is over a limit; HTTP has it in whole seconds."""
    if error.code is not ToolErrorCode.RATE_LIMITED or not error.retry_after:
        return None
    return {"retry-after": str(math.ceil(error.retry_after))}
