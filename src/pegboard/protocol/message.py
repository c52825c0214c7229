"""Inbound messages: what is wrong with one that is JSON and no message of JSON-RPC, and batches of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from pegboard import exactjson
from pegboard.protocol import envelope

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
# The one version whose clients may send batches, and whose servers must take them.
BATCH_VERSION = "2025-03-26"
MAX_BATCH = 100
_NO_BATCH = f"a batch of messages is taken in a session of {BATCH_VERSION} alone; send them one by one"
_elements = Decoder(list[Raw])


def is_batch(text: bytes) -> bool:
    """Whether a text is a list, as far as its first character tells."""
    return text.lstrip(b" \t\r\n").startswith(b"[")


def is_greeting(text: bytes) -> bool:
    """Whether a text asks for a session to be opened."""
    return (envelope.members(text) or {}).get("method") == b'"initialize"'


def fault(text: bytes) -> str | None:
    """What is wrong with a text as one message; `None` where nothing is, or where it is not JSON at all."""
    parts = envelope.members(text)
    if parts is None:
        try:
            exactjson.parse(text)
        except exactjson.NotJson:
            return None
        return "a message must be a JSON object"
    number = parts.get("id", b"0")
    # In this order: the first that holds is the one that is told.
    faults = {
        'jsonrpc must be "2.0"': parts.get("jsonrpc") != b'"2.0"',
        "a message must have a method, a result or an error": not parts.keys() & {"method", "result", "error"},
        "method must be a string": not parts.get("method", b'"').startswith(b'"'),
        # It is no notification either: whoever sent it waits for an answer.
        "id must be a string or a whole number": "method" in parts and not envelope.is_request_id(number),
        "params must be an object": not parts.get("params", b"{").startswith((b"{", b"null")),
    }
    return next((reason for reason, holds in faults.items() if holds), None)


def refusal(reason: str, request_id: bytes = b"null") -> bytes:
    """The answer to what is no message."""
    error = exactjson.dump({"code": INVALID_REQUEST, "message": f"Invalid request: {reason}"})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, error)


def parse_error(reason: str) -> bytes:
    """The answer to what is not JSON."""
    error = exactjson.dump({"code": PARSE_ERROR, "message": f"Parse error: {reason}"})
    return b'{"jsonrpc":"2.0","id":null,"error":%b}' % error


class BatchRefused(ValueError):  # noqa: N818  it names an answer
    """A batch that is not taken as a whole."""


@dataclass(slots=True)
class Batch:
    """The messages of a batch, and the answers to those that are none."""

    messages: list[bytes] = field(default_factory=list[bytes])
    refusals: list[bytes] = field(default_factory=list[bytes])

    @classmethod
    def of(cls, text: bytes, version: str | None) -> Batch:
        """Take a batch apart; `BatchRefused` says why it is not taken, `NotJson` that it is none."""
        try:
            elements = [bytes(element) for element in _elements.decode(text)]
            text.decode()
        except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise exactjson.NotJson(str(exc)) from None
        if version != BATCH_VERSION:
            raise BatchRefused(_NO_BATCH)
        if not elements:
            raise BatchRefused("the batch is empty")
        if len(elements) > MAX_BATCH:
            raise BatchRefused(f"a batch may have {MAX_BATCH} messages at most, found {len(elements)}")
        batch, ids = cls(), set[bytes]()
        for element in elements:
            if (answer := _refusal_in_batch(element, ids)) is not None:
                batch.refusals.append(answer)
            else:
                batch.messages.append(element)
        return batch


def _refusal_in_batch(element: bytes, ids: set[bytes]) -> bytes | None:
    """The answer to what cannot be part of a batch; an id that can is one more of those that are taken."""
    if (reason := fault(element)) is not None:
        return refusal(reason)
    parts = envelope.members(element) or {}
    own = parts.get("id") if "method" in parts else None
    if parts.get("method") == b'"initialize"':
        return refusal("initialize must not be part of a batch", own or b"null")
    if own is not None and own in ids:
        return refusal("another message of the batch has the same id")
    if own is not None:
        ids.add(own)
    return None


def joined(answers: list[bytes]) -> bytes:
    """The answers to a batch as one."""
    return b"[" + b",".join(answers) + b"]"
