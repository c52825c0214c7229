"""`service install|remove|status|run` with a systemd that writes down what it is told."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import LIMIT, serving, write_config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the commands of this machine's system are tested")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(
        tmp_path / "pegboard.json", {"docs": {"url": "https://x.example", "headers": {"K": "${DOCS_TOKEN}"}}}
    )


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What systemctl was told; it fails while there is a file `fail`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    said = tmp_path / "said"
    program = folder / "systemctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {said}\ntest ! -e {tmp_path}/fail || {{ echo "no bus" >&2; exit 1; }}\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return said


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".config" / "systemd" / "user" / "pegboard.service"


def pegboard(*args: str) -> subprocess.CompletedProcess[str]:
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}
    return subprocess.run([*warm_start(), "service", *args], check=False, env=dict(os.environ), **options)


def test_install_writes_enables_and_waits_for_the_gateway(config: Path, systemctl: Path, unit: Path) -> None:
    """The unit is shown, and which variables have to be set; the address is told in the end."""
    with serving(config) as (_, url):
        done = pegboard("install", "--config", str(config), "--port", "7555")
    assert done.returncode == 0, done.stderr
    text = unit.read_text()
    assert f"--config {config} --port 7555" in text
    assert f'Environment="PATH={os.environ["PATH"]}"' in text
    assert all(f"  {line}" in done.stdout for line in text.splitlines())
    assert "Your config reads DOCS_TOKEN from the environment" in done.stdout
    assert "loginctl enable-linger" in done.stdout
    assert "journalctl --user" in done.stdout
    assert f"The gateway runs: {url}\n" in done.stdout
    assert systemctl.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable pegboard.service",
        "--user restart pegboard.service",
    ]


def test_nothing_is_done_by_a_look(config: Path, systemctl: Path, unit: Path) -> None:
    """`--dry-run` shows all of it, `--print` the file alone."""
    shown = pegboard("install", "--config", str(config), "--dry-run")
    printed = pegboard("install", "--config", str(config), "--print")
    assert (shown.returncode, printed.returncode) == (0, 0)
    assert "Nothing was done" in shown.stdout
    assert printed.stdout.startswith("# Written by")
    assert printed.stdout.endswith("WantedBy=default.target\n")
    assert not unit.exists()
    assert not systemctl.exists()


def test_a_file_of_somebody_else_is_replaced_by_force_alone(config: Path, systemctl: Path, unit: Path) -> None:
    """The same again is no fault."""
    unit.parent.mkdir(parents=True)
    unit.write_text("mine")
    with serving(config):
        refused = pegboard("install", "--config", str(config))
        assert (refused.returncode, unit.read_text()) == (1, "mine")
        assert "--force" in refused.stderr
        assert pegboard("install", "--config", str(config), "--force").returncode == 0
        assert pegboard("install", "--config", str(config)).returncode == 0


def test_remove_leaves_nothing(config: Path, systemctl: Path, unit: Path) -> None:
    """And once more there is nothing to do."""
    with serving(config):
        pegboard("install", "--config", str(config))
    systemctl.unlink()
    done = pegboard("remove")
    assert done.returncode == 0, done.stderr
    assert list(unit.parent.iterdir()) == []
    assert systemctl.read_text().splitlines() == [
        "--user disable --now pegboard.service",
        "--user daemon-reload",
        "--user reset-failed pegboard.service",
    ]
    again = pegboard("remove")
    assert (again.returncode, again.stdout.split(":")[0]) == (0, "There is no service")


def test_a_system_that_refuses_is_told(config: Path, systemctl: Path, unit: Path, tmp_path: Path) -> None:
    """The file is there, and what to do; it can be removed all the same."""
    (tmp_path / "fail").touch()
    done = pegboard("install", "--config", str(config))
    assert done.returncode == 1
    assert "the service did not start: systemctl --user daemon-reload: no bus" in done.stderr
    assert unit.exists()
    removed = pegboard("remove")
    assert (removed.returncode, unit.exists()) == (0, False)
    assert "note: systemctl --user disable" in removed.stderr


def test_without_the_system_the_file_is_written_and_the_way_told(
    config: Path, unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has none."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = pegboard("install", "--config", str(config))
    assert done.returncode == 0, done.stderr
    assert "systemctl is not here, so that nothing was started" in done.stdout
    assert unit.exists()
    assert "unknown" in pegboard("status", "--config", str(config)).stdout


def test_status_tells_what_is_installed_and_what_runs(
    config: Path, systemctl: Path, unit: Path, tmp_path: Path
) -> None:
    """For people and for programs."""
    assert "not installed" in pegboard("status", "--config", str(config)).stdout
    with serving(config) as (_, url):
        pegboard("install", "--config", str(config))
        said = pegboard("status", "--config", str(config)).stdout
        assert f"installed, runs ({unit})" in said
        assert f"gateway: {url.removesuffix('/mcp')}\n" in said
    (tmp_path / "fail").touch()
    data = json.loads(pegboard("status", "--config", str(config), "--json").stdout)["data"]
    assert (data["installed"], data["active"], data["gateway"], data["file"]) == (True, False, None, str(unit))


def test_a_config_that_is_wrong_is_installed_by_nobody(systemctl: Path, unit: Path, tmp_path: Path) -> None:
    """Exit code 3, and nothing is written."""
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    assert pegboard("install", "--config", str(bad)).returncode == 3
    assert pegboard("install", "--config", str(tmp_path / "none.json")).returncode == 3
    assert not unit.exists()


def test_run_reads_variables_and_writes_a_log(tmp_path: Path) -> None:
    """What launchd and the Task Scheduler start: a gateway with the variables of a file, and its output in another."""
    config = write_config(tmp_path / "pegboard.json", {"one": {"url": "http://127.0.0.1:9/${DOCS_PATH}"}})
    variables, log = tmp_path / "environment", tmp_path / "logs" / "pegboard.log"
    variables.write_text("DOCS_PATH=a\n")
    log.parent.mkdir()
    log.write_bytes(b"old" * 2_000_000)
    free = _free_port()
    command = [*warm_start(), "service", "run", "--env-file", str(variables), "--log-file", str(log)]
    with subprocess.Popen([*command, "--config", str(config), "--port", str(free)], env=dict(os.environ)) as process:
        try:
            data = _status(config)
            assert data["gateway"] == f"http://127.0.0.1:{free}"
            rows = subprocess.run(
                [*warm_start(), "servers", "--config", str(config), "--json"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(rows.stdout)["data"]["servers"][0]["state"] != "invalid"
        finally:
            process.terminate()
            process.wait(LIMIT)
    assert "listens on" in log.read_text()
    assert log.with_name("pegboard.log.1").stat().st_size == 6_000_000


def _status(config: Path) -> dict[str, Any]:
    """The status once a gateway runs."""
    for _ in range(100):
        data = json.loads(pegboard("status", "--config", str(config), "--json").stdout)["data"]
        if data["gateway"] is not None:
            return data
    raise AssertionError("no gateway runs")


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def test_run_says_in_the_log_what_is_wrong_with_the_variables(tmp_path: Path) -> None:
    """Nobody sees its output."""
    (tmp_path / "environment").write_text("nonsense\n")
    done = pegboard("run", "--env-file", str(tmp_path / "environment"), "--log-file", str(tmp_path / "log"))
    assert done.returncode == 1
    assert "environment:1: write NAME=VALUE" in (tmp_path / "log").read_text()
