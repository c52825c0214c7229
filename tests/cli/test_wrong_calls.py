"""A call that is wrong says what is wrong with it, changes nothing, and ends with the exit code for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness import toy, write_config
from pegboard.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "pegboard.json", {"docs": toy({"enabled": False})}, toolsets=["memory"])


@pytest.fixture
def run(config: Path) -> Run:
    """Runs a command in this process."""

    def run(*command: str, stdin: str = "", file: Path = config) -> Result:
        words = 2 if command[0] in {"memory", "chats"} else 1
        return CliRunner().invoke(app, [*command[:words], "--config", str(file), *command[words:]], input=stdin)

    return run


@pytest.mark.parametrize("command", ["enable", "disable", "remove", "refresh", "tools"])
def test_a_name_that_no_server_has_is_a_wrong_call(run: Run, config: Path, command: str) -> None:
    """Whatever the command: exit code 2, the nearest name, and the file as it was."""
    before = config.read_bytes()
    done = run(command, *(["--server"] if command == "tools" else []), "dosc")
    assert done.exit_code == 2
    assert "there is no server" in done.stderr
    assert "did you mean" in done.stderr
    assert "docs" in done.stderr.rpartition("did you mean")[2]
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"a": ' * 1000 + "1" + "}" * 1000, "cannot be read as JSON"),
        ("{", "cannot be read as JSON"),
        ("[]", "must be a JSON object"),
    ],
    ids=["open", "deep", "half", "list"],
)
def test_arguments_that_cannot_be_read_are_a_wrong_call(run: Run, arguments: str, reason: str) -> None:
    """Deep, endless or broken: one line that says so, and no traceback."""
    done = run("call", "memory_list", "-", stdin=arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert reason in done.stderr


def test_an_unknown_storage_is_a_mistake_in_the_config(run: Run, tmp_path: Path) -> None:
    """Exit code 3, with its place; a password in it is not repeated."""
    file = write_config(tmp_path / "other.json", {}, storage="mysql://ada:tulip-42@h/db")
    done = run("servers", file=file)
    assert done.exit_code == 3
    assert f"{file}:1:" in done.stderr
    assert 'use "sqlite"' in done.stderr
    assert "tulip" not in done.stderr


def test_an_empty_search_and_an_empty_name_are_wrong_calls(run: Run, config: Path) -> None:
    """Nothing is searched for, and nothing is added."""
    before = config.read_bytes()
    assert run("chats", "search", " ").exit_code == 2
    assert run("add", " ", "https://d.example/mcp").exit_code == 2
    assert config.read_bytes() == before


def test_a_memory_needs_something_to_remember(run: Run) -> None:
    """A text, a summary, or what is piped in; a key alone is a slip."""
    empty = run("memory", "add", "foo")
    assert (empty.exit_code, "--text" in empty.stderr) == (2, True)
    assert json.loads(run("memory", "list", "--json").stdout)["data"]["memories"] == []
    assert run("memory", "add", "piped", stdin="from a pipe").exit_code == 0
    assert "from a pipe" in run("memory", "get", "piped").stdout
    assert run("memory", "add", "short", "--summary", "only this").exit_code == 0


def test_a_config_that_cannot_be_written_is_a_failure_of_this_machine(run: Run, tmp_path: Path) -> None:
    """Exit code 1, not that of a bad config; the file stays, and nothing lies beside it."""
    # There is room for this name, but not for that of a draft beside it.
    file = write_config(tmp_path / "full" / f"{'n' * 250}.json", {"docs": toy()})
    before = file.read_bytes()
    done = run("disable", "docs", file=file)
    assert (done.exit_code, "it cannot be written" in done.stderr) == (1, True)
    assert (file.read_bytes(), list(file.parent.iterdir())) == (before, [file])
