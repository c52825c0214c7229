"""The load generator's reading of HTTP: the same messages come out, however the bytes are cut."""

from __future__ import annotations

from typing import Literal

import pytest
from benchmarks.gateways.http1 import Malformed, Messages, header, json_of, status

REPLY = b'{"jsonrpc":"2.0","id":7,"result":{}}'
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/message"}'
EVENTS = b"id: 1\ndata: \nretry: 1000\n\nevent: message\ndata: %s\n\nevent: message\ndata: %s\n\n" % (NOTICE, REPLY)
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(REPLY), REPLY)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;note=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


RESPONSES = {
    "content-length": PLAIN,
    "chunked": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ntransfer-encoding: Chunked\r\n\r\n"
    + chunked(REPLY, 10),
    "events": STREAM + chunked(EVENTS, 50),
    "events with CRLF": STREAM + chunked(EVENTS.replace(b"\n", b"\r\n"), 23),
}


def read(pieces: list[bytes], kind: Literal["request", "response"] = "response") -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    messages = Messages(kind, lambda head, body: found.append((head, body)))
    for piece in pieces:
        messages.feed(piece)
    messages.close()
    return found


@pytest.mark.parametrize("form", RESPONSES)
def test_a_response_is_read_however_it_is_cut(form: str) -> None:
    """At every byte into two, and into single bytes."""
    whole = RESPONSES[form]
    cuts = [[whole[:at], whole[at:]] for at in range(len(whole))]
    for pieces in [*cuts, [whole[at : at + 1] for at in range(len(whole))]]:
        ((head, body),) = read(pieces)
        assert status(head) == b"200"
        assert json_of(head, body) == REPLY


def test_several_messages_in_one_piece() -> None:
    """Those without a body among them."""
    accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    nothing = b"HTTP/1.1 204 No Content\r\n\r\n"
    found = read([accepted + nothing + PLAIN + RESPONSES["events"] + accepted])
    assert [status(head) for head, _ in found] == [b"202", b"204", b"200", b"200", b"202"]
    assert [json_of(head, body) for head, body in found][2:4] == [REPLY, REPLY]


def test_a_response_without_a_length_ends_with_the_connection() -> None:
    """As HTTP/1.0 servers have it."""
    ((_, body),) = read([b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + REPLY])
    assert body == REPLY


def test_requests_are_read_with_either_kind_of_length() -> None:
    """Envoy sends chunks where the client sent a length."""
    plain = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(REPLY), REPLY)
    pieces = b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(REPLY, 7)
    found = read([plain + b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n" + pieces], "request")
    assert [body for _, body in found] == [REPLY, b"", REPLY]
    assert header(found[0][0], b"host") == b"a"


def test_a_wrong_chunk_size_is_told() -> None:
    """Instead of being waited for forever."""
    with pytest.raises(Malformed):
        read([STREAM + b"zz\r\n"])


def test_a_stream_is_handed_on_as_it_comes() -> None:
    """The answers of the older transport come on a response that never ends."""
    parts: list[bytes] = []
    messages = Messages("response", lambda _head, _body: None, parts.append)
    messages.feed(STREAM + b"5\r\nfirst\r\n6\r\nsecond\r\n3\r\nth")
    assert parts == [b"first", b"second"]
