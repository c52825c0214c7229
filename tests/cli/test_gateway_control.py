"""`status`, `logs` and `restart`: the gateway that runs, and its servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forking import warm_start
from harness import serving, toy, write_config
from screen import on_screen

WRITES = "import os, sys, json; print(f'token {os.environ[\"KEY\"]}\\n  \\x1b[31mred', file=sys.stderr); sys.exit(1)"


def pegboard(*words: str, config: Path) -> subprocess.CompletedProcess[str]:
    command = [*warm_start(), *words, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def data(*words: str, config: Path) -> Any:
    done = pegboard(*words, "--json", config=config)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A good server, one that ends at once, and one that is off."""
    writes = {"command": sys.executable, "args": ["-I", "-S", "-c", WRITES], "env": {"KEY": "s3cr3t-value"}}
    return write_config(tmp_path / "pegboard.json", {"good": toy(), "ends": writes, "off": toy({"enabled": False})})


@pytest.fixture
def running(config: Path) -> Generator[str]:
    with serving(config) as (_, url):
        yield url.removesuffix("/mcp")


def test_status_of_a_gateway_that_runs(config: Path, running: str, tmp_path: Path) -> None:
    """Where, which config, since when, its process, sessions, and servers by state."""
    pegboard("refresh", config=config)
    # The server that cannot be reached is tried again now and then.
    tries = (pegboard("status", config=config) for _ in range(20))
    shown = next(each for each in tries if "starting" not in each.stdout)
    assert shown.returncode == 0
    assert f" runs at {running}/mcp (pid " in shown.stdout
    assert " ago)." in shown.stdout
    assert f"config:   {config}" in shown.stdout
    assert "clients:  0 connected" in shown.stdout
    assert "servers:  1 ready, 1 disabled, 1 unreachable" in shown.stdout
    assert "access:   this machine's user\n" in shown.stdout
    assert "reached:  from this machine only\n" in shown.stdout
    answer = data("status", config=config)
    [row] = answer["gateways"]
    assert (answer["running"], row["url"], row["config"], row["sessions"]) == (True, running, str(config), 0)
    assert row["servers"] == {"connected": 1, "disabled": 1, "unreachable": 1}
    assert "token" not in row
    other = pegboard("status", config=write_config(tmp_path / "other.json", {}))
    assert other.returncode == 4
    assert f"{running}/mcp with {config}" in other.stdout


def test_status_without_a_gateway(config: Path) -> None:
    """It says so, and how to start one; the exit code is 4."""
    done = pegboard("status", config=config)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith(f"No gateway runs with {config}.\n")
    assert f" serve --config {config}" in done.stdout
    done = pegboard("status", "--json", config=config)
    assert done.returncode == 4
    assert json.loads(done.stdout)["data"] == {
        "running": False,
        "config": str(config),
        "gateways": [],
        "others": [],
    }


def test_a_gateway_that_was_killed_does_not_run(config: Path) -> None:
    """Whatever its run file says."""
    with serving(config) as (process, _):
        pid = data("status", config=config)["gateways"][0]["pid"]
        os.kill(pid, signal.SIGKILL)
        process.wait(20)
        assert pegboard("status", config=config).returncode == 4


def test_logs_show_what_servers_wrote(config: Path, running: str) -> None:
    """Of one server or all, as it came, without secrets and without what steers a terminal."""
    pegboard("refresh", config=config)
    one = pegboard("logs", "ends", config=config)
    assert one.returncode == 0
    assert "s3cr3t" not in one.stdout
    assert "token [redacted]\n" in one.stdout
    assert "    [31mred\n" in one.stdout
    assert "[pegboard] could not be connected: the process exited with code 1\n" in one.stdout
    both = pegboard("logs", config=config).stdout
    assert "  ends  token [redacted]\n" in both
    assert "  good  [pegboard] connected, protocol " in both
    assert len(pegboard("logs", "-n", "2", config=config).stdout.splitlines()) == 2
    assert pegboard("logs", "-n", "0", config=config).stdout == ""
    lines = [json.loads(line) for line in pegboard("logs", "ends", "--json", config=config).stdout.splitlines()]
    assert {line["source"] for line in lines} == {"server", "pegboard"}
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    nothing = pegboard("logs", "off", config=config)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing is in the log yet.\n")
    wrong = pegboard("logs", "god", config=config)
    assert (wrong.returncode, wrong.stderr) == (2, "pegboard: there is no server 'god': did you mean good?\n")


def test_logs_can_be_followed(config: Path) -> None:
    """Lines appear as they come; Ctrl-C ends it well, and so does the end of the gateway, which is said."""
    with serving(config) as (gateway, _):
        command = [*warm_start(), "logs", "--follow", "--config", str(config)]
        with on_screen(command) as screen, on_screen(command) as second:
            pegboard("refresh", "good", config=config)
            assert screen.until("connected, protocol").count("connected, protocol") == 1
            pegboard("restart", "good", config=config)
            screen.until("restarted by hand")
            screen.process.send_signal(signal.SIGINT)
            assert screen.finish()[0] == 0
            second.until("restarted by hand")
            gateway.terminate()
            code, text = second.finish()
    assert code == 4
    assert "the gateway at" in text


def test_restart_starts_a_server_anew(config: Path, running: str) -> None:
    """Another process, its tools again; a server that is off or cannot be started says why."""
    pegboard("refresh", config=config)
    done = pegboard("restart", "good", config=config)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("good was restarted: ")
    starts = [
        line for line in pegboard("logs", "good", config=config).stdout.splitlines() if "started, process" in line
    ]
    assert len({line.split()[-1] for line in starts}) == 2
    assert data("restart", "good", config=config)["registered"] > 0
    off, ends = pegboard("restart", "off", config=config), pegboard("restart", "ends", config=config)
    assert (off.returncode, ends.returncode) == (4, 4)
    assert "is disabled" in off.stderr
    assert "exited with code 1" in ends.stderr
    assert pegboard("restart", "nobody", config=config).returncode == 2


@pytest.mark.parametrize("command", [("logs",), ("restart", "good")])
def test_without_a_gateway_there_is_nothing_to_ask(config: Path, command: tuple[str, ...]) -> None:
    """No server is started for it: the message says how to start a gateway, and the exit code is 4."""
    done = pegboard(*command, config=config)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"pegboard: no gateway runs with {config}, and ")
    assert f" serve --config {config}" in done.stderr


def test_the_routes_refuse_what_they_do_not_know(running: str) -> None:
    """Names, parameters and numbers are checked, with the nearest name."""
    with httpx2.Client(base_url=running) as http:
        for path, status, words in [
            ("/api/servers/god/log", 404, "did you mean good?"),
            ("/api/servers/good/log?limits=1", 400, "did you mean limit?"),
            ("/api/servers/good/log?limit=-1", 400, "limit must be a whole number"),
            ("/api/servers/good/log?limit=2001", 400, "from 0 to 2000"),
            ("/api/servers/good/log?after=x", 400, "after must be a whole number"),
        ]:
            answer = http.get(path)
            assert answer.status_code == status, path
            assert words in answer.json()["error"]["message"]
        assert http.post("/api/servers/god/restart").status_code == 404
        # A proxy on this machine says that its client is elsewhere.
        elsewhere = {"x-forwarded-for": "203.0.113.7"}
        assert http.get("/api/servers/good/log", headers=elsewhere).status_code == 401
        assert http.get("/api/status", headers=elsewhere).status_code == 401
        assert {"pid", "config"} <= http.get("/api/status").json()["data"].keys()
        assert http.post("/api/servers/off/restart").status_code == 503
