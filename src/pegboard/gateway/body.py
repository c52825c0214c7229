"""A request's body: read to its end before anybody parses it, within its bounds.

Parsing holds the event loop for as long as it takes to make an object of every value, and 4 MiB of `[]` are more than a
million. So values are bounded as well as bytes, and counted while the body comes in.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Message, Receive

from pegboard.exactjson import ValueCounter
from pegboard.protocol.message import MAX_BODY

MAX_VALUES = 100_000
# A value has a comma, or the bracket around it: what is shorter than this cannot have too many.
SURELY_FEW = 2 * MAX_VALUES
_SLICE = 256 * 1024


class TooLarge(Exception):  # noqa: N818  it says what the body is
    """The body goes on beyond its bounds; the message says which."""


class ClientGone(Exception):  # noqa: N818  it says what became of the client
    """The client has gone away before the end of its request's body."""


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body comes behind this head, which the guard has looked at."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value) > 0) for name, value in headers
    )


async def read_body(receive: Receive) -> list[Message]:
    """The messages that a body comes in; `TooLarge`, or `ClientGone`."""
    counter, size, messages = ValueCounter(), 0, list[Message]()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        messages.append(message)
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise TooLarge(f"a request may have {MAX_BODY:,} bytes at most")
        if (size > SURELY_FEW or message.get("more_body")) and _count(counter, part) > MAX_VALUES:
            raise TooLarge(f"a request may have {MAX_VALUES:,} JSON values at most")
        if not message.get("more_body"):
            return messages


def has_too_many_values(body: bytes) -> bool:
    """Whether a body that is there already has more values than it may."""
    return len(body) > SURELY_FEW and _count(ValueCounter(), body) > MAX_VALUES


def replay(messages: list[Message], receive: Receive) -> Receive:
    """What was received so far, and then what comes."""
    waiting = list(reversed(messages))

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _count(counter: ValueCounter, data: bytes) -> int:
    for start in range(0, len(data), _SLICE):
        counter.feed(data[start : start + _SLICE])
        if counter.values > MAX_VALUES:
            break
    return counter.values
