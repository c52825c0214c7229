"""A process from the fork server is like one that was started: commands of each group answer alike, and end alike."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from forking import COLD_START, warm_start
from harness import alive, eventually, write_config

OWN = {"toolsets": ["memory", "chats", "tasks", "discovery"]}
COMMANDS = [
    ["--version"],
    ["tasks", "list"],
    ["memory", "list"],
    ["chats", "list"],
    ["tools", "--json"],
    ["call", "nobody__here"],
    ["add", "one", "--", "no-such-command-here"],
    ["trust", "--yes"],
    ["doctor"],
    ["stdio"],
    ["serve", "--port", "nonsense"],
]


def answer(start: tuple[str, ...], command: list[str], folder: Path) -> tuple[int, str, str]:
    """What a command says in a folder of its own, and its exit code."""
    write_config(folder / "pegboard.json", {}, **OWN)
    env = {**os.environ, "PEGBOARD_STATE_DIR": str(folder / "state"), "PEGBOARD_LOG": "warning"}
    done = subprocess.run(
        [*start, *command], input="", capture_output=True, text=True, timeout=60, check=False, cwd=folder, env=env
    )
    out, err = (text.replace(str(folder), "FOLDER") for text in (done.stdout, done.stderr))
    return done.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_answers_as_one_that_was_started(tmp_path: Path, command: list[str]) -> None:
    """The same exit code, the same words."""
    assert answer(warm_start(), command, tmp_path / "warm") == answer(COLD_START, command, tmp_path / "cold")


def script(tmp_path: Path, text: str) -> tuple[str, ...]:
    """The start of a script that does this."""
    path = tmp_path / "script.py"
    path.write_text(f"import os, sys, time\n{text}\n", "utf-8")
    return warm_start(path)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sys.exit(7)", 7, ""),
        ("print('out', flush=True); sys.exit('no')", 1, "no\n"),
        ("import atexit; atexit.register(lambda: print('bye', file=sys.stderr)); sys.exit()", 0, "bye\n"),
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("pass", 0, ""),
    ],
)
def test_it_ends_with_its_own_code_signal_and_last_words(tmp_path: Path, text: str, code: int, said: str) -> None:
    """As it would without anything in between."""
    done = subprocess.run(script(tmp_path, text), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.anyio
async def test_a_launcher_that_is_killed_takes_its_process_along(tmp_path: Path) -> None:
    """Nothing is left of what a test started and killed."""
    start = script(tmp_path, "print(os.getpid(), flush=True); time.sleep(600)")
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert alive(pid)
        process.kill()
        await eventually(lambda: not alive(pid))
