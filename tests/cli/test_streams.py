"""Nobody reads what a command prints: it does its work all the same, and ends without a traceback."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Literal

import httpx2
import pytest

from forking import COLD_START, warm_start
from harness import LIMIT, eventually, write_config
from pegboard.config import find_gateways
from pegboard.config.runfile import RunningGateway

pytestmark = pytest.mark.anyio
Reader = Literal["gone", "never there"]
NOBODY = pytest.mark.parametrize("reader", ["gone", "never there"])
OFF = {"off": {"command": "x", "enabled": False}}


@contextlib.contextmanager
def unread(args: list[str], reader: Reader, *, also_stderr: bool = False) -> Generator[subprocess.Popen[str]]:
    """A command with a pipe that nobody reads for its output, or with none at all."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [*warm_start(), *args]
    if reader == "never there":
        command = [*COLD_START, *args]
        closed = ">&- 2>&-" if also_stderr else ">&-"
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    err = writing if also_stderr else subprocess.PIPE
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing, stderr=err, text=True)
    os.close(writing)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            if process.stderr is not None:
                process.stderr.close()


@NOBODY
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["servers"], 0),
        (["servers", "--json"], 0),
        (["tools", "--json"], 0),
        (["doctor"], 0),
        (["memory", "list"], 0),
        (["chats", "list"], 0),
        (["call", "nobody__here", "--json"], 2),
    ],
)
def test_a_command_ends_as_usual(tmp_path: Path, args: list[str], code: int, reader: Reader) -> None:
    """With the exit code that it has with a reader, and without a word."""
    config = (
        []
        if args == ["--help"]
        else ["--config", str(write_config(tmp_path / "pegboard.json", OFF, toolsets=["memory"]))]
    )
    with unread([*args, *config], reader) as process:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (code, "")


@NOBODY
@pytest.mark.parametrize("also_stderr", [False, True])
async def test_the_gateway_runs_on(tmp_path: Path, reader: Reader, also_stderr: bool) -> None:
    """Neither its banner nor its log ends it."""
    config = write_config(tmp_path / "pegboard.json", OFF)
    with unread(["serve", "--config", str(config), "--port", "0"], reader, also_stderr=also_stderr) as process:
        found: list[RunningGateway] = []

        def has_started() -> bool:
            found.extend(gateway for _, gateway in find_gateways(config))
            return bool(found) or process.poll() is not None

        await eventually(has_started)
        async with httpx2.AsyncClient(base_url=found[0].url, timeout=LIMIT) as http:
            assert (await http.post("/api/servers/off/enable")).status_code == 200
            assert (await http.get("/health")).json()["status"] == "ok"
        process.terminate()
        said = process.stderr.read() if process.stderr is not None else ""
        assert process.wait(30) == 0
        assert "Traceback" not in said


def test_the_banner_does_not_let_a_path_steer_the_terminal(tmp_path: Path) -> None:
    """A folder may have any name; it is shown without what a terminal would act on."""
    folder = tmp_path / "\x1b]0;owned\x07\x1b[2J\u202eodd"
    folder.mkdir()
    config = write_config(folder / "pegboard.json", OFF)
    command = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        banner = process.stdout.readline() + process.stdout.readline()
        process.terminate()
    assert "]0;owned[2Jodd" in banner
    assert not {"\x1b", "\x07", "\u202e"} & set(banner)
