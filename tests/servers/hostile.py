"""A hostile MCP server on the standard library: greets as it should, and answers calls of its one tool with an attack.

    python hostile.py http|stdio [library]

Over HTTP it prints its port and serves until its input ends. The call's argument `attack` names what comes back. With
`library` it also offers thousands of prompts, resources and templates.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSION = "2025-11-25"
MB = 1_000_000
NAME = "attack"
HAS_LIBRARY = "library" in sys.argv[2:]
MANY = 10_000
# Each begins and ends as the links do, and has a text that nearly fits in thousands of places.
TEMPLATES = [f"t{{+a{number}}}{'a' * 200}b{'{+c}' * 9}0" for number in range(MANY)]
LINK = "t" + "a" * 4000 + "0"
LISTS = {
    "prompts/list": ("prompts", [{"name": f"prompt_{number}", "description": "x" * 50} for number in range(MANY)]),
    "resources/list": ("resources", [{"name": "x", "uri": f"s{number}://h/a"} for number in range(MANY)]),
    "resources/templates/list": ("resourceTemplates", [{"name": "x", "uriTemplate": each} for each in TEMPLATES]),
}


# As it stands in a text.
RECORD = (
    json.dumps(json.dumps({"id": 1234, "name": "somebody", "tags": ["a", "b"], "note": "word " * 20}))[1:-1] + ", "
).encode()


def answer(request_id: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()


def result(request_id: Any, inner: bytes) -> bytes:
    """A result whose structured content is given as it is."""
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":%b}}' % (request_id, inner)


def text(request_id: Any, inner: bytes) -> bytes:
    content = b'[{"type":"text","text":"%b"}]' % inner
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":%b}}' % (request_id, content)


def notification(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def bodies(attack: str, request_id: Any) -> Iterator[bytes]:
    """Messages, each in one piece, the answer last."""
    done = answer(request_id, {"content": [{"type": "text", "text": "done"}]})
    match attack:
        case "lists":
            yield result(request_id, b'{"x":[' + b",".join([b"[]"] * (10 * MB)) + b"]}")
        case "objects":
            yield result(request_id, b'{"x":[' + b",".join([b"{}"] * (10 * MB)) + b"]}")
        case "deep":
            yield result(request_id, b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
        case "large":
            yield text(request_id, b"x" * (30 * MB))
        case "large records":
            yield text(request_id, b"[%b0]" % (RECORD * 100_000))
        case "huge notification":
            yield notification("notifications/message", level="info", data="x" * (20 * MB))
            yield done
        case "huge error":
            yield b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"%b"}}' % (request_id, b"x" * (20 * MB))
        case "many keys":
            yield b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{%b}}}' % (
                b",".join(b'"k%d":1' % number for number in range(490_000))
            )
            yield done
        case "odd numbers":
            yield (
                b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":["\\ud800",%b]}}'
                % (b",".join([b"1e5"] * 490_000))
            )
            yield done
        case "wrong id":
            yield result(987654, b'{"x":[' + b",".join([b"[]"] * 300_000) + b"]}")
            yield done
        case "one id":
            for _ in range(20_000):
                yield b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}'
            yield done
        case "links":
            links = [{"type": "resource_link", "name": "x", "uri": f"{LINK[:-4]}{number}0"} for number in range(10)]
            yield answer(request_id, {"content": links})
        case "log flood":
            for _ in range(30_000):
                yield notification("notifications/message", level="info", data="x")
            yield done
        case "progress flood":
            for number in range(30_000):
                yield notification("notifications/progress", progressToken=request_id, progress=number)
            yield done
        case "no json":
            for _ in range(30_000):
                yield b"this is no JSON"
            yield done
        case "nothing":
            for _ in range(MB):
                yield b""
            yield done
        case "batch":
            yield b"[" + b",".join([b"{}"] * 100_000) + b"," + done + b"]"
        case "pings":
            for number in range(20_000):
                yield b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}' % number
            yield done
        case _:
            yield done


def reply(message: dict[str, Any]) -> bytes | None:
    """What every server answers; `None` for what is no plain question."""
    request_id = message.get("id")
    match message.get("method"):
        case "initialize":
            info = {"name": "hostile", "version": "0"}
            able: dict[str, Any] = {"tools": {}} | ({"prompts": {}, "resources": {}} if HAS_LIBRARY else {})
            return answer(request_id, {"protocolVersion": VERSION, "capabilities": able, "serverInfo": info})
        case str(method) if HAS_LIBRARY and method in LISTS:
            key, items = LISTS[method]
            return answer(request_id, {key: items})
        case "tools/list":
            return answer(request_id, {"tools": [{"name": NAME, "inputSchema": {"type": "object"}}]})
        case "ping":
            return answer(request_id, {})
        case "tools/call":
            return None
        case _:
            error = {"code": -32601, "message": "unknown"}
            return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers as JSON, or as the stream that an attack is."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody wants to know."""

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message or "method" not in message:
            self._send(202, "application/json", b"")
            return
        if (said := reply(message)) is not None:
            self._send(200, "application/json", said)
            return
        self._attack(message["params"]["arguments"][NAME], message["id"])

    def _attack(self, attack: str, request_id: Any) -> None:
        done = b"data: " + answer(request_id, {"content": [{"type": "text", "text": "done"}]}) + b"\n\n"
        kind, _, how = attack.partition(":")
        match kind:
            case "json":
                self._send(200, "application/json", b"".join(bodies(how, request_id)))
            case "status":
                error = b'{"error":{"code":1,"message":"x","data":[%b]}}' % b",".join([b"[]"] * (10 * MB))
                self._send(400, "application/json", error)
            case "line ends":
                self._send(200, "text/event-stream", b"\n" * (8 * MB) + done)
            case "packed line ends":
                packed = gzip.compress(b"\n" * (32 * MB) + done)
                self._send(200, "text/event-stream", packed, "content-encoding: gzip")
            case "lines":
                self._send(200, "text/event-stream", b"ab\n" * (3 * MB) + b"\n" + done)
            case "data lines":
                self._send(200, "text/event-stream", b"data\n" * MB + b"\n" + done)
            case "empty events":
                self._send(200, "text/event-stream", b"data\n\n" * (MB // 3) + done)
            case "tiny chunks":
                body = b"".join(
                    b"1\r\n%c\r\n" % byte for byte in answer(request_id, {"content": [], "x": "y" * 300_000})
                )
                self._send(200, "application/json", body + b"0\r\n\r\n", "transfer-encoding: chunked")
            case "headers":
                head = b"HTTP/1.1 200 OK\r\n" + b"".join(b"h%d: x\r\n" % number for number in range(MB)) + b"\r\n"
                self.wfile.write(head)
                self.close_connection = True
            case _:
                stream = b"".join(b"data: %b\n\n" % body for body in bodies(how, request_id))
                self._send(200, "text/event-stream", stream)

    def _send(self, status: int, kind: str, body: bytes, *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} OK", f"content-type: {kind}", *headers]
        if not any(each.startswith("transfer-encoding") for each in headers):
            lines.append(f"content-length: {len(body)}")
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def serve_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


def serve_stdio() -> None:
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if (said := reply(message)) is not None:
            out.write(said + b"\n")
        else:
            for body in bodies(message["params"]["arguments"][NAME].partition(":")[2], message["id"]):
                out.write(body + b"\n")
        out.flush()


if __name__ == "__main__":
    serve_http() if sys.argv[1] == "http" else serve_stdio()
