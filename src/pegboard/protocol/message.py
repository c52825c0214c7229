"""Inbound messages: what is wrong with one that is JSON and no message of JSON-RPC."""

from __future__ import annotations

from pegboard import exactjson
from pegboard.protocol import raw_json
from pegboard.protocol.codes import INVALID_REQUEST, PARSE_ERROR

MAX_BODY = 4 * 1024 * 1024
COULD_NOT_ANSWER = "Pegboard could not answer this; its log says why"


class NotAMessage(ValueError):  # noqa: N818  it says what a text is
    """A text that is no JSON-RPC message."""


def is_batch(text: bytes) -> bool:
    """Whether a text is a list, as far as its first character tells."""
    return text.lstrip(b" \t\r\n").startswith(b"[")


def is_greeting(text: bytes) -> bool:
    """Whether a text asks for a session to be opened."""
    method = (raw_json.members(text) or {}).get("method", b"")
    return raw_json.is_text(method) and exactjson.parse(method) == "initialize"


def fault(text: bytes) -> str | None:
    """What is wrong with a text as one message; `None` where nothing is, or where it is not JSON at all."""
    try:
        parts = raw_json.members(text) or _odd_members(text)
    except exactjson.NotJson:
        return None
    if parts is None:
        return "a message must be a JSON object"
    number, method = parts.get("id", b"0"), parts.get("method", b'""')
    # In this order: the first that holds is the one that is told.
    faults = {
        'jsonrpc must be "2.0"': parts.get("jsonrpc") != b'"2.0"',
        "a message must have a method, a result or an error": not parts.keys() & {"method", "result", "error"},
        "method must be a string": not method.startswith(b'"'),
        "method must be valid Unicode, not half of a surrogate pair": not raw_json.is_text(method),
        # It is no notification either: whoever sent it waits for an answer.
        "id must be a string of valid Unicode or a whole number of 4,300 digits at most": "method" in parts
        and not raw_json.is_request_id(number),
        "params must be an object": not parts.get("params", b"{").startswith((b"{", b"null")),
    }
    return next((reason for reason, holds in faults.items() if holds), None)


def _odd_members(text: bytes) -> dict[str, bytes] | None:
    """The members of an object that has half of a surrogate pair in it, or has no members."""
    value = exactjson.as_object(exactjson.parse(text))
    return None if value is None else {name: exactjson.dump(item) for name, item in value.items()}


def refusal(reason: str, request_id: bytes = b"null") -> bytes:
    """The answer to what is no message."""
    error = exactjson.dump({"code": INVALID_REQUEST, "message": f"Invalid request: {reason}"})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, error)


def parse_error(reason: str) -> bytes:
    """The answer to what is not JSON."""
    error = exactjson.dump({"code": PARSE_ERROR, "message": f"Parse error: {reason}"})
    return b'{"jsonrpc":"2.0","id":null,"error":%b}' % error
