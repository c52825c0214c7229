"""The gateway over stdio: only protocol on its output, and a clear word for what is none on its input."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import toy, write_config

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}},
}


def run_stdio(config: Path, lines: list[bytes]) -> list[dict[str, Any]]:
    """Everything that `pegboard stdio` writes in answer to these lines."""
    command = [*warm_start(), "stdio", "--config", str(config)]
    done = subprocess.run(command, input=b"".join(lines), capture_output=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def test_everything_asked_before_the_end_of_input_is_answered(tmp_path: Path) -> None:
    """A script may write its questions and close: the answers still come, and nothing else."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy(noise=True)})
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    params = {"name": "one__echo", "arguments": {"a": 2**70}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    answers = run_stdio(config, [line(INITIALIZE), line(ready), line(call)])
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id[1]["result"]["protocolVersion"] == "2025-06-18"
    assert by_id[1]["result"]["serverInfo"]["name"] == "pegboard"
    assert json.loads(by_id[2]["result"]["content"][0]["text"]) == {"a": 2**70}


def test_what_is_no_message_gets_a_clear_error_and_changes_nothing(tmp_path: Path) -> None:
    """Not JSON, not UTF-8, no JSON-RPC, too deep and too long: an error each, and the session goes on."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    too_long = b'"' + b"x" * (5 * 1024 * 1024) + b'"\n'
    bad = [b"oops\n", b"\xff\xfe\n", b'{"a": 1}\n', b"[" * 5000 + b"\n", too_long, b"\n"]
    answers = run_stdio(config, [*bad, line(INITIALIZE), line({"jsonrpc": "2.0", "id": 2, "method": "ping"})])
    errors = [answer for answer in answers if answer.get("id") is None]
    assert [error["error"]["code"] for error in errors] == [-32700, -32700, -32600, -32700, -32600]
    assert {answer["id"] for answer in answers if answer.get("id") is not None} == {1, 2}


def test_a_request_before_the_handshake_is_refused(tmp_path: Path) -> None:
    """Nothing is relayed for a client that has not introduced itself."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    answers = run_stdio(config, [line({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})])
    assert answers[0]["error"]["code"] == -32602


@pytest.mark.parametrize("content", ["{", '{"mcpServers": 5}'])
def test_a_bad_config_starts_nothing_and_exits_with_3(tmp_path: Path, content: str) -> None:
    """One message on stderr, nothing on stdout."""
    config = tmp_path / "pegboard.json"
    config.write_text(content)
    command = [*warm_start(), "stdio", "--config", str(config)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False, text=False)
    assert done.returncode == 3
    assert done.stdout == b""
    assert str(config).encode() in done.stderr
