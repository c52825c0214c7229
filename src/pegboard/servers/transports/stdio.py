"""Messages over a process's pipes, one JSON text a line."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.protocol.eras import Era
from pegboard.protocol.raw_json import one_line
from pegboard.result import ToolFailure
from pegboard.servers.errors import ConnectionLost
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.line_splitter import LineSplitter
from pegboard.servers.message import MAX_MESSAGE_BYTES, Message, cancellation
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.process import Process
from pegboard.servers.server_log import ServerLog
from pegboard.servers.transports.transport import Transport

# A line that never ends is no message: past this the server is beyond help.
_ENDLESS = 4 * MAX_MESSAGE_BYTES
# Enough for the trace of an error, with the errors that caused it.
_STDERR_LINES = 60
_STDERR_SHOWN = 600
# Lines that are behind every error of npm, and say nothing.
_NPM_NOISE = re.compile(
    r"A complete log of this run can be found in|Note that you can also install from a$"
    r"|tarball, folder, http url, or git url\.$|^npm (?:error|ERR!)(?: 404)?$"
)
# Where in its own code a Node server failed: what failed stands above it.
_NODE_NOISE = re.compile(r"^at |^node:internal|^Node\.js v\d|^[\[\]{}()^~,;]+$|^throw \w+;?$")
_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b")


class StdioTransport(Transport):
    """One server process."""

    is_process = True

    def __init__(self, spec: ServerSpec, reaper: OrphanReaper) -> None:
        self._spec = spec
        self._reaper = reaper
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._log: ServerLog | None = None
        self._process: Process | None = None
        self._peer: JsonRpcPeer | None = None
        self._lines: LineSplitter | None = None

    async def start(self, peer: JsonRpcPeer) -> None:
        """Start the command."""
        self._peer = peer

        def giant(head: bytes, tail: bytes, size: int) -> None:
            peer.report_unreadable(head, tail, f"an answer of {size:,} bytes; the limit is {MAX_MESSAGE_BYTES:,}")

        lines = self._lines = LineSplitter(peer.deliver_text, giant, MAX_MESSAGE_BYTES)
        errors = LineSplitter(self._keep_stderr, lambda _head, _tail, _size: None, 64 * 1024)

        def out(data: bytes) -> Iterator[object]:
            yield from lines.feed(data)
            if lines.size > _ENDLESS:
                peer.close_with(f"it sent {lines.size:,} bytes without the end of a line")

        def on_end(reason: str) -> None:
            for _ in errors.finish():
                pass
            peer.close_with("; ".join([reason, *self.hints()]))

        self._process = Process(self._reaper, out=out, err=errors.feed, ended=on_end, started=self._note_start)
        assert self._spec.command is not None
        await self._process.start(self._spec.command, self._spec.args, self._spec.env, self._spec.cwd)

    def _note_start(self, pid: int) -> None:
        if self._log is not None:
            self._log.note(f"started, process {pid}")

    async def send(self, message: Message, headers: Mapping[str, str] | None) -> None:
        """Write one line."""
        del headers
        assert self._process is not None
        assert self._peer is not None
        try:
            await self._process.write(exactjson.dump(message) + b"\n")
        except ToolFailure:
            # Why it ended is a moment behind that it ended.
            await asyncio.wait({self._peer.lost}, timeout=1)
            raise ConnectionLost(
                self._peer.lost.result() if self._peer.lost.done() else "the process has ended"
            ) from None

    @property
    def is_ready(self) -> bool:
        """Whether a message can be written without waiting."""
        return self._process is not None and self._process.is_writable

    def send_raw(self, request_id: int, text: bytes, name: str | None) -> None:
        """Write a request that is ready to go."""
        del request_id, name
        assert self._process is not None
        self._process.write_now(one_line(text) + b"\n")

    @property
    def is_drained(self) -> bool:
        """Whether all is delivered that was read, and nothing of a next line is there."""
        return self._process is None or self._lines is None or (self._process.is_drained and not self._lines.size)

    def cancel(self, request_id: int, reason: str) -> None:
        """Say so on the pipe."""
        if self._process is not None:
            self._process.write_now(exactjson.dump(cancellation(request_id, reason)) + b"\n")

    async def close(self) -> None:
        """End the process and everything it started."""
        if self._process is not None:
            await self._process.stop()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid if self._process else 0

    def keep_log(self, log: ServerLog) -> None:
        """Write down what it says on stderr."""
        self._log = log

    def _keep_stderr(self, line: bytes) -> tuple[()]:
        text = line.decode("utf-8", "replace").rstrip()
        self._stderr.append(text.strip())
        if self._log is not None:
            self._log.write(text)
        return ()

    def alternative(self, failure: ToolFailure, era: Era | None) -> tuple[ServerSpec, Era] | None:
        """Some older servers end at a question they do not know, the one for the era included.

        One that cannot start at all is therefore started twice: it ends in the same way.
        """
        return (self._spec, "handshake") if era is None and isinstance(failure, ConnectionLost) else None

    def hints(self) -> list[str]:
        """What it said on stderr last, and what it wrote that is no message: mostly why it does not work."""
        # Cleaned before it is cut: half a secret would not be known as one.
        said = _last_lines(self._spec.redactor.clean("\n".join(self._stderr)), _STDERR_SHOWN)
        hints = [f"it said: {said}"] if said else []
        if self._peer is not None and (wrote := self._peer.unreadable) is not None:
            hints.append(f"it wrote {wrote!r}, which is not JSON-RPC: is it an MCP server?")
        return hints


def _last_lines(text: str, room: int) -> str:
    """As many whole lines from the end of a text as there is room for, after its last error if that is further up."""
    lines = [line for line in map(str.strip, text.splitlines()) if line and not _is_noise(line)]
    kept = _tail(lines, room)
    error = next((line for line in reversed(lines) if _ERROR.search(line)), None)
    if error is None or error in kept or len(kept) == len(lines):
        return " | ".join(["…"] * (len(kept) < len(lines)) + kept)
    first = error[: room // 2]
    return " | ".join([first, "…", *_tail(lines, room - len(first))])


def _tail(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(lines):
        if kept and sum(map(len, kept)) + len(line) > room:
            break
        kept.insert(0, line[-room:])
    return kept


def _is_noise(line: str) -> bool:
    return bool(_NPM_NOISE.search(line) or _NODE_NOISE.search(line))
