"""A small MCP server written on the standard library alone, so that a hundred of them start in a moment.

It speaks either era, and its `misbehave` tool answers in every wrong way that has been seen. What it is like
comes as JSON in the first argument, e.g. `{"tools": ["a", "b"], "era": "modern", "pages": 2}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], None]

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
OPEN_SCHEMA: Message = {"type": "object", "additionalProperties": True}

RICH_RESULT: Message = {
    "content": [
        {"type": "text", "text": "grüße 日本語 \u2028 😀", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "toy://a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource_link", "uri": "toy://b", "name": "b", "size": 12},
        {"type": "hologram", "nobody": {"knows": [1, None, {"deep": None}]}},
    ],
    "structuredContent": {
        "big": 123456789012345678901234567890,
        "negative": -(2**63) - 5,
        "null": None,
        "float": 1.5,
        "nested": {"a": [[], {}, [None]]},
    },
    "isError": False,
    "_meta": {"toy/key": {"kept": True}},
    "unheardOf": [1, 2, 3],
}


@dataclass
class Settings:
    """What a toy is like."""

    name: str = "toy"
    tools: list[str] = field(default_factory=list)
    raw_tools: list[Any] = field(default_factory=list)
    era: str = "both"
    versions: tuple[str, ...] = HANDSHAKE
    pages: int = 1
    endless_pages: bool = False
    start_delay: float = 0.0
    list_delay: float = 0.0
    list_fails: str = ""
    hang_on: tuple[str, ...] = ()
    die_on: tuple[str, ...] = ()
    dies_at_unknown: bool = False
    no_listen: bool = False
    refuses_initialize: bool = False
    silent_at_unknown: bool = False
    ttl_ms: int | None = None
    instructions: str | None = None
    noise: bool = False
    ignore_eof: bool = False
    ignore_sigterm: bool = False
    grandchild: bool = False
    log: str | None = None


class Toy:
    """The server itself, without any transport."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.extra_tools: list[str] = []
        self.calls: list[Message] = []
        self.cancelled: list[Any] = []
        self.requests: list[str] = []
        self.counter = 0
        self.broadcast: Send = lambda _: None
        self.write_raw: Callable[[bytes], None] = lambda _: None
        self.listeners: dict[Any, Send] = {}
        self.stop_listening = threading.Event()

    def handle(self, message: Message, send: Send) -> None:
        """Take one message and send whatever answers it."""
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            return
        self.requests.append(method)
        if self.settings.log:
            with open(self.settings.log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{os.getpid()} {method}\n")
        params = message.get("params") or {}
        if method == "notifications/cancelled":
            self.cancelled.append(params.get("requestId"))
        if request_id is None or method in self.settings.hang_on:
            return
        if method in self.settings.die_on:
            os._exit(3)
        try:
            result = self.answer(method, params, request_id, send)
        except RpcError as exc:
            send({"jsonrpc": "2.0", "id": request_id, "error": exc.error})
            return
        if result is not None:
            send({"jsonrpc": "2.0", "id": request_id, "result": self.finished(result, params)})

    def finished(self, result: Message, params: Message) -> Message:
        """In the modern era every result says what it is."""
        if is_modern(params) and "resultType" not in result:
            return {"resultType": "complete", **result}
        return result

    def answer(self, method: str, params: Message, request_id: Any, send: Send) -> Message | None:
        """The result of a request; `None` if it has been sent, or never will be."""
        if is_modern(params) and self.settings.era == "handshake":
            self.unknown(method)
        if method == "initialize":
            return self.initialize(params)
        if method == "server/discover":
            return self.discover()
        if method == "ping":
            return {}
        if method == "tools/list":
            return self.list_tools(params)
        if method == "tools/call":
            return self.call(params, request_id, send)
        if method == "subscriptions/listen" and self.settings.era != "handshake":
            return self.listen(params, request_id, send)
        return self.unknown(method)

    def unknown(self, method: str) -> None:
        """What older servers do when they are asked something they never heard of."""
        if self.settings.dies_at_unknown:
            os._exit(7)
        if self.settings.silent_at_unknown:
            raise Silence
        raise RpcError(-32601, f"Method not found: {method}")

    def initialize(self, params: Message) -> Message:
        if self.settings.refuses_initialize:
            raise RpcError(-32601, "Method not found: initialize")
        if self.settings.era == "modern":
            data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
            raise RpcError(-32022, "Unsupported protocol version", data)
        wanted = params.get("protocolVersion")
        version = wanted if wanted in self.settings.versions else self.settings.versions[-1]
        result = {
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": self.settings.name, "version": "1"},
        }
        if self.settings.instructions:
            result["instructions"] = self.settings.instructions
        return result

    def discover(self) -> Message | None:
        if self.settings.era == "handshake":
            return self.unknown("server/discover")
        result = {
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": True}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {f"{META}serverInfo": {"name": self.settings.name, "version": "1"}},
        }
        if self.settings.instructions:
            result["instructions"] = self.settings.instructions
        return result

    def tool_names(self) -> list[str]:
        return [*BUILT_IN, *self.settings.tools, *self.extra_tools]

    def list_tools(self, params: Message) -> Message:
        time.sleep(self.settings.list_delay)
        if self.settings.list_fails:
            raise RpcError(-32000, self.settings.list_fails)
        tools = [*(tool(name) for name in self.tool_names()), *self.settings.raw_tools]
        page = int(params.get("cursor") or 0)
        if self.settings.endless_pages:
            return {"tools": [tool(f"page_{page}")], "nextCursor": str(page + 1)}
        size = -(-len(tools) // self.settings.pages)
        result: Message = {"tools": tools[page * size : (page + 1) * size]}
        if (page + 1) * size < len(tools):
            result["nextCursor"] = str(page + 1)
        if is_modern(params):
            result |= {"ttlMs": self.settings.ttl_ms or 0, "cacheScope": "private"}
        return result

    def call(self, params: Message, request_id: Any, send: Send) -> Message | None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        self.calls.append(params)
        listed = [*self.tool_names(), *(raw.get("name") for raw in self.settings.raw_tools if isinstance(raw, dict))]
        if name not in listed:
            raise RpcError(-32602, f"Unknown tool: {name}")
        known = getattr(self, f"tool_{name}", None)
        if known is None:
            return {"content": [{"type": "text", "text": f"{self.settings.name}:{name}"}]}
        return known(arguments, params, request_id, send)

    def listen(self, params: Message, request_id: Any, send: Send) -> None:
        meta = {f"{META}subscriptionId": request_id}
        self.listeners[request_id] = send
        wanted = params.get("notifications") or {}
        send(note("notifications/subscriptions/acknowledged", {"notifications": wanted, "_meta": meta}))

    def announce(self, send: Send) -> None:
        """Say that the list changed, the way each era does."""
        for request_id, listener in list(self.listeners.items()):
            listener(note("notifications/tools/list_changed", {"_meta": {f"{META}subscriptionId": request_id}}))
        if self.settings.era != "modern" and not self.listeners:
            self.broadcast(note("notifications/tools/list_changed", None))

    # The tools. Each takes (arguments, params, request id, send).

    def tool_echo(self, arguments: Message, params: Message, *_: Any) -> Message:
        """Everything that came, as it came."""
        return {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": {"params": params}}

    def tool_rich(self, *_: Any) -> Message:
        return json.loads(json.dumps(RICH_RESULT))

    def tool_fails(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}

    def tool_refuses(self, *_: Any) -> Message:
        raise RpcError(-32099, "no, thank you", {"why": ["because", None]})

    def tool_pid(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": str(os.getpid())}]}

    def tool_count(self, *_: Any) -> Message:
        self.counter += 1
        return {"content": [{"type": "text", "text": str(self.counter)}]}

    def tool_environment(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}

    def tool_seen(self, *_: Any) -> Message:
        """What the server noticed of requests and cancellations."""
        seen = {"requests": self.requests, "cancelled": self.cancelled, "calls": len(self.calls)}
        return {"content": [{"type": "text", "text": json.dumps(seen)}], "structuredContent": seen}

    def tool_progress(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        token = (params.get("_meta") or {}).get("progressToken")
        steps = arguments.get("steps", 3)
        for step in range(1, steps + 1):
            if token is not None:
                said = {
                    "progressToken": token,
                    "progress": step,
                    "total": steps,
                    "message": f"step {step}",
                    "odd": True,
                }
                send(note("notifications/progress", said))
            time.sleep(arguments.get("pause", 0))
        if arguments.get("stuck"):
            for _ in range(200):
                send(note("notifications/progress", {"progressToken": token, "progress": steps}))
                time.sleep(0.05)
        return {
            "content": [{"type": "text", "text": f"{steps} steps, token {'given' if token is not None else 'none'}"}]
        }

    def tool_sleep(self, arguments: Message, params: Message, request_id: Any, send: Send) -> None:
        def later() -> None:
            deadline = time.monotonic() + arguments.get("seconds", 1)
            while time.monotonic() < deadline and request_id not in self.cancelled:
                time.sleep(0.01)
            result: Message = {"content": [{"type": "text", "text": "awake"}]}
            send({"jsonrpc": "2.0", "id": request_id, "result": self.finished(result, params)})

        threading.Thread(target=later, daemon=True).start()

    def tool_change(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        """Add and remove tools, and say so."""
        for name in arguments.get("add", []):
            self.extra_tools.append(name)
        for name in arguments.get("remove", []):
            self.extra_tools.remove(name)
        if arguments.get("announce", True):
            self.announce(send)
        return {"content": [{"type": "text", "text": ",".join(self.extra_tools)}]}

    def tool_die(self, arguments: Message, *_: Any) -> None:
        sys.stderr.write(arguments.get("words", "goodbye") + "\n")
        sys.stderr.flush()
        os._exit(int(arguments.get("code", 1)))

    def tool_misbehave(self, arguments: Message, params: Message, request_id: Any, send: Send) -> None:
        """Answer wrongly, in the way that was asked for."""
        good: Message = {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": "late"}]}}
        text = json.dumps(good).encode()
        how = arguments["how"]
        size = int(arguments.get("size", 0))
        raw: dict[str, bytes] = {
            "not_json": b'{"jsonrpc":"2.0","id":%d,"result":{oops}}\n' % request_id,
            "not_utf8": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n'
            % request_id,
            "half_then_die": text[:20],
            "twice": text + b"\n" + text + b"\n",
            "wrong_id": json.dumps({**good, "id": 999_999}).encode() + b"\n",
            "no_result": b'{"jsonrpc":"2.0","id":%d}\n' % request_id,
            "result_is_list": b'{"jsonrpc":"2.0","id":%d,"result":[1]}\n' % request_id,
            "not_an_object": b"[[1]]\n42\nnull\n",
            "deep": b'{"jsonrpc":"2.0","id":%d,"result":' % request_id + b"[" * 5000 + b"]" * 5000 + b"}\n",
            "split": text + b"\n",
            "odd_question": b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}\n'
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n' + text + b"\n",
            "surrogate": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"cut \\ud83d"}]}}\n'
            % request_id,
        }
        if how == "huge":
            filler = b"x" * size
            self.write_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id)
            self.write_raw(filler + b'"}]}}\n')
        elif how == "endless":
            while True:
                self.write_raw(b"x" * 1_000_000)
        elif how == "late":
            threading.Timer(float(arguments["after"]), lambda: self.write_raw(text + b"\n")).start()
        elif how == "split":
            for index in range(len(raw["split"])):
                self.write_raw(raw["split"][index : index + 1])
        else:
            self.write_raw(raw[how])
            if how == "half_then_die":
                os._exit(5)


BUILT_IN = [name.removeprefix("tool_") for name in vars(Toy) if name.startswith("tool_") and name != "tool_names"]


class RpcError(Exception):
    """An error that is the answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Silence(Exception):  # noqa: N818
    """No answer at all."""


def tool(name: str) -> Message:
    """A tool's definition."""
    return {"name": name, "description": f"The tool {name}.", "inputSchema": dict(OPEN_SCHEMA)}


def note(method: str, params: Message | None) -> Message:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def is_modern(params: Message) -> bool:
    """Whether a request carries the envelope of 2026-07-28."""
    return f"{META}protocolVersion" in (params.get("_meta") or {})


def run_stdio(toy: Toy) -> None:
    """Serve on stdin and stdout."""
    settings = toy.settings
    lock = threading.Lock()

    def write_raw(data: bytes) -> None:
        with lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def send(message: Message) -> None:
        write_raw(json.dumps(message).encode() + b"\n")

    toy.broadcast, toy.write_raw = send, write_raw
    if settings.ignore_sigterm:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if settings.grandchild:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(settings.start_delay)
    if settings.noise:
        write_raw(b"Toy server 1.0 starting up...\n\n")
    for line in sys.stdin.buffer:
        try:
            toy.handle(json.loads(line), send)
        except Silence:
            continue
    while settings.ignore_eof:
        time.sleep(1)


def main() -> None:
    """Run as a process: `toy.py [JSON]`."""
    given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    run_stdio(Toy(Settings(**given)))


if __name__ == "__main__":
    main()
