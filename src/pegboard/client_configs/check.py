"""Whether Pegboard answers at the address or by the command of an entry: asked as the client will ask.

It uses the standard library alone: what a client does, any program can do.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from pegboard.client_configs.entries import EntryTarget
from pegboard.exactjson import as_object
from pegboard.version import VERSION

# What it calls itself: its lists are nobody's prompt.
CHECK_CLIENT = "pegboard-check"
_PROTOCOL = "2025-11-25"
_HTTP_LIMIT, _START_LIMIT, _END_LIMIT = 15.0, 60.0, 10.0
_FAULTS = (OSError, ValueError, http.client.HTTPException, RecursionError)
_MAX_ERRORS = 2_000


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How many tools Pegboard lists, or why it does not answer."""

    tools: int | None = None
    problem: str | None = None
    # Whether Pegboard is there, and wants a token that the entry does not have.
    needs_token: bool = False
    # How many tools there are, if that is known: what is not listed is found when it is needed.
    total: int | None = None

    @property
    def more(self) -> int:
        """How many tools there are beside those that are listed."""
        return max((self.total or 0) - (self.tools or 0), 0)


class _TokenMissingError(OSError):
    """Pegboard lets nobody in without a token."""


def check_target(target: EntryTarget) -> CheckOutcome:
    """Ask for the tools, after a handshake. It never raises: what goes wrong is in the outcome."""
    try:
        listed = _ask_address(target.url) if target.url is not None else _ask_command(target)
    except _TokenMissingError as exc:
        return CheckOutcome(problem=str(exc), needs_token=True)
    except _FAULTS as exc:
        reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        return CheckOutcome(problem=str(reason))
    return CheckOutcome(tools=listed)


def _requests() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The handshake, its end, and the question for tools."""
    info = {"name": CHECK_CLIENT, "version": VERSION}
    params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": info}
    return (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )


def _ask_address(url: str) -> int:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with contextlib.closing(kind(parts.hostname or "", parts.port, timeout=_HTTP_LIMIT)) as connection:
        hello, ready, question = _requests()
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        response = _post(connection, path, headers, hello)
        _answer(response, 1)
        if session := response.getheader("mcp-session-id"):
            headers |= {"mcp-session-id": session, "mcp-protocol-version": _PROTOCOL}
        _post(connection, path, headers, ready).read()
        listed = _count(_answer(_post(connection, path, headers, question), 2))
        if session:
            connection.request("DELETE", path, headers=headers)
            connection.getresponse().read()
        return listed


def _post(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], message: dict[str, Any]
) -> http.client.HTTPResponse:
    connection.request("POST", path, json.dumps(message), dict(headers))
    response = connection.getresponse()
    if response.status == http.client.UNAUTHORIZED:
        raise _TokenMissingError("it wants a token, and the entry has none (HTTP status 401)")
    if response.status >= http.client.BAD_REQUEST:
        raise OSError(f"it answers with HTTP status {response.status}")
    return response


def _answer(response: http.client.HTTPResponse, number: int) -> dict[str, Any]:
    body = response.read()
    lines = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    found = _find_answer(lines or [body], number)
    if found is None:
        raise ValueError("it does not answer as an MCP server does")
    return found


def _ask_command(target: EntryTarget) -> int:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  the command that we have written ourselves
            [target.command, *target.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **target.env},
        )
        deadline = threading.Timer(_START_LIMIT, process.kill)
        deadline.start()
        try:
            return _talk(process)
        except ValueError:
            process.kill()
            process.wait()
            raise ValueError(_last_line(errors) or "it ended without an answer") from None
        finally:
            deadline.cancel()
            _end(process)


def _talk(process: subprocess.Popen[bytes]) -> int:
    hello, ready, question = _requests()
    _send(process, hello)
    lines = _lines(process)
    if _find_answer(lines, 1) is None:
        raise ValueError
    _send(process, ready, question)
    answer = _find_answer(lines, 2)
    if answer is None:
        raise ValueError
    return _count(answer)


def _send(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            process.stdin.flush()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    return iter(process.stdout or ())


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        # What was written for a process that ended cannot be sent any more.
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    try:
        process.wait(_END_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _find_answer(lines: Iterable[bytes], number: int) -> dict[str, Any] | None:
    """The first message that answers a request; what else is said is passed over."""
    for line in lines:
        with contextlib.suppress(ValueError):
            message = as_object(json.loads(line))
            if message is not None and message.get("id") == number:
                return message
    return None


def _count(answer: dict[str, Any]) -> int:
    tools = (as_object(answer.get("result")) or {}).get("tools")
    count = len(cast("list[object]", tools)) if isinstance(tools, list) else None
    if count is None:
        raise ValueError("it does not list its tools")
    return count


def _last_line(errors: BinaryIO) -> str:
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_MAX_ERRORS] if lines else ""
