"""What the tool layer answers: a `ToolResult`, never an exception.

Inside the package errors are raised as `ToolFailure`; `caught` is the one place that turns
whatever was raised into a `ToolResult`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class ToolErrorCode(StrEnum):
    """Every code an error can carry; nothing outside of this set is ever sent."""

    NOT_IMPLEMENTED = "TOOL_NOT_IMPLEMENTED"
    INVALID_INPUT = "TOOL_INVALID_INPUT"
    UNAVAILABLE = "TOOL_UNAVAILABLE"
    EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    NOT_FOUND = "TOOL_NOT_FOUND"
    RATE_LIMITED = "RATE_LIMITED"


_RETRYABLE_SIGNS = ("timeout", "timed out", "rate limit", "429", "503", "connection reset", "connection refused")


def is_retryable(error: object) -> bool:
    """Whether trying again later may help, told from the error's own words."""
    text = str(error).lower()
    return any(sign in text for sign in _RETRYABLE_SIGNS)


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why an operation failed, for a program (`code`), a person (`message`) and a loop (`retryable`)."""

    code: ToolErrorCode
    message: str
    retryable: bool = False
    # Seconds before which another try is of no use, if the server said so.
    retry_after: float = 0.0
    # The server that a sign-in would make usable, if that is what is missing. It is never read out of anybody's words,
    # and not written on a wire.
    sign_in: str | None = None

    @classmethod
    def read(cls, written: object) -> ToolError | None:
        """An error out of what `to_dict` wrote; `None` if it is none."""
        found = cast("dict[str, object]", written) if isinstance(written, dict) else {}
        code, message = found.get("code"), found.get("message")
        if code not in set(ToolErrorCode) or not isinstance(message, str):
            return None
        wait = found.get("retryAfter")
        retry_after = max(float(wait), 0.0) if isinstance(wait, (int, float)) else 0.0
        return cls(ToolErrorCode(code), message, found.get("retryable") is True, retry_after)

    def to_dict(self) -> dict[str, object]:
        """The error as it is written on every wire; who is over a limit is told when to try again."""
        written: dict[str, object] = {"code": self.code.value, "message": self.message, "retryable": self.retryable}
        if self.code is ToolErrorCode.RATE_LIMITED and self.retry_after > 0:
            written["retryAfter"] = self.retry_after
        return written


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[T]):
    """Either `data` or an `error`; which one, `success` tells."""

    success: bool
    data: T | None = None
    error: ToolError | None = None

    @classmethod
    def ok(cls, data: T) -> ToolResult[T]:
        """A result that carries data."""
        return cls(success=True, data=data)

    @classmethod
    def failed(cls, error: ToolError) -> ToolResult[T]:
        """A result that carries an error."""
        return cls(success=False, error=error)

    def unwrap(self) -> T:
        """The data; a failed result raises its error as `ToolFailure`."""
        if self.error is not None:
            failure = ToolFailure(self.error.code, self.error.message)
            failure.error = self.error
            raise failure
        return cast("T", self.data)

    def to_dict(self) -> dict[str, object]:
        """The result as it is written on every wire."""
        if self.error is not None:
            return {"success": False, "error": self.error.to_dict()}
        return {"success": True, "data": self.data}


class ToolFailure(Exception):  # noqa: N818  it names an outcome of a tool, as its result does
    """An expected failure on its way to the tool layer's border."""

    def __init__(
        self, code: ToolErrorCode, message: str, *, retryable: bool | None = None, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.error = ToolError(code, message, is_retryable(message) if retryable is None else retryable, retry_after)


class Conflict(ToolFailure):
    """What is asked for does not go together with what is there: somebody else was first."""

    def __init__(self, message: str) -> None:
        super().__init__(ToolErrorCode.INVALID_INPUT, message, retryable=False)


class Forbidden(ToolFailure):
    """Whoever asks may not have this."""

    def __init__(self, message: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)


def unavailable(message: str, *, retryable: bool = True) -> ToolFailure:
    """The failure of a server that cannot be reached now."""
    return ToolFailure(ToolErrorCode.UNAVAILABLE, message, retryable=retryable)


def invalid(message: str) -> ToolFailure:
    """The failure of a call or setting that is wrong in itself."""
    return ToolFailure(ToolErrorCode.INVALID_INPUT, message, retryable=False)


def error_of(exc: BaseException) -> ToolError:
    """The error that an exception stands for."""
    if isinstance(exc, ToolFailure):
        return exc.error
    words = words_of(exc)
    if isinstance(exc, TimeoutError):
        return ToolError(ToolErrorCode.UNAVAILABLE, words or "timed out", retryable=True)
    if isinstance(exc, OSError):
        return ToolError(ToolErrorCode.UNAVAILABLE, words or type(exc).__name__, retryable=is_retryable(words))
    return ToolError(ToolErrorCode.EXECUTION_FAILED, f"{type(exc).__name__}: {words}", retryable=is_retryable(words))


def words_of(exc: BaseException) -> str:
    """An exception's own words as an answer may have them; some cannot even say those."""
    if isinstance(exc, ToolFailure):
        return exc.error.message
    try:
        return str(exc)
    except Exception:
        return ""


async def as_result(operation: Awaitable[T]) -> ToolResult[T]:
    """Run an operation and give its outcome as a `ToolResult`; only cancellation goes through."""
    try:
        return ToolResult[T].ok(await operation)
    except asyncio.CancelledError:
        raise
    except Exception as exc:
        return ToolResult[T].failed(error_of(exc))
