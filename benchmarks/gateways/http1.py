"""As much HTTP/1.1 as a benchmark needs, in either direction: whole messages out of whatever pieces arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

# A message's head without its last empty line, then its body with any chunking taken off.
OnMessage = Callable[[bytes, bytes], None]
# A chunk of a body that is handed on piece by piece, as it comes.
OnPart = Callable[[bytes], None]
_BODILESS = (b"204", b"304")


class Malformed(Exception):  # noqa: N818  it says what the message is
    """Something came that is no HTTP/1.1."""


class Messages:
    """Takes bytes, gives messages."""

    def __init__(
        self, kind: Literal["request", "response"], on_message: OnMessage, on_part: OnPart | None = None
    ) -> None:
        self._responses = kind == "response"
        self._on_message = on_message
        self._on_part = on_part
        self._buffer = bytearray()
        self._head: bytes | None = None
        self._length: int | None = 0
        self._chunks: list[bytes] | None = None

    def feed(self, data: bytes) -> None:
        """Take what arrived, and hand on every message that is complete by now."""
        self._buffer += data
        while self._buffer and self._step():
            pass

    def close(self) -> None:
        """No more will come: a response without a length ends here."""
        if self._head is not None and self._length is None and self._chunks is None:
            self._deliver(bytes(self._buffer))

    def _step(self) -> bool:
        """Whether there was enough to go on with."""
        if self._head is None and not self._take_head():
            return False
        return self._take_chunk() if self._chunks is not None else self._take_body()

    def _take_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        self._chunks = [] if (header(head, b"transfer-encoding") or b"").lower().endswith(b"chunked") else None
        length = header(head, b"content-length")
        if length is not None:
            self._length = int(length)
        else:
            endless = self._responses and status(head) not in _BODILESS
            self._length = None if endless else 0
        if self._length == 0 and self._chunks is None:
            self._deliver(b"")
            return bool(self._buffer) and self._take_head()
        return True

    def _take_body(self) -> bool:
        length = self._length
        if length is None or len(self._buffer) < length:
            return False
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._deliver(body)
        return True

    def _take_chunk(self) -> bool:
        line = self._buffer.find(b"\r\n")
        if line < 0:
            return False
        try:
            size = int(self._buffer[:line].partition(b";")[0], 16)
        except ValueError:
            raise Malformed(f"no chunk size: {bytes(self._buffer[:line])!r}") from None
        end = line + 2 + size
        if len(self._buffer) < end + 2:
            return False
        assert self._chunks is not None
        chunk = bytes(self._buffer[line + 2 : end])
        del self._buffer[: end + 2]
        if self._on_part is not None and size:
            self._on_part(chunk)
        elif size:
            self._chunks.append(chunk)
        if not size:
            self._deliver(b"".join(self._chunks))
        return True

    def _deliver(self, body: bytes) -> None:
        head = self._head
        assert head is not None
        self._head, self._chunks = None, None
        self._on_message(head, body)


def header(head: bytes, name: bytes) -> bytes | None:
    """A header's value; the name in small letters."""
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return None
    at += len(name) + 3
    end = head.find(b"\r\n", at)
    return head[at : end if end >= 0 else len(head)].strip()


def status(head: bytes) -> bytes:
    """A response's status code."""
    return head[9:12]


def json_of(head: bytes, body: bytes) -> bytes:
    """The JSON-RPC response in a response's body, be it plain or the last message of an event stream."""
    if not (header(head, b"content-type") or b"").startswith(b"text/event-stream"):
        return body
    found = b""
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        # Notifications and pings come before; the response is the last that has something to say.
        found = data_of(event) or found
    return found


def data_of(event: bytes) -> bytes:
    """What an event says; its lines end with a bare newline."""
    return b"\n".join(line[5:].lstrip(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
