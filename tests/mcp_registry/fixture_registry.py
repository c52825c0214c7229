"""A registry for tests: serves records in pages over HTTP, and can be slow, refuse, break and lie."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from mcp_registry.records import OFFICIAL, Record

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class FixtureRegistry:
    """What it serves, how it misbehaves, and what it was asked."""

    records: list[Record]
    url: str = ""
    page_size: int = 4
    delay: float = 0.0
    # Answers that come first, one for each request, in place of the real ones; `None` is the real one.
    first: list[Answer | None] = field(default_factory=list[Answer | None])
    # The cursor to give in place of the real one.
    cursor: Callable[[str | None], str | None] = staticmethod(lambda cursor: cursor)  # noqa: RUF009
    asked: list[str] = field(default_factory=list[str])

    def answer(self, target: str) -> Answer:
        """The answer to a request."""
        self.asked.append(target)
        time.sleep(self.delay)
        if self.first and (broken := self.first.pop(0)) is not None:
            return broken
        parts = urlsplit(target)
        match parts.path.split("/"):
            case ["", "v0.1", "servers"]:
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                return _json(self._page(query)) if query.get("cursor") != "expired" else (400, {}, b"{}")
            case ["", "v0.1", "servers", name, "versions", version]:
                found = [each for each in self.records if _fits(each, unquote(name), unquote(version))]
                return _json(found[0]) if found else (404, {}, b'{"title": "Not Found"}')
            case _:
                return 404, {}, b"{}"

    def _page(self, query: dict[str, str]) -> Any:
        since, words = query.get("updated_since", ""), query.get("search", "")
        records = [each for each in self.records if words in _server(each)["name"] and _updated(each) >= since]
        if query.get("include_deleted") != "true":
            records = [each for each in records if _status(each) != "deleted"]
        start = int(query.get("cursor", "0").split("-")[0])
        page = records[start : start + self.page_size]
        following = str(start + self.page_size) if start + self.page_size < len(records) else None
        return {"servers": page, "metadata": {"nextCursor": self.cursor(following), "count": len(page)}}


@contextlib.contextmanager
def registry_of(records: Sequence[Record], **manners: Any) -> Generator[FixtureRegistry]:
    """A registry that listens as long as the block lasts."""
    registry = FixtureRegistry(list(records), **manners)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = registry.answer(self.path)
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _json(value: Any) -> Answer:
    return 200, {}, json.dumps(value).encode()


def _server(record: Record) -> Record:
    return record.get("server", record)


def _meta(record: Record) -> Record:
    return record.get("_meta", {}).get(OFFICIAL, {})


def _status(record: Record) -> str:
    return _meta(record).get("status", "active")


def _updated(record: Record) -> str:
    return _meta(record).get("updatedAt", "")


def _fits(record: Record, name: str, version: str) -> bool:
    server = _server(record)
    return server["name"] == name and version in {"latest", server.get("version")}
