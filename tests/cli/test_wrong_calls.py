"""A call that is wrong says what is wrong with it, changes nothing, and ends with the exit code for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness import toy, write_config
from pegboard.cli.app import app
from pegboard.cli.common import without_name

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


def test_arguments_that_are_no_json_say_how_they_are_written(run: Run) -> None:
    """A word that is neither JSON nor KEY=VALUE."""
    done = run("call", "memory_list", "UTC")
    assert done.exit_code == 2
    assert """give KEY=VALUE, or a JSON object like '{"timezone": "UTC"}'""" in done.stderr


def test_an_address_that_is_not_of_http_is_a_wrong_call(run: Run, config: Path) -> None:
    """It is no command either."""
    before = config.read_bytes()
    done = run("add", "files", "ftp://foo")
    assert (done.exit_code, config.read_bytes()) == (2, before)
    assert "http:// or https://" in done.stderr


def test_to_find_nothing_is_a_wrong_call(run: Run) -> None:
    """As it is for memories and chats."""
    done = run("find", " ")
    assert (done.exit_code, done.stderr) == (2, "pegboard: say what to search for\n")


def test_a_log_level_that_there_is_not_is_a_wrong_call(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which there are."""
    monkeypatch.setenv("PEGBOARD_LOG", "foo")
    done = run("servers")
    assert done.exit_code == 2
    assert "PEGBOARD_LOG must be one of debug, info, warning, error, critical, found 'foo'" in done.stderr


def test_a_file_that_is_there_is_not_overwritten_by_an_export(run: Run, tmp_path: Path) -> None:
    """Only by whoever says so."""
    file = tmp_path / "chat.md"
    file.write_text("mine")
    done = run("chats", "export", "abc", "-o", str(file))
    assert (done.exit_code, file.read_text()) == (2, "mine")
    assert "--force" in done.stderr
    assert "--force" not in run("chats", "export", "abc", "-o", str(file), "--force").stderr


def test_chats_of_a_folder_that_is_not_there_say_so(run: Run, tmp_path: Path) -> None:
    """They are still looked for: the folder may have been deleted since."""
    done = run("chats", "list", "-w", str(tmp_path / "nope"))
    assert (done.exit_code, done.stderr) == (0, f"note: there is no folder {tmp_path / 'nope'}\n")


@pytest.mark.parametrize("command", [["tools"], ["find", "read files"]])
def test_a_list_of_tools_names_the_servers_that_failed(run: Run, tmp_path: Path, command: list[str]) -> None:
    """What is not in a list does not show; one line says whose tools are missing, and where it says why."""
    file = write_config(
        tmp_path / "other.json", {"gone": {"command": "no-such-command"}, "off": toy({"enabled": False})}
    )
    done = run(*command, file=file)
    assert done.exit_code == 0
    assert done.stderr == f"note: not available: gone; pegboard servers --config {file} says why\n"


@pytest.mark.parametrize(
    "message", ["docs wants credentials", "server docs wants credentials", "docs: wants credentials"]
)
def test_a_servers_name_is_said_once(message: str) -> None:
    """Where a line begins with it already."""
    assert without_name(message, "docs") == "wants credentials"
