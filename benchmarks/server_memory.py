"""npm's `@modelcontextprotocol/server-memory` over stdio, by a client that does as little as can be."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.node import package

from benchmarks.notebook import Note


class TooSlow(Exception):  # noqa: N818  it says what the server is
    """The server did not answer in time, or ended."""


class ServerMemory:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """The line that it answers with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as exc:
            raise TooSlow from exc
        line = self._process.stdout.readline()
        if not line:
            raise TooSlow
        return line

    def call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The line that a tool answers with."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})


@contextmanager
def server_memory(file: Path, patience: float) -> Generator[ServerMemory]:
    """A server on a file. It is ended after so many seconds."""
    command = package("@modelcontextprotocol/server-memory", "dist/index.js")
    process = subprocess.Popen(
        command,
        env={"MEMORY_FILE_PATH": str(file)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    watch = threading.Timer(patience, process.kill)
    watch.start()
    try:
        server = ServerMemory(process)
        client = {"name": "benchmark", "version": "1"}
        server.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        yield server
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def write_file(file: Path, notes: Iterable[Note]) -> None:
    """The same memories as that server keeps them."""
    with file.open("w", encoding="utf-8") as out:
        for note in notes:
            entity = {"type": "entity", **entity_of(note)}
            out.write(json.dumps(entity, ensure_ascii=False) + "\n")
            for link in note.links:
                relation = {"type": "relation", "from": note.key, "to": link.key, "relationType": link.type}
                out.write(json.dumps(relation, ensure_ascii=False) + "\n")


def entity_of(note: Note) -> dict[str, Any]:
    """A memory as an entity."""
    return {"name": note.key, "entityType": note.summary, "observations": list(note.lines)}


def text_of(line: bytes) -> str:
    """What of an answer a model reads."""
    result = json.loads(line)["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    return result["content"][0]["text"]
