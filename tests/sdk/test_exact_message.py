"""Messages of the SDK as texts: whatever is in them, there is something to write."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse
from structlog.testing import capture_logs

from pegboard.exactjson import Number, SurrogateText, parse
from pegboard.sdk.exact_message import ExactMessage, write_message

HALF = "cut \ud83d"


def answer(**result: Any) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=7, result=result)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (answer(a="b"), rb'{"jsonrpc":"2.0","id":7,"result":{"a":"b"}}'),
        (
            answer(a=HALF, b=[Number("1e400"), SurrogateText(HALF)]),
            rb'{"jsonrpc":"2.0","id":7,"result":{"a":"cut \ud83d","b":[1e400,"cut \ud83d"]}}',
        ),
        (
            JSONRPCError(jsonrpc="2.0", id="a", error=ErrorData(code=1, message=HALF)),
            rb'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"cut \ud83d"}}',
        ),
        (
            JSONRPCNotification(jsonrpc="2.0", method="x", params={"a": HALF, "n": Number("-1e400")}),
            rb'{"jsonrpc":"2.0","method":"x","params":{"a":"cut \ud83d","n":-1e400}}',
        ),
    ],
)
def test_a_message_with_any_text_is_written(message: JSONRPCMessage, text: bytes) -> None:
    """Half of a surrogate pair is the escape it was, also where it became part of another text."""
    assert write_message(message) == text


def test_a_message_that_cannot_be_written_is_an_error_of_its_request() -> None:
    """The log says why; nothing is raised."""
    circle: dict[str, Any] = {}
    circle["a"] = circle
    unwritable: tuple[JSONRPCMessage, ...] = (answer(a=object()), answer(a=circle))
    for message in unwritable:
        with capture_logs() as logs:
            written = parse(write_message(message))
        assert (written["id"], written["error"]["code"]) == (7, -32603)
        assert [(each["event"], each["log_level"]) for each in logs] == [("client.message.unwritable", "error")]
    note = JSONRPCNotification(jsonrpc="2.0", method="x", params={"a": object()})
    assert parse(write_message(note))["id"] is None


def test_an_error_of_a_client_is_read_exactly() -> None:
    """What a client answers a question with, as the server is told of it."""
    text = rb'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"cut \ud83d","data":[1e400,"\ud83d"]}}'
    assert write_message(ExactMessage.read(text).message) == text
