"""What can become of a request in place of a result: the server's own error, or a failure of the conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pegboard import exactjson
from pegboard.log import Redactor
from pegboard.protocol.codes import INTERNAL_ERROR
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.message import MAX_ERROR_TEXT, Message

# Characters of what went wrong, which may be in a server's own words.
LONGEST_REASON = 16 * 1024


class RpcError(Exception):
    """A server's own JSON-RPC error, to be passed on as it is."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        # What the HTTP status that it came with means, where the server asks for a pause.
        self.refusal: ToolFailure | None = None


class TimedOut(ToolFailure):
    """No answer came in time; `silent`: nor any progress or question."""

    def __init__(self, reason: str, *, silent: bool) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, reason, retryable=True)
        self.silent = silent


class ConnectionLost(ToolFailure):
    """The conversation ended before the answer came."""

    def __init__(self, reason: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, reason, retryable=True)


class ListRefused(ToolFailure):
    """The server's own error in place of a list."""

    def __init__(self, reason: str) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, reason, retryable=True)


class UnusableAnswer(ToolFailure):
    """The answer is there, and is none."""

    def __init__(self, reason: str) -> None:
        super().__init__(ToolErrorCode.EXECUTION_FAILED, reason, retryable=False)


class AnswerTooLarge(ToolFailure):
    """The answer has more bytes than its request admits."""

    def __init__(self, label: str) -> None:
        super().__init__(ToolErrorCode.EXECUTION_FAILED, f"{label} sent an answer that is too large", retryable=False)


def unusable_answer(label: str, reason: str) -> ToolFailure:
    """The failure of a call whose answer cannot be used."""
    return UnusableAnswer(f"{label} sent an answer that cannot be used: {reason}")


def failure_of(exc: RpcError, tool: str) -> ToolFailure:
    """A server's error about a call, where it is not passed on as it is."""
    if exc.refusal is not None:
        return exc.refusal
    return ToolFailure(ToolErrorCode.EXECUTION_FAILED, f"{tool} failed ({exc.code}): {exc.message}")


def rpc_error(error: Message) -> RpcError:
    """A server's error object as the error it is."""
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message[:MAX_ERROR_TEXT] if isinstance(message, str) else "the server gave no message",
        error.get("data"),
    )


def redact_error(error: RpcError, redactor: Redactor) -> None:
    """Take everything secret out of a server's own error."""
    error.message = redactor.clean(error.message)
    error.args = (error.message,)
    if error.data is not None:
        text = exactjson.dump(error.data).decode()
        cleaned = redactor.clean(text)
        if cleaned != text:
            error.data = exactjson.parse(cleaned.encode())


def redact(failure: ToolFailure, redactor: Redactor) -> None:
    """Take everything secret out of a failure's words."""
    words = redactor.clean(failure.error.message, LONGEST_REASON)
    if words != failure.error.message:
        failure.args = (words,)
        failure.error = replace(failure.error, message=words)
