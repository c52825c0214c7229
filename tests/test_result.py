"""What the tool layer answers: one shape, one closed set of codes, and no exceptions."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.result import (
    ToolError,
    ToolErrorCode,
    ToolFailure,
    ToolResult,
    as_result,
    error_of,
    invalid,
    is_retryable,
    unavailable,
)

pytestmark = pytest.mark.anyio

SIGNS = ["timeout", "timed out", "rate limit", "429", "503", "connection reset", "connection refused"]


class UnspeakableError(Exception):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def answering(value: object) -> object:
    return value


async def raising(exc: BaseException) -> object:
    raise exc


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
def test_the_codes_are_a_closed_set() -> None:
    """The four codes of spec 4 and the two that the product adds are all there is."""
    assert {code.value for code in ToolErrorCode} == {
        "TOOL_NOT_IMPLEMENTED",
        "TOOL_INVALID_INPUT",
        "TOOL_UNAVAILABLE",
        "TOOL_EXECUTION_FAILED",
        "TOOL_NOT_FOUND",
        "RATE_LIMITED",
    }


@pytest.mark.parametrize("data", [{"registered": 3}, [], None, 0, "text"])
def test_a_success_is_written_as_success_and_data(data: object) -> None:
    """A success is `{"success": true, "data": …}` and nothing else, even where the data is empty."""
    assert ToolResult[object].ok(data).to_dict() == {"success": True, "data": data}


@pytest.mark.parametrize("code", list(ToolErrorCode))
@pytest.mark.parametrize("retryable", [True, False])
def test_a_failure_is_written_as_success_and_error(code: ToolErrorCode, retryable: bool) -> None:
    """A failure is `{"success": false, "error": {code, message, retryable}}` and nothing else."""
    result = ToolResult[int].failed(ToolError(code, "it broke", retryable))
    assert not result.success
    assert result.to_dict() == {
        "success": False,
        "error": {"code": str(code), "message": "it broke", "retryable": retryable},
    }


def test_unwrap_gives_the_data_of_a_success() -> None:
    """Inside the package a success is its data again."""
    assert ToolResult[list[int]].ok([1]).unwrap() == [1]


def test_unwrap_raises_the_error_of_a_failure() -> None:
    """Inside the package a failure is an exception again, with nothing of its error lost."""
    error = ToolError(ToolErrorCode.RATE_LIMITED, "slow down", retryable=True)
    with pytest.raises(ToolFailure, match="slow down") as raised:
        ToolResult[int].failed(error).unwrap()
    assert raised.value.error == error


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("dress", ["{}", "request failed: {} (x)"])
def test_every_sign_of_a_passing_trouble_is_retryable(sign: str, dress: str) -> None:
    """Each of the seven signs is found anywhere in an error's text, in any case, in texts and exceptions alike."""
    for text in (dress.format(sign), dress.format(sign).upper(), dress.format(sign).title()):
        assert is_retryable(text)
        assert is_retryable(RuntimeError(text))


@pytest.mark.parametrize(
    "text", ["", "bad input", "500", "401 unauthorized", "connection closed", "time", "rate-limit"]
)
def test_other_errors_are_not_retryable(text: str) -> None:
    """An error without one of the signs is not tried again."""
    assert not is_retryable(text)


@pytest.mark.parametrize(("message", "retryable"), [("HTTP 503", True), ("no such file", False)])
def test_a_failure_tells_from_its_words_whether_to_retry(message: str, retryable: bool) -> None:
    """Where nobody says whether a failure is retryable, its own words do."""
    assert ToolFailure(ToolErrorCode.EXECUTION_FAILED, message).error.retryable is retryable


@pytest.mark.parametrize("retryable", [True, False])
def test_a_failure_says_itself_whether_to_retry(retryable: bool) -> None:
    """Where a failure says whether it is retryable, its words do not count."""
    for message in ("timeout", "gone"):
        assert ToolFailure(ToolErrorCode.UNAVAILABLE, message, retryable=retryable).error.retryable is retryable


def test_the_two_usual_failures() -> None:
    """A server out of reach is worth another try, a wrong call never is."""
    assert unavailable("x").error == ToolError(ToolErrorCode.UNAVAILABLE, "x", retryable=True)
    assert unavailable("x", retryable=False).error == ToolError(ToolErrorCode.UNAVAILABLE, "x", retryable=False)
    assert invalid("timeout: 5").error == ToolError(ToolErrorCode.INVALID_INPUT, "timeout: 5", retryable=False)


UNAVAILABLE, FAILED = ToolErrorCode.UNAVAILABLE, ToolErrorCode.EXECUTION_FAILED


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
@pytest.mark.parametrize(
    ("exc", "error"),
    [
        (invalid("bad"), ToolError(ToolErrorCode.INVALID_INPUT, "bad")),
        (TimeoutError(), ToolError(UNAVAILABLE, "timed out", retryable=True)),
        (TimeoutError("after 5 s"), ToolError(UNAVAILABLE, "after 5 s", retryable=True)),
        (ConnectionRefusedError("Connection refused"), ToolError(UNAVAILABLE, "Connection refused", retryable=True)),
        (ConnectionResetError(104, "Connection reset by peer"), None),
        (ConnectionError(), ToolError(UNAVAILABLE, "ConnectionError")),
        (FileNotFoundError(2, "No such file"), ToolError(UNAVAILABLE, "[Errno 2] No such file")),
        (ValueError("nope"), ToolError(FAILED, "ValueError: nope")),
        (KeyError("k"), ToolError(FAILED, "KeyError: 'k'")),
        (RuntimeError("HTTP 429"), ToolError(FAILED, "RuntimeError: HTTP 429", retryable=True)),
        (UnspeakableError(), ToolError(FAILED, "UnspeakableError: ")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_exceptions_become_errors(exc: Exception, error: ToolError | None) -> None:
    """Connectivity is TOOL_UNAVAILABLE, the unexpected TOOL_EXECUTION_FAILED, a failure keeps its own error."""
    expected = error or ToolError(UNAVAILABLE, "[Errno 104] Connection reset by peer", retryable=True)
    assert error_of(exc) == expected
    assert await as_result(raising(exc)) == ToolResult[object].failed(expected)


async def test_caught_gives_what_came_back() -> None:
    """An operation that ends well is a success with what it returned."""
    assert await as_result(answering([1, None])) == ToolResult[object].ok([1, None])


async def test_caught_takes_a_group_of_exceptions() -> None:
    """A group of exceptions, as task groups raise it, is a failure like any other."""
    result = await as_result(raising(ExceptionGroup("two", [ValueError("a"), KeyError("b")])))
    assert result.error is not None
    assert result.error.code is FAILED


async def test_caught_lets_cancellation_through() -> None:
    """Who is cancelled while waiting for a tool is cancelled, not answered."""
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    async def ask(operation: Awaitable[None]) -> ToolResult[None]:
        return await as_result(operation)

    task = asyncio.create_task(ask(forever()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
@given(kind=st.sampled_from([ValueError, OSError, RuntimeError, TimeoutError, KeyError]), text=st.text())
def test_caught_never_raises(kind: type[Exception], text: str) -> None:
    """Whatever is raised, with whatever words, comes back as a failure with a known code."""
    result = asyncio.run(as_result(raising(kind(text))))
    assert result.error is not None
    assert isinstance(result.error.code, ToolErrorCode)
    assert not result.success
