"""How commands find the gateway they mean: run files, and the proof that a gateway is the one that wrote its own."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import COLD_START, warm_start
from harness import serving, toy, write_config
from pegboard.cli.http_transport import GatewayTransport, find_running
from pegboard.cli.rest_client import RestClient
from pegboard.config import RunningGateway, announcement, find_gateways, identity
from pegboard.config.edit import switch_server

LIMIT = 60
MADE_ELSEWHERE = 'its folder cannot be made; choose another with PEGBOARD_STATE_DIR, or a file with "storage"'


def pegboard(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [*warm_start(), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, **env}
    )


def run_folder() -> Path:
    return Path(os.environ["PEGBOARD_STATE_DIR"]) / "run"


@contextlib.contextmanager
def impostor(answer: dict[str, Any]) -> Generator[tuple[int, list[tuple[str, str]]]]:
    """A program that has a gateway's port and knows all that anybody can know; what it is sent."""
    heard: list[tuple[str, str]] = []

    class Answering(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            heard.append((self.path, self.rfile.read(length).decode()))
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server.server_port, heard
        server.shutdown()
        thread.join()


def test_a_command_sends_nothing_to_whoever_has_the_port_of_a_dead_gateway(tmp_path: Path) -> None:
    """The impostor answers as a gateway of this config, and gets a question it cannot answer, and nothing else."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])
    for proof in ({}, {"proof": "0" * 64}, {"proof": None}):
        with impostor({"status": "ok", "version": "1", "config": identity(config), **proof}) as (port, heard):
            gateway = RunningGateway(1, f"http://127.0.0.1:{port}", 1, "secret")
            with announcement(config, gateway):
                assert find_running(config) is None
                refused = RestClient(GatewayTransport(gateway)).call("memory_add", {"text": "private"})
        assert refused["error"]["code"] == "TOOL_UNAVAILABLE"
        assert [path for path, _ in heard] == ["/health", "/health"]
        assert "private" not in str(heard)
        assert "secret" not in str(heard)


def test_two_gateways_of_one_config_are_both_found(tmp_path: Path) -> None:
    """When the later one stops, or is killed, the first still answers, and no file is left of either."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config, command=COLD_START) as (first, url):
        with serving(config, command=COLD_START) as (second, other):
            assert {gateway.pid for _, gateway in find_gateways(config)} == {first.pid, second.pid}
            assert url != other
            second.send_signal(signal.SIGKILL)
            second.wait()
        found = find_running(config)
        assert found is not None
        assert RestClient(found).servers()["data"]["servers"][0]["name"] == "one"
        # The one that was killed could not take its file away: whoever finds that nobody is there does.
        assert {gateway.pid for _, gateway in find_gateways(config)} == {first.pid}
    assert list(run_folder().iterdir()) == []


def test_a_run_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    """A read-only container still has its gateway; only the other commands do not find it."""
    config = write_config(tmp_path / "pegboard.json", {}, storage=f"sqlite:{tmp_path / 'x.db'}", toolsets=[])
    (tmp_path / "file").write_text("no folder")
    env = {**os.environ, "PEGBOARD_STATE_DIR": str(tmp_path / "file" / "state")}
    command = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as process,
    ):
        assert process.stdout is not None
        try:
            assert "listens on" in process.stdout.readline()
        finally:
            process.terminate()
        assert process.wait(LIMIT) == 0
    warnings = [line for line in (tmp_path / "log").read_text().splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "run.file.failed" in warnings[0]


def test_a_storage_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """It names the file and the reason, and there is no traceback."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=[])
    (tmp_path / "file").write_text("no folder")
    env = {**os.environ, "PEGBOARD_STATE_DIR": str(tmp_path / "file" / "state"), "PEGBOARD_LOG": "warning"}
    for command in ("serve", "stdio"):
        more = ["--port", "0"] if command == "serve" else []
        whole = [*warm_start(), command, "--config", str(config), *more]
        done = subprocess.run(
            whole, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=LIMIT, check=False
        )
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        file = tmp_path / "file" / "state" / "pegboard.db"
        assert line == (f"pegboard: {file} cannot be used as storage: Not a directory: {MADE_ELSEWHERE}")


@pytest.mark.parametrize(
    "command",
    [["servers"], ["find", "git"], ["doctor"], ["chats", "list"], ["memory", "list"], ["call", "memory_list"]],
)
def test_a_storage_that_cannot_be_used_is_no_server_that_cannot_be_reached(tmp_path: Path, command: list[str]) -> None:
    """It has the exit code of any failure, and says where the storage would be and what to do."""
    (tmp_path / "file").write_text("no folder")
    env = {**os.environ, "PEGBOARD_STATE_DIR": str(tmp_path / "file" / "state")}
    whole = [*warm_start(), *command]
    done = subprocess.run(
        whole, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=LIMIT, check=False
    )
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert str(tmp_path / "file" / "state") in said
    assert "its folder cannot be made" in said
    assert "Error" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("command", [["find", "git"], ["servers", "--json"], ["--version"]])
def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path, command: list[str]) -> None:
    """And the exit code says that it failed."""
    with Path("/dev/full").open("w") as full:
        whole = [*warm_start(), *command]
        done = subprocess.run(
            whole, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=LIMIT, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "pegboard: the output cannot be written: No space left on device\n"


def test_no_lock_file_stays_behind(tmp_path: Path) -> None:
    """What two processes agreed by is gone when both are done, also when they came at once."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy(), "two": toy()})
    threads = [
        threading.Thread(target=switch_server, args=(config, name), kwargs={"enabled": False})
        for name in ("one", "two") * 8
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    servers = json.loads(config.read_text())["mcpServers"]
    assert {entry["enabled"] for entry in servers.values()} == {False}
    assert list(run_folder().iterdir()) == []


def test_a_port_in_use_is_one_message_that_says_who_has_it(tmp_path: Path) -> None:
    """This config's gateway, another's, or another program: and what to do."""
    config = write_config(tmp_path / "pegboard.json", {})
    other = write_config(tmp_path / "other.json", {})
    with serving(config) as (_, url):
        port = url.removesuffix("/mcp").rpartition(":")[2]
        for path, who in ((config, "with this config"), (other, f"with {config}")):
            done = pegboard("serve", "--config", str(path), "--port", port)
            assert done.returncode == 1
            assert done.stdout == ""
            line, *commands = done.stderr.splitlines()
            assert who in line
            assert "--port" in commands[-1]
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        threading.Thread(target=hang_up, args=(stranger,), daemon=True).start()
        done = pegboard("serve", "--config", str(config), "--port", str(stranger.getsockname()[1]))
    assert done.returncode == 1
    line, command = done.stderr.splitlines()
    assert "another program" in line
    assert "--port" in command


def hang_up(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listener.accept()[0].close()


def test_a_signal_to_reload_does_not_end_a_gateway_that_starts(tmp_path: Path) -> None:
    """SIGHUP is ignored from the first moment, and means a reload once there is something to reload."""
    config = write_config(tmp_path / "pegboard.json", {})
    command = [*COLD_START, "serve", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            until_ignored(process.pid, signal.SIGHUP)
            process.send_signal(signal.SIGHUP)
            assert "listens on" in process.stdout.readline()
        finally:
            process.terminate()
        assert process.wait(LIMIT) == 0


def until_ignored(pid: int, number: int) -> None:
    """Wait until a process ignores a signal."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
        if int(ignored, 16) >> (number - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("never ignored")


def test_other_machines_can_reach_it_is_said(tmp_path: Path) -> None:
    """`serve` beyond loopback says so, and takes the names it is told; a wrong one is the caller's mistake."""
    config = write_config(tmp_path / "pegboard.json", {})
    assert pegboard("token", "add", "laptop", "--config", str(config)).returncode == 0
    assert pegboard("serve", "--config", str(config), "--allow-host", "http://x").returncode == 2
    command = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    beyond = [*command, "--host", "0.0.0.0", "--allow-host", "pegboard.example"]
    for words, warned in ((command, False), (beyond, True)):
        log = tmp_path / "log"
        with (
            log.open("w") as errors,
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None
            try:
                first = process.stdout.readline()
                port = int(first.partition("127.0.0.1:")[2].partition("/")[0])
                assert status(port, "pegboard.example") == (200 if warned else 421)
            finally:
                process.terminate()
            process.wait(LIMIT)
        assert ("Other machines reach it at" in log.read_text()) is warned


def status(port: int, host: str) -> int:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    with contextlib.closing(connection):
        connection.request("GET", "/health", headers={"host": host})
        return connection.getresponse().status
