"""Echo servers over HTTP, one on each of some ports: `python -m benchmarks.gateways.echo_http --servers N`.

It writes the ports it listens on as the first line of its output.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any, cast

import uvloop

from benchmarks.gateways.echo import HEADER_MISMATCH, Echo, era_of, options
from benchmarks.gateways.http1 import Messages, header

_MISMATCH = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


class EchoProtocol(asyncio.Protocol):
    """A client's connection to an echo server."""

    def __init__(self, echo: Echo) -> None:
        self._echo = echo
        self._messages = Messages("request", self._on_request)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._messages.feed(data)

    def _on_request(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        self._transport.write(self._response(head, body))

    def _response(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"DELETE "):
            return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        if not head.startswith(b"POST "):
            # No stream of its own: there is nothing that it would have to say unasked.
            return b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
        message = json.loads(body)
        if era_of(message.get("params") or {}) == "modern" and (wrong := _wrong_header(head, message)):
            return _MISMATCH % (len(wrong), wrong)
        answer = self._echo.reply(message)
        if answer is None:
            return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        # Only the answer to `initialize` has it.
        opening = b'"protocolVersion"' in answer[:80]
        session = b"Mcp-Session-Id: %s\r\n" % secrets.token_hex(16).encode() if opening else b""
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (
            session,
            len(answer),
            answer,
        )


def _wrong_header(head: bytes, message: dict[str, Any]) -> bytes | None:
    """An error if the headers of the modern era do not say what the body says: gateways that rename forget it."""
    name: str = message["params"].get("name", "")
    expected = {b"mcp-method": message["method"].encode(), **({b"mcp-name": name.encode()} if name else {})}
    for key, value in expected.items():
        if header(head, key) != value:
            said = f"the header {key.decode()} is {header(head, key)!r} where the body has {value!r}"
            error = {"code": HEADER_MISMATCH, "message": said}
            return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": error}).encode()
    return None


async def serve(echoes: list[Echo], ports: list[int]) -> None:
    """Serve until the process ends."""
    loop = asyncio.get_running_loop()
    listeners = [
        await loop.create_server(lambda echo=echo: EchoProtocol(echo), "127.0.0.1", port, backlog=1024)
        for echo, port in zip(echoes, ports, strict=True)
    ]
    print(*(listener.sockets[0].getsockname()[1] for listener in listeners), flush=True)
    await asyncio.gather(*(listener.serve_forever() for listener in listeners))


def main() -> None:
    """Be some echo servers."""
    parser = options()
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--port", type=int, default=0, help="the port of the first; 0 picks free ones")
    given = parser.parse_args()
    ports = [given.port + number if given.port else 0 for number in range(given.servers)]
    echoes = [Echo(f"s{number}", given.tools, given.era) for number in range(given.servers)]
    uvloop.run(serve(echoes, ports))


if __name__ == "__main__":
    main()
