"""The toy over HTTP: streamable HTTP at /mcp and the older HTTP+SSE at /sse, in a thread of the test's own process."""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from servers.toy import MODERN, Message, Settings, Silence, Toy, is_modern


@dataclass
class Manners:
    """How the HTTP side behaves."""

    # Answer requests with a stream of events instead of JSON.
    stream: bool = False
    sessions: bool = True
    get_stream: bool = True
    # Every request gets this status instead of an answer.
    status: int | None = None
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    token: str | None = None
    redirect: str | None = None
    # Drop the connection after the first event of a call.
    cut_after_first: bool = False
    hang: bool = False
    # Who looks at each request first, with its body, and may answer it.
    door: Callable[[Handler, bytes], bool] | None = None
    # Close a call's stream this often before the answer, to be taken up again by its last event id.
    polls: int = 0


@dataclass
class HttpToy:
    """A toy that listens."""

    toy: Toy
    manners: Manners
    port: int
    server: ThreadingHTTPServer
    sessions: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    parked: dict[str, Message] = field(default_factory=dict)
    standing: list[queue.Queue[Message | None]] = field(default_factory=list)
    # The streams of the older transport, each with its own answers.
    old_streams: dict[str, queue.Queue[Message | None]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def sse_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sse"

    def forget_sessions(self) -> None:
        """As after a restart of the server."""
        self.sessions.clear()
        self.end_streams()

    def end_streams(self) -> None:
        for waiting in list(self.standing):
            waiting.put(None)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    toy: HttpToy

    def log_message(self, format: str, *args: Any) -> None:
        """Tests have their own log."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        toy, manners = self.toy, self.toy.manners
        if self.is_answered_at_door(body):
            return
        toy.headers.append({key.lower(): value for key, value in self.headers.items()})
        if manners.hang:
            time.sleep(30)
        if manners.redirect:
            self.plain(307, b"", {"location": manners.redirect})
        elif manners.token and self.headers.get("authorization") != f"Bearer {manners.token}":
            self.plain(401, b"")
        elif manners.status is not None:
            self.plain(manners.status, manners.body, {"content-type": manners.content_type, **manners.headers})
        elif self.path.startswith("/sse"):
            self.plain(405, b"")
        elif self.path.startswith("/messages"):
            self.old_message(json.loads(body))
        else:
            self.message(json.loads(body))

    def is_answered_at_door(self, body: bytes = b"") -> bool:
        door = self.toy.manners.door
        return door is not None and door(self, body)

    def message(self, message: Message) -> None:
        toy = self.toy
        modern = is_modern(message.get("params") or {})
        if modern and toy.toy.settings.era == "handshake":
            self.plain(400, b"Bad Request: Unsupported protocol version")
            return
        session = self.headers.get("mcp-session-id")
        initializing = message.get("method") == "initialize"
        if toy.manners.sessions and not modern and not initializing and session not in toy.sessions:
            self.plain(404 if session else 400, b"Session not found")
            return
        if toy.toy.settings.no_listen and message.get("method") == "subscriptions/listen":
            toy.toy.requests.append("subscriptions/listen")
            self.plain(405, b"")
            return
        if "id" not in message or "method" not in message:
            toy.toy.handle(message, lambda _: None)
            self.plain(202, b"")
            return
        extra: dict[str, str] = {}
        if initializing and toy.manners.sessions and toy.toy.settings.era != "modern":
            session = uuid.uuid4().hex
            toy.sessions.add(session)
            extra["mcp-session-id"] = session
        if toy.manners.polls and message.get("method") == "tools/call":
            self.polled_answer(message)
        elif toy.manners.stream or message.get("method") == "subscriptions/listen" or _wants_stream(message):
            self.stream_answer(message, extra)
        else:
            self.json_answer(message, extra)

    def json_answer(self, message: Message, extra: dict[str, str]) -> None:
        answered: queue.Queue[Message] = queue.Queue()
        try:
            self.toy.toy.handle(message, answered.put)
        except Silence:
            time.sleep(30)
        if message.get("method") in self.toy.toy.settings.hang_on:
            time.sleep(30)
        while True:
            answer = answered.get(timeout=60)
            if _answers(answer, message):
                break
        status = 200
        if "error" in answer and is_modern(message.get("params") or {}):
            status = 404 if answer["error"]["code"] == -32601 else 400
        self.plain(status, json.dumps(answer).encode(), {"content-type": "application/json", **extra})

    def polled_answer(self, message: Message) -> None:
        """Only the beginning of a stream; the rest is fetched piece by piece."""
        answered: queue.Queue[Message] = queue.Queue()
        self.toy.toy.handle(message, answered.put)
        self.toy.parked["0"] = answered.get(timeout=10)
        self.begin_stream({})
        self.chunk(b"id: 0\nretry: 10\ndata:\n\n")
        self.end_stream()

    def polled_rest(self, last: str) -> None:
        self.toy.resumed.append(last)
        answer, following = self.toy.parked.pop(last), str(int(last) + 1)
        self.begin_stream({})
        if int(last) + 1 < self.toy.manners.polls:
            self.toy.parked[following] = answer
            self.chunk(f"id: {following}\ndata:\n\n".encode())
        else:
            self.event(answer)
        self.end_stream()

    def stream_answer(self, message: Message, extra: dict[str, str]) -> None:
        answered: queue.Queue[Message] = queue.Queue()
        self.begin_stream(extra)
        self.toy.toy.handle(message, answered.put)
        while True:
            try:
                answer = answered.get(timeout=0.1)
            except queue.Empty:
                answer = None
            # Only a write shows that nobody reads any more.
            if not (self.chunk(b": alive\n\n") if answer is None else self.event(answer)):
                self.toy.toy.listeners.pop(message["id"], None)
                if is_modern(message.get("params") or {}) and message["method"] == "tools/call":
                    self.toy.toy.cancelled.append(message["id"])
                return
            if answer is None:
                continue
            if _answers(answer, message) or self.toy.manners.cut_after_first:
                break
        self.end_stream()

    def do_GET(self) -> None:
        toy = self.toy
        if self.is_answered_at_door():
            return
        if self.path.startswith("/sse"):
            self.old_stream()
        elif (last := self.headers.get("last-event-id")) in toy.parked:
            self.polled_rest(str(last))
        elif not toy.manners.get_stream:
            self.plain(405, b"")
        elif toy.manners.sessions and self.headers.get("mcp-session-id") not in toy.sessions:
            self.plain(404, b"")
        else:
            self.standing()

    def standing(self, old: str | None = None) -> None:
        waiting: queue.Queue[Message | None] = queue.Queue()
        self.toy.standing.append(waiting)
        self.begin_stream({})
        try:
            if old is not None:
                self.toy.old_streams[old] = waiting
                self.chunk(f"event: endpoint\ndata: /messages?session={old}\n\n".encode())
            while True:
                try:
                    message = waiting.get(timeout=0.2)
                except queue.Empty:
                    if not self.chunk(b": alive\n\n"):
                        return
                    continue
                if message is None:
                    break
                if not self.event(message):
                    return
            self.end_stream()
        finally:
            self.toy.standing.remove(waiting)

    def old_stream(self) -> None:
        self.standing(uuid.uuid4().hex)

    def old_message(self, message: Message) -> None:
        self.plain(202, b"Accepted")

        send = self.toy.old_streams[self.path.partition("session=")[2]].put

        def work() -> None:
            try:
                self.toy.toy.handle(message, send)
            except Silence:
                return

        threading.Thread(target=work, daemon=True).start()

    def do_DELETE(self) -> None:
        if self.is_answered_at_door():
            return
        self.toy.sessions.discard(self.headers.get("mcp-session-id") or "")
        self.plain(200, b"")

    def plain(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self, extra: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for key, value in extra.items():
            self.send_header(key, value)
        self.end_headers()

    def event(self, message: Message) -> bool:
        return self.chunk(f"event: message\ndata: {json.dumps(message)}\n\n".encode())

    def chunk(self, data: bytes) -> bool:
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        except OSError:
            self.close_connection = True
            return False
        return True

    def end_stream(self) -> None:
        if self.toy.manners.cut_after_first:
            self.close_connection = True
            return
        try:
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True


def _wants_stream(message: Message) -> bool:
    """A call that says something before its answer can only be answered on a stream, and so can one that takes long."""
    params = message.get("params") or {}
    name = str(params.get("name") or params.get("uri") or "")
    talks = name in {"sleep", "log", "whisper"} or name.startswith("ask") or name.endswith("/asking")
    return talks or "progressToken" in (params.get("_meta") or {})


def _answers(answer: Message, message: Message) -> bool:
    """Whether this is the answer to the message, and not a question that happens to have the same id."""
    return "method" not in answer and answer.get("id") == message["id"]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A closed toy must not wait for streams that are still open.
    block_on_close = False
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news here."""

    def hang_up(self) -> None:
        """As when the process is gone: connections that were kept alive break."""
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def http_toy(settings: Settings | None = None, manners: Manners | None = None, port: int = 0) -> Generator[HttpToy]:
    """A toy on a loopback port, until the block ends."""
    toy = Toy(settings or Settings())
    handler = type("ToyHandler", (Handler,), {})
    server = _Server(("127.0.0.1", port), handler)
    listening = HttpToy(toy, manners or Manners(), server.server_address[1], server)
    handler.toy = listening

    def broadcast(message: Message) -> None:
        for waiting in list(listening.standing):
            waiting.put(message)

    toy.broadcast = broadcast
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield listening
    finally:
        server.shutdown()
        server.server_close()
        listening.end_streams()
        server.hang_up()
        thread.join(5)


__all__ = ["MODERN", "HttpToy", "Manners", "http_toy"]
